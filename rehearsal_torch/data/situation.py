"""Situations: what is known at the moment of deciding.

In foresight some variables are known and an alteration of others is sought before the rest happens; in hindsight
the whole episode is known and the question is what other actions would have made of it.

Source: Du et al. (2026), Sec. 2 (context before alteration); Tsirtsis and Gomez-Rodriguez (2023), Sec. 3.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.spaces.alteration import Alteration
from rehearsal_torch.spaces.box import margin

# So much of an interval may rounding carry a value beyond its bounds.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Foresight:
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
            raise ValueError(f"{self.identity}: {unknown} are missing or infinite: measure them first, or leave them out of what is given")
        for name, (lower, upper) in self.feasible.items():
            if not lower <= upper:
                raise ValueError(f"{self.identity}: {name} may be set within [{lower:g}, {upper:g}]: expected lower <= upper")

    def check(self, alteration: Alteration | None) -> None:
        """Refuses an alteration that is not open here; None alters nothing.

        Args:
            alteration: Values (..., k).

        Raises:
            ValueError: if it sets a variable that may not be set, or sets one outside its bounds.
        """
        for name, value in () if alteration is None else zip(alteration.names, alteration.values.unbind(-1), strict=True):
            if name not in self.feasible:
                raise ValueError(f"{self.identity}: {name} may not be set; feasible are {list(self.feasible)}")
            lower, upper = self.feasible[name]
            known = [bound for bound in (lower, upper) if abs(bound) < float("inf")] or [1.0]
            # An open interval has no width: the size of its bound stands in.
            ends = torch.tensor([lower, upper] if len(known) == 2 else [0.0, abs(known[0])], dtype=torch.float64)
            slack = float(margin(ends[0], ends[1], ROUNDING))
            if not bool(((value >= lower - slack) & (value <= upper + slack)).all()):
                raise ValueError(f"{self.identity}: {name} may be set within [{lower:g}, {upper:g}]; got {value.tolist()}: move it inside, or widen the bounds")

    def facts(self) -> dict[str, Any]:
        """Plain data that tells people which situation it is: identity, and what was known."""
        return {"identity": self.identity, "given": {name: value.tolist() for name, value in self.given.items()}}


@dataclass(frozen=True)
class Hindsight:
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


Situation = Foresight | Hindsight
