"""Actor-critic agents: DDPG, SAC and PPO.

    DDPG    critic Q(x, a) ~ E[r | x, a],      actor a = mu(x) ascends Q(x, mu(x)),      acts mu(x) + noise
    SAC     the same critic,                   actor pi(a | x) ascends E[Q] + entropy
    PPO     baseline V(x),                     actor pi(a | x) ascends the clipped ratio of new to old policy
            x advantage

An episode is one step, hence no value is carried over and the discount is 0. The implementations are those of
Stable-Baselines3; needs `pip install "rehearsal-torch[rl]"`.

Its settings are meant for a million steps: DDPG and SAC act at random for the first 100, and PPO learns for
the first time after 2,048. `library=True` keeps those; the others, chosen on seeds that no result uses, learn
from the first rounds on.

Source: Lillicrap et al. (2016); Haarnoja et al. (2018); Schulman et al. (2017); Raffin et al. (2021) for the
implementations.
"""

from importlib import import_module
from typing import Any, final

import numpy as np

from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.studies.online.agent import Agent


@final
class FadingNoise:
    """Normal noise on actions whose deviation after t actions is .3 / (1 + t / 300): exploration that ends
    where rounds are many.

    Args:
        size: Numbers an action has.
        seed: Decides the noise.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.stream, self.count = size, numpy_generator(seed), 0

    def __call__(self) -> np.ndarray:
        """The next action's noise, (size,)."""
        self.count += 1
        return self.stream.normal(0.0, 0.3 / (1 + (self.count - 1) / 300), self.size).astype(np.float32)

    def reset(self) -> None:
        """Called at the end of an episode, which is one action: nothing starts again."""


@final
class Ddpg(Agent):
    """Deep deterministic policy gradient.

    Args:
        library: Keeps the settings of Stable-Baselines3.
        device: Where its networks are; they are too small to gain from an accelerator.
    """

    def __init__(self, library: bool = False, device: str = "cpu") -> None:
        self.library, self.device = library, device

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`."""
        library = import_module("stable_baselines3")
        settings: dict[str, Any] = {}
        if not self.library:
            settings = {
                **_quick(),
                "learning_starts": 25,
                "action_noise": FadingNoise(environment.action_space.shape[0], seed),
            }
        agent = library.DDPG(
            "MlpPolicy",
            environment,
            gamma=0.0,
            buffer_size=max(rounds, 1000),
            seed=seed,
            device=self.device,
            **settings,
        )
        agent.learn(rounds)


@final
class Sac(Agent):
    """Soft actor-critic.

    Args:
        library: Keeps the settings of Stable-Baselines3.
        device: Where its networks are.
    """

    def __init__(self, library: bool = False, device: str = "cpu") -> None:
        self.library, self.device = library, device

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`."""
        library = import_module("stable_baselines3")
        settings: dict[str, Any] = (
            {}
            if self.library
            else {**_quick(), "learning_starts": 10, "learning_rate": 1e-3, "ent_coef": 0.03}
        )
        agent = library.SAC(
            "MlpPolicy",
            environment,
            gamma=0.0,
            buffer_size=max(rounds, 1000),
            seed=seed,
            device=self.device,
            **settings,
        )
        agent.learn(rounds)


@final
class Ppo(Agent):
    """Proximal policy optimisation.

    Args:
        library: Keeps the settings of Stable-Baselines3, 2,048 rounds to an update (all of them, where there
            are fewer).
        device: Where its networks are.
    """

    def __init__(self, library: bool = False, device: str = "cpu") -> None:
        self.library, self.device = library, device

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`."""
        library = import_module("stable_baselines3")
        length = min(2048 if self.library else 20, rounds)
        settings: dict[str, Any] = {
            "n_steps": length,
            "batch_size": max(size for size in range(1, 65) if length % size == 0),
        }
        if not self.library:
            # Rewards are mostly 0 at first: scaled to variance 1, what is left of the advantages is noise.
            settings |= {"learning_rate": 3e-3, "normalize_advantage": False}
        agent = library.PPO("MlpPolicy", environment, gamma=0.0, seed=seed, device=self.device, **settings)
        agent.learn(rounds)


def _quick() -> dict[str, Any]:
    """Of DDPG and SAC: smaller networks and more steps on each round's reward. New at each call, since the
    library writes into it.
    """
    return {"batch_size": 64, "gradient_steps": 4, "policy_kwargs": {"net_arch": [64, 64]}}
