"""Decisions: what a search answers, with what speaks for it.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (outcome, effective branching factor); Qin et al. (2023), Alg. 1
(refusing is an answer).
"""

from dataclasses import dataclass, field
from typing import Any

from rehearsal_torch.spaces.alteration import Alteration


@dataclass(frozen=True)
class Decision:
    """What to alter, and why.

    Attributes:
        alteration: What to set; None where nothing is recommended.
        value: What the objective says the alteration is worth, in the objective's unit.
        evidence: Plain numbers, texts and lists, equal on every run of the same seed: how the value was found
            (``observed``, ``improvement``, ``actions``, ``expanded``, ``gap``, ``proven``, ...).
        reason: Why nothing is recommended, or what the reader must know; empty where nothing needs saying.
        seconds: Wall-clock time of the search.
    """

    alteration: Alteration | None
    value: float
    evidence: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without `seconds` (which differ from run to run)."""
        alteration = None
        if self.alteration is not None:
            alteration = dict(zip(self.alteration.names, self.alteration.values.tolist(), strict=True))
        return {"alteration": alteration, "value": self.value, "reason": self.reason, **self.evidence}
