"""Actor-critic agents: DDPG, SAC and PPO.

    DDPG    critic Q(x, a) ~ E[r | x, a],      actor a = mu(x) ascends Q(x, mu(x)),      acts mu(x) + noise
    SAC     the same critic,                   actor pi(a | x) ascends E[Q] + entropy
    PPO     baseline V(x),                     actor pi(a | x) ascends the clipped ratio of new to old policy
            x advantage

An episode is a single step, so the discount is 0. The implementations are those of Stable-Baselines3; needs
`pip install "rehearsal-torch[rl]"`.

The default settings of Stable-Baselines3 are meant for a million steps: DDPG and SAC act at random for the
first 100, and PPO learns for the first time after 2,048. `library=True` keeps these settings; the settings
used otherwise let agents learn from the first rounds on. They were selected with seeds that no result uses.

Source: Lillicrap et al. (2016); Haarnoja et al. (2018); Schulman et al. (2017); Raffin et al. (2021) for the
implementations.
"""

from abc import abstractmethod
from importlib import import_module
from typing import Any, ClassVar, final

import numpy as np

from rehearsal_torch.seeding import numpy_generator
from reproduction.online.agent import Agent


@final
class FadingNoise:
    """Normal exploration noise whose standard deviation after t actions is .3 / (1 + t / 300).

    Args:
        size: Number of components of an action.
        seed: Seed of the noise.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.stream, self.count = size, numpy_generator(seed), 0

    def __call__(self) -> np.ndarray:
        """The noise of the next action, (size,)."""
        self.count += 1
        return self.stream.normal(0.0, 0.3 / (1 + (self.count - 1) / 300), self.size).astype(np.float32)

    def reset(self) -> None:
        """Called at the end of each episode, that is after each action; does nothing."""


class ActorCritic(Agent):
    """An agent of Stable-Baselines3.

    Args:
        library: Whether to keep the default settings of Stable-Baselines3.
        device: The device of its networks, which are too small to gain from an accelerator.
    """

    algorithm: ClassVar[str]

    def __init__(self, library: bool = False, device: str = "cpu") -> None:
        self.library, self.device = library, device

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`."""
        algorithm = getattr(import_module("stable_baselines3"), self.algorithm)
        settings = self.settings(environment, rounds, seed)
        agent = algorithm("MlpPolicy", environment, gamma=0.0, seed=seed, device=self.device, **settings)
        agent.learn(rounds)

    @abstractmethod
    def settings(self, environment: Any, rounds: int, seed: int) -> dict[str, Any]:
        """Further arguments of the algorithm; new at each call, since Stable-Baselines3 modifies them.

        Args:
            seed: Seed of the agent.
        """


class OffPolicy(ActorCritic):
    """An agent with a replay buffer of all rounds, small networks, and four gradient steps per round."""

    def settings(self, environment: Any, rounds: int, seed: int) -> dict[str, Any]:
        """See `ActorCritic.settings`."""
        buffer = {"buffer_size": max(rounds, 1000)}
        if self.library:
            return buffer
        networks = {"batch_size": 64, "gradient_steps": 4, "policy_kwargs": {"net_arch": [64, 64]}}
        return buffer | networks | self.exploration(environment, seed)

    @abstractmethod
    def exploration(self, environment: Any, seed: int) -> dict[str, Any]:
        """The settings that determine exploration.

        Args:
            seed: Seed of the agent.
        """


@final
class Ddpg(OffPolicy):
    """Deep deterministic policy gradient."""

    algorithm = "DDPG"

    def exploration(self, environment: Any, seed: int) -> dict[str, Any]:
        """See `OffPolicy.exploration`: normal noise, after 25 random actions."""
        noise = FadingNoise(environment.action_space.shape[0], seed)
        return {"learning_starts": 25, "action_noise": noise}


@final
class Sac(OffPolicy):
    """Soft actor-critic."""

    algorithm = "SAC"

    def exploration(self, environment: Any, seed: int) -> dict[str, Any]:  # noqa: ARG002
        """See `OffPolicy.exploration`: a fixed entropy coefficient, after 10 random actions."""
        return {"learning_starts": 10, "learning_rate": 1e-3, "ent_coef": 0.03}


@final
class Ppo(ActorCritic):
    """Proximal policy optimisation: an update every 20 rounds, or every 2,048 with the library's settings."""

    algorithm = "PPO"

    def settings(self, environment: Any, rounds: int, seed: int) -> dict[str, Any]:  # noqa: ARG002
        """See `ActorCritic.settings`."""
        length = min(2048 if self.library else 20, rounds)
        # The batch size has to divide the number of rounds of an update.
        batch_size = max(size for size in range(1, 65) if length % size == 0)
        settings: dict[str, Any] = {"n_steps": length, "batch_size": batch_size}
        if not self.library:
            # Most early rewards are 0: normalised to variance 1, their advantages would be noise.
            settings |= {"learning_rate": 3e-3, "normalize_advantage": False}
        return settings
