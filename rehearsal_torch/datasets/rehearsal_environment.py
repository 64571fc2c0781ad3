"""Rehearsal worlds as Gymnasium environments: one decision an episode.

    reset:  the context of the next round          step: what follows; reward 1 where the outcome is desired, else 0.

The world says what happens in round t; an agent that is run for as many episodes as the world has rounds meets what a
rehearsal method meets there. After the last round comes the first again. `reset(seed=s)` begins at the first round of the
same world with seed s: equal seeds give equal contexts and noise, other seeds give others. Actions are points of a cube (see `alteration_code`).

Needs Gymnasium (`pip install "rehearsal-torch[rl]"`); nothing else in the package does. Importing this module makes
`gymnasium.make("rehearsal_torch/RideHailing-v0")` and `"rehearsal_torch/Bermuda-v0"` known.

Source: Qin et al. (2023), Sec. 6 (reward: whether the outcome falls into S); Towers et al. (2024) for the interface.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.datasets.alteration_code import AlterationCode
from rehearsal_torch.datasets.bermuda import Bermuda
from rehearsal_torch.datasets.changing_world import ChangingWorld
from rehearsal_torch.datasets.rehearsal_world import RehearsalWorld
from rehearsal_torch.datasets.ride_hailing import RideHailing

# By name, since the checks of types must pass where it is not installed.
gymnasium: Any = import_module("gymnasium")


class RehearsalEnvironment(gymnasium.Env):
    """A world, decision by decision.

    Args:
        world: What answers.
        scored: Whether each step's ``info`` says the true ``probability`` of success, that of ``no_action`` and the ``oracle``'s.
    """

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(self, world: RehearsalWorld | ChangingWorld, scored: bool = True) -> None:
        self.world, self.scored, self.code = world, scored, AlterationCode(world.task)
        self._made = world
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(world.task.context),), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.code.size,), np.float32)
        self.render_mode = None
        self._next, self._round = 0, -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """The next round's context.

        Args:
            seed: If given, the world's seed from here on, and its first round is the next; None goes on with the next round.
            options: ``{"round": t}`` goes to round t.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._next = 0
            # With its own seed, the world that was given: what it has computed already stays known.
            self.world = self._made if seed == self._made.seed else self._made.reseeded(seed)
        self._round = int((options or {}).get("round", self._next)) % self.world.count()
        self._next = self._round + 1
        return self._seen(), {"round": self._round}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """What follows an action; the episode is over.

        Raises:
            RuntimeError: before the first `reset`, or for a second step in an episode.
        """
        if self._round < 0:
            raise RuntimeError("an episode has one step: call reset() before the next")
        situation = self.world.situation(self._round)
        alteration = self.code.decode(torch.as_tensor(action, dtype=torch.float64))
        decision = Decision(alteration, float("nan"), status="no_action" if alteration is None else "recommended")
        row = self.world.respond(situation, decision)
        info: dict[str, Any] = {"round": self._round, "altered": list(decision.alteration.names) if decision.alteration else []}
        if self.scored:
            score = self.world.score(situation, decision)
            info |= {name: score[name] for name in ("probability", "no_action", "oracle")}
        seen, reward = self._seen(), float(self.world.desired(row.columns(self.world.task.outcomes))[0])
        self._round = -1
        return seen, reward, True, False, info

    def _seen(self) -> np.ndarray:
        given = self.world.situation(self._round).given
        return np.array([float(given[name]) for name in self.world.task.context], dtype=np.float32)


def ride_hailing(rounds: int = 10_000, seed: int = 0, released: bool = False) -> RehearsalEnvironment:
    """The ride-hailing route."""
    return RehearsalEnvironment(RideHailing(released, rows=10, contexts=rounds, seed=seed))


def bermuda(rounds: int = 10_000, seed: int = 0, preset: str = "qwz23") -> RehearsalEnvironment:
    """The reef of Bermuda."""
    return RehearsalEnvironment(Bermuda(preset, rows=10, contexts=rounds, seed=seed))


for _name, _made in (("RideHailing", ride_hailing), ("Bermuda", bermuda)):
    gymnasium.register(id=f"rehearsal_torch/{_name}-v0", entry_point=_made)
