"""Decisions: what a search answers, with what speaks for it.

A decision is one of three answers. *recommended*: set this. *no action*: by the method's own estimate nothing
does better than doing nothing, or doing nothing was the method's choice. *refused*: the method cannot answer,
and says why; that nothing is altered is then no advice.

Worlds and reports read the fields below and nothing else. A search of one's own that fills `alteration` and
`value` is scored and shown like any other; the more it fills, the more a report can show.

Source: Qin et al. (2023), Sec. 4.2 (refusing is an answer); Tsirtsis and Gomez-Rodriguez (2023), Sec. 5
(outcome and effort).

Situations: what is known at the moment of deciding.

In foresight some variables are known and an alteration of others is sought before the rest happens; in
hindsight the whole episode is known and the question is what other actions would have made of it.

Source: Du et al. (2026), Sec. 2 (context before alteration); Tsirtsis and Gomez-Rodriguez (2023), Sec. 3.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.spaces.box import Alteration, margin

# So much of an interval may rounding carry a value beyond its bounds.
ROUNDING = 1e-6


@dataclass(frozen=True)
class RehearsalCase:
    """What is known before acting.

    Attributes:
        identity: What the case is called in its data set.
        given: Known variables, name to value (...).
        feasible: Variables that may be set, name to (lower, upper).

    Raises:
        ValueError: if something given is no number, or a variable may be set to nothing.
    """

    identity: str
    given: dict[str, Tensor]
    feasible: dict[str, tuple[float, float]]

    def __post_init__(self) -> None:
        unknown = [name for name, value in self.given.items() if not bool(value.isfinite().all())]
        if unknown:
            raise ValueError(
                f"{self.identity}: {unknown} are missing or infinite: measure them first, or leave them out "
                "of what is given"
            )
        for name, (lower, upper) in self.feasible.items():
            if not lower <= upper:
                raise ValueError(
                    f"{self.identity}: {name} may be set within [{lower:g}, {upper:g}]: expected lower <= "
                    "upper"
                )

    def check(self, alteration: Alteration | None) -> None:
        """Refuses an alteration that is not open here; None alters nothing.

        Args:
            alteration: Values (..., k).

        Raises:
            ValueError: if it sets a variable that may not be set, or sets one outside its bounds.
        """
        for name, value in (
            () if alteration is None else zip(alteration.names, alteration.values.unbind(-1), strict=True)
        ):
            if name not in self.feasible:
                raise ValueError(
                    f"{self.identity}: {name} may not be set; feasible are {list(self.feasible)}"
                )
            lower, upper = self.feasible[name]
            known = [bound for bound in (lower, upper) if abs(bound) < float("inf")] or [1.0]
            # An open interval has no width: the size of its bound stands in.
            ends = torch.tensor(
                [lower, upper] if len(known) == 2 else [0.0, abs(known[0])], dtype=torch.float64
            )
            slack = float(margin(ends[0], ends[1], ROUNDING))
            if not bool(((value >= lower - slack) & (value <= upper + slack)).all()):
                raise ValueError(
                    f"{self.identity}: {name} may be set within [{lower:g}, {upper:g}]; got "
                    f"{value.tolist()}: move it inside, or widen the bounds"
                )

    def facts(self) -> dict[str, Any]:
        """Plain data that tells people which situation it is: identity, and what was known."""
        return {
            "identity": self.identity,
            "given": {name: value.tolist() for name, value in self.given.items()},
        }


@dataclass(frozen=True)
class EpisodeCase:
    """An episode that has happened.

    Attributes:
        episode: What was observed.
        fixed: (T,), true at the time steps whose action may not be changed; empty for none.
    """

    episode: Episode
    fixed: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))

    @property
    def identity(self) -> str:
        """What the case is called in its data set."""
        return self.episode.identity

    def facts(self) -> dict[str, Any]:
        """Plain data that tells people which situation it is: its identity."""
        return {"identity": self.identity}


DecisionContext = RehearsalCase | EpisodeCase


Status = Literal["recommended", "no_action", "refused"]


@dataclass(frozen=True)
class Estimate:
    """A number that a method claims, with its interval where it has one.

    Attributes:
        point: The estimate.
        of: What is estimated, in words: "probability of a desired outcome", "return", ...
        lower: Lower end of the interval; None where the method has none.
        upper: Upper end of the interval; None where the method has none.
        level: Probability with which the interval is meant to hold the truth; None without an interval.

    Raises:
        ValueError: if a number is not finite, an end stands on the wrong side, or interval and level do not
            come together.
    """

    point: float
    of: str
    lower: float | None = None
    upper: float | None = None
    level: float | None = None

    def __post_init__(self) -> None:
        ends = (self.lower, self.upper, self.level)
        if any(end is None for end in ends) != all(end is None for end in ends):
            raise ValueError(f"an interval has lower, upper and level, or none of them; got {ends}")
        numbers = [self.point, *(end for end in ends if end is not None)]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError(
                f"expected finite numbers for the {self.of}; got {numbers}: leave an estimate out that is "
                "none"
            )
        if self.lower is not None and self.upper is not None and not self.lower <= self.point <= self.upper:
            raise ValueError(
                f"expected lower <= point <= upper; got {self.lower}, {self.point}, {self.upper}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: ``point``, ``of``, and ``lower``, ``upper``, ``level`` where there is an
        interval.
        """
        interval = (
            {} if self.lower is None else {"lower": self.lower, "upper": self.upper, "level": self.level}
        )
        return {"point": self.point, "of": self.of, **interval}


@dataclass(frozen=True)
class Decision:
    """What to alter, and why.

    Attributes:
        alteration: What to set, names and values in their units; None unless something is recommended. For an
            episode the names are ``action[t]`` for the changed time steps t = 0, 1, ..., the values action
            numbers.
        value: What the objective says the answer is worth, in the objective's unit; of an alteration that was
            taken back, what that was worth.
        status: ``recommended``, ``no_action`` or ``refused``.
        estimate: What the method claims of its answer: the probability of a desired outcome after the
            alteration, the return of an episode, the expected reward of the recommendation. Of a refused or
            rejected alteration it says what was found.
        baseline: The same with nothing altered.
        recommendation: Trials only: what to keep for good, as opposed to what to try next; None where they
            are the same.
        doses: Episodes only: what each changed action stands for, name of the alteration to doses in their
            units. Where it is left out, a data set reads the action numbers by its own dose levels.
        warnings: What the reader must know before acting, a sentence each.
        reason: Why nothing is recommended, or how the answer was come by; empty where nothing needs saying.
        trace: How the search went: plain numbers, texts and lists, equal on every run of the same seed.
            Nothing that decides what an answer is worth.
        seconds: Wall-clock time of the search.

    Raises:
        ValueError: if status and alteration contradict each other, or a value to set is not finite.
    """

    alteration: Alteration | None
    value: float
    status: Status = field(default="recommended", kw_only=True)
    estimate: Estimate | None = field(default=None, kw_only=True)
    baseline: Estimate | None = field(default=None, kw_only=True)
    recommendation: Alteration | None = field(default=None, kw_only=True)
    doses: Mapping[str, tuple[float, ...]] = field(default_factory=dict, kw_only=True)
    warnings: tuple[str, ...] = field(default=(), kw_only=True)
    reason: str = field(default="", kw_only=True)
    trace: dict[str, Any] = field(default_factory=dict, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "warnings", tuple(self.warnings))
        if self.status not in get_args(Status):
            raise ValueError(f"expected a status among {list(get_args(Status))}; got {self.status!r}")
        if (self.alteration is not None) != (self.status == "recommended"):
            right = "status='no_action' or status='refused'" if self.alteration is None else "alteration=None"
            raise ValueError(
                f"status {self.status!r} does not go with the alteration {self.alteration}: expected {right}"
            )
        if self.alteration is not None and not self.alteration.names:
            raise ValueError("an alteration sets at least one variable: use status='no_action' for none")
        for what in (self.alteration, self.recommendation):
            if what is not None and not bool(what.values.isfinite().all()):
                raise ValueError(
                    f"a decision sets {list(what.names)} to {what.values.tolist()}: expected finite numbers"
                )

    @property
    def improvement(self) -> float:
        """(estimate - baseline) / |baseline|, the relative improvement that is claimed.

        0 where nothing is altered by advice, or the baseline is 0; nan for a refusal, and without claims.
        """
        if self.status == "no_action":
            return 0.0
        if self.status == "refused" or self.estimate is None or self.baseline is None:
            return math.nan
        return (
            (self.estimate.point - self.baseline.point) / abs(self.baseline.point)
            if self.baseline.point
            else 0.0
        )

    def actions(self) -> dict[int, int]:
        """Episodes: the changed time steps and their action numbers; empty where nothing is changed.

        Raises:
            ValueError: if the alteration is none of an episode's actions, or an action's number is not whole.
        """
        if self.alteration is None:
            return {}
        values = self.alteration.values.tolist()
        if not all(isinstance(value, int | float) and value == round(value) for value in values):
            raise ValueError(
                "an episode's actions are whole numbers; got "
                f"{dict(zip(self.alteration.names, values, strict=False))}"
            )
        return {
            action_step(name): round(value) for name, value in zip(self.alteration.names, values, strict=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without `seconds` (which differ from run to run); parts that only some jobs
        have are left out where empty.
        """
        content: dict[str, Any] = {
            "status": self.status,
            "alteration": _plain(self.alteration),
            "value": self.value,
        }
        content["estimate"] = None if self.estimate is None else self.estimate.to_dict()
        content["baseline"] = None if self.baseline is None else self.baseline.to_dict()
        if self.recommendation is not None:
            content["recommendation"] = _plain(self.recommendation)
        if self.doses:
            content["doses"] = {name: list(doses) for name, doses in self.doses.items()}
        return content | {"warnings": list(self.warnings), "reason": self.reason, "trace": self.trace}


def action_name(step: int) -> str:
    """What the action of a time step is called in an alteration."""
    return f"action[{step}]"


def action_step(name: str) -> int:
    """The time step of an action's name; the inverse of `action_name`.

    Raises:
        ValueError: if the name is none of an action.
    """
    digits = name.removeprefix("action[").removesuffix("]")
    if not digits.isascii() or not digits.isdigit() or action_name(int(digits)) != name:
        raise ValueError(f"an episode's alteration sets action[0], action[1], ...; got {name!r}")
    return int(digits)


def _plain(alteration: Alteration | None) -> dict[str, Any] | None:
    """Name to value; of a batch (q, k) to its q values."""
    if alteration is None:
        return None
    values = alteration.values
    return dict(zip(alteration.names, (values.mT if values.ndim > 1 else values).tolist(), strict=True))
