"""Rehearsal worlds as Gymnasium environments: one decision an episode.

    reset:  the context of the next round
    step: what follows; reward 1 where the outcome is desired, else 0.

The world says what happens in round t; an agent that is run for as many episodes as the world has rounds
meets what a rehearsal method meets there. After the last round comes the first again. `reset(seed=s)` begins
at the first round of the same world with seed s: equal seeds give equal contexts and noise, other seeds give
others. Actions are points of a cube (see `alteration_code`).

Needs Gymnasium (`pip install "rehearsal-torch[rl]"`); nothing else in the package does. Importing this module
makes `gymnasium.make("rehearsal_torch/RideHailing-v0")` and `"rehearsal_torch/Bermuda-v0"` known.

Source: Qin et al. (2023), Sec. 6 (reward: whether the outcome falls into S); Towers et al. (2024) for the
interface.

Alterations as points of a cube, for agents that know no names.

An agent answers with a point of [-1, 1]^(m + k), m candidate sets and k variables that stand in some of them:
the largest of the first m numbers chooses the set, and the others are the values, -1 the lower and 1 the
upper bound; those of variables outside the set are ignored. With a single candidate set there is nothing to
choose, and m = 0.

Source: Qin et al. (2023), Sec. 6 (reinforcement learning on the same task; how an agent's action is read is
our choice).

What an agent did to a world, round by round.

A wrapper around a rehearsal environment that keeps, of the first T rounds, what was altered, whether the
outcome was desired, and the seconds that the agent took. What the agent does between two rounds, such as
learning from the first, counts towards the second. True probabilities are asked for afterwards, all rounds at
once: the world knows them in closed form, and it is quicker so.

Source: Qin et al. (2023), Sec. 6 (success rounds, true success probability).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.rehearsal.bermuda import Bermuda
from rehearsal_torch.problems.rehearsal.changing_world import ChangingWorld
from rehearsal_torch.problems.rehearsal.ride_hailing import RideHailing
from rehearsal_torch.problems.rehearsal.world import RehearsalWorld
from rehearsal_torch.spaces.box import Alteration


class AlterationCode:
    """The cube of a task's alterations.

    Args:
        task: Who plays which part.

    Attributes:
        choices: m.
        names: The k variables.
        size: m + k.
    """

    def __init__(self, task: RehearsalTask) -> None:
        self.candidates = task.candidates
        self.names = tuple(name for name in task.box.names if any(name in names for names in task.candidates))
        self.box = task.box.only(self.names)
        self.choices = len(self.candidates) if len(self.candidates) > 1 else 0
        self.size = self.choices + len(self.names)

    def decode(self, point: Sequence[float] | Tensor) -> Alteration:
        """The alteration that a point stands for; points outside the cube are moved to its surface.

        Raises:
            ValueError: if the point has another size, or is not a number somewhere.
        """
        numbers = torch.as_tensor(point, dtype=torch.float64).detach().reshape(-1)
        if len(numbers) != self.size or not bool(numbers.isfinite().all()):
            raise ValueError(
                f"expected {self.size} finite numbers, {self.choices} for the set and one each for "
                f"{list(self.names)}; got {numbers.tolist()}"
            )
        names = self.candidates[int(numbers[: self.choices].argmax())] if self.choices else self.candidates[0]
        values = self.box.lower + (numbers[self.choices :].clamp(-1.0, 1.0) + 1) / 2 * self.box.width
        return Alteration(names, values[[self.names.index(name) for name in names]])

    def encode(self, alteration: Alteration) -> Tensor:
        """A point that stands for an alteration of a candidate set, (m + k,); variables outside the set are
        in the middle.

        Raises:
            ValueError: if it alters no candidate set.
        """
        if tuple(alteration.names) not in self.candidates:
            raise ValueError(
                f"expected an alteration of one of {[list(names) for names in self.candidates]}; got "
                f"{list(alteration.names)}"
            )
        point = torch.zeros(self.size, dtype=torch.float64)
        if self.choices:
            point[: self.choices] = -1.0
            point[self.candidates.index(tuple(alteration.names))] = 1.0
        for name, value in zip(alteration.names, alteration.values, strict=True):
            place = self.names.index(name)
            width = self.box.width[place].clamp_min(1e-300)
            point[self.choices + place] = 2 * (value - self.box.lower[place]) / width - 1
        return point


# By name, since the checks of types must pass where it is not installed.
gymnasium: Any = import_module("gymnasium")


class RehearsalEnvironment(gymnasium.Env):
    """A world, decision by decision.

    Args:
        world: What answers.
        scored: Whether each step's ``info`` says the true ``probability`` of success, that of ``no_action``
            and the ``oracle``'s.
    """

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(self, world: RehearsalWorld | ChangingWorld, scored: bool = True) -> None:
        self.world, self.scored, self.code = world, scored, AlterationCode(world.task)
        self._made = world
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(world.task.context),), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.code.size,), np.float32)
        self.render_mode = None
        self._next, self._round = 0, -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The next round's context.

        Args:
            seed: If given, the world's seed from here on, and its first round is the next; None goes on with
                the next round.
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
        case = self.world.case(self._round)
        alteration = self.code.decode(torch.as_tensor(action, dtype=torch.float64))
        decision = Decision(
            alteration, float("nan"), status="no_action" if alteration is None else "recommended"
        )
        row = self.world.respond(case, decision)
        info: dict[str, Any] = {
            "round": self._round,
            "altered": list(decision.alteration.names) if decision.alteration else [],
        }
        if self.scored:
            score = self.world.score(case, decision)
            info |= {name: score[name] for name in ("probability", "no_action", "oracle")}
        seen, reward = self._seen(), float(self.world.desired(row.columns(self.world.task.outcomes))[0])
        self._round = -1
        return seen, reward, True, False, info

    def _seen(self) -> np.ndarray:
        given = self.world.case(self._round).given
        return np.array([float(given[name]) for name in self.world.task.context], dtype=np.float32)


def ride_hailing(rounds: int = 10_000, seed: int = 0, released: bool = False) -> RehearsalEnvironment:
    """The ride-hailing route."""
    return RehearsalEnvironment(RideHailing(released, rows=10, contexts=rounds, seed=seed))


def bermuda(rounds: int = 10_000, seed: int = 0, preset: str = "qwz23") -> RehearsalEnvironment:
    """The reef of Bermuda."""
    return RehearsalEnvironment(Bermuda(preset, rows=10, contexts=rounds, seed=seed))


for _name, _made in (("RideHailing", ride_hailing), ("Bermuda", bermuda)):
    gymnasium.register(id=f"rehearsal_torch/{_name}-v0", entry_point=_made)


@dataclass(frozen=True)
class PlayedRound:
    """A round that was played.

    Attributes:
        round: Which.
        alteration: What was altered.
        success: Whether the outcome was desired.
        seconds: What the agent took for it, of the processor's time.
    """

    round: int
    alteration: Alteration
    success: bool
    seconds: float


@dataclass(frozen=True)
class Truth:
    """What a world says of a round.

    Attributes:
        probability: Of a desired outcome after what was altered.
        oracle: The largest one possible, over the candidate sets and doing nothing.
    """

    probability: float
    oracle: float


class RecordedEnvironment(gymnasium.Wrapper):
    """An environment whose first rounds are recorded.

    Args:
        environment: What is played; its steps need not be scored.
        rounds: T, how many rounds are kept.

    Attributes:
        played: The rounds so far, T at most.
    """

    def __init__(self, environment: RehearsalEnvironment, rounds: int) -> None:
        super().__init__(environment)
        self.rounds = rounds
        self.played: list[PlayedRound] = []
        self._spent, self._left = 0.0, time.process_time()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """See `RehearsalEnvironment.reset`."""
        self._spent += time.process_time() - self._left
        found = self.env.reset(seed=seed, options=options)
        self._left = time.process_time()
        return found

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """See `RehearsalEnvironment.step`."""
        self._spent += time.process_time() - self._left
        found = self.env.step(action)
        if len(self.played) < self.rounds:
            alteration = self.env.code.decode(torch.as_tensor(action, dtype=torch.float64))
            self.played.append(PlayedRound(found[4]["round"], alteration, found[1] > 0, self._spent))
        self._spent, self._left = 0.0, time.process_time()
        return found


def truths(world: RehearsalWorld, played: Sequence[PlayedRound]) -> list[Truth]:
    """The true probabilities of rounds, one `Truth` a round."""
    if not played:
        return []
    contexts = world.given([world.case(each.round) for each in played])
    nothing = world.probability(contexts, (), contexts.new_empty(len(played), 0))
    oracle = torch.stack(
        [nothing, *(world.optimal(contexts, names)[1] for names in world.task.candidates)]
    ).amax(0)
    reached = torch.empty(len(played), dtype=torch.float64)
    for names in dict.fromkeys(each.alteration.names for each in played):
        places = [place for place, each in enumerate(played) if each.alteration.names == names]
        values = torch.stack([played[place].alteration.values for place in places])
        reached[places] = world.probability(contexts[places], names, values)
    return [Truth(float(one), float(best)) for one, best in zip(reached, oracle, strict=True)]
