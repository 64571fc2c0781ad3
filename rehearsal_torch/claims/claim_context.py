"""The context that annotators of decisions share: objective, cases and certificates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding

Certificate = Mapping[str, float | str]


@dataclass(frozen=True)
class Context:
    """The objective and cases of a batch of decisions.

    Attributes:
        objective: The objective that the search has maximised.
        cases: One case for each decision, in order.
        declines: Whether a decision may be withdrawn; if False, it gets a finding instead: in presets that
            reproduce a publication, and methods that learn online, where acting yields information.
        certify: Returns the certificate of a decision; None for no certificates.
    """

    objective: Any
    cases: Sequence[Any]
    declines: bool = True
    certify: Callable[[Decision], Certificate] | None = None
    _certified: dict[int, Certificate | None] = field(default_factory=dict, repr=False)

    def against(self, decision: Decision, finding: Finding) -> Decision:
        """The decision withdrawn for a finding, or with it where none may be withdrawn."""
        return decision.withdrawn(finding) if self.declines else decision.told([finding])

    def certificate(self, place: int, decision: Decision) -> Certificate | None:
        """The certificate of the decision at an index, computed once; None without certificates."""
        if place not in self._certified:
            self._certified[place] = None if self.certify is None else self.certify(decision)
        return self._certified[place]


Annotator = Callable[[Context, Sequence[Decision]], list[Decision]]
