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


@dataclass(frozen=True)
class Foresight:
    """What is known before acting.

    Attributes:
        identity: What the case is called in its data set.
        given: Known variables, name to value (...).
        feasible: Variables that may be set, name to (lower, upper).
    """

    identity: str
    given: dict[str, Tensor]
    feasible: dict[str, tuple[float, float]]

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
