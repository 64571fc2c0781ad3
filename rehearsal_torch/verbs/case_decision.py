"""One of several decisions, as lists of them hold it: a decision that knows its case, with a display of it.

    decision = model.decide(cases)[0]
    print(decision)          what to set, and the chances without and with it; warnings
    decision.to_frame()      one row
    decision.plot()          the claim with its interval
    decision                 in a notebook: a sentence and a table

It is a `Decision` in every other respect, and equals one of the same content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from rehearsal_torch.data.decision import Decision, DecisionContext

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from rehearsal_torch.verbs.decisions import Decisions


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseDecision(Decision):
    """A decision with its case.

    Attributes:
        name: What the case is called.
        case: The case; None if it is not known.
        label: The index of the case in the data frame from which it comes; None if it comes from elsewhere.
        wanted: The desired region in words; empty where these are too long.
        library: The library of the frames that `to_frame` returns where none is asked for.
        units: Variable to its unit, where it is known.
    """

    name: str = "1"
    case: DecisionContext | None = field(default=None, repr=False)
    label: "pd.Index | None" = field(default=None, repr=False)
    wanted: str = field(default="", repr=False)
    library: str = field(default="pandas", repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        decision: Decision,
        name: str,
        case: DecisionContext | None,
        label: Any,
        wanted: str,
        library: str,
        units: Mapping[str, str],
    ) -> Self:
        """A decision with its case.

        Args:
            name: What the case is called.
            case: The case; None if it is not known.
            label: Its index in a data frame, of length one; None if it has none.
            wanted: The desired region in words.
            units: Variable to its unit.
        """
        plain = {each.name: getattr(decision, each.name) for each in fields(Decision)}
        return cls(
            **plain, name=name, case=case, label=label, wanted=wanted, library=library, units=dict(units)
        )

    def sentence(self) -> str:
        """What to set, and the chances without and with it; or why nothing is set."""
        return self._alone().sentences()[0]

    def to_frame(self, library: str | None = None) -> Any:
        """One row, with the columns of `Decisions.to_frame`.

        Args:
            library: "pandas", "polars" or "pyarrow"; None for that in which the case was given.
        """
        return self._alone().to_frame(library)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the estimate with its interval, beside that for no action, as `Decisions.plot` does.

        Args:
            ax: Where to draw; None makes a new figure of matplotlib.pyplot.
        """
        return self._alone().plot(ax)

    def __eq__(self, other: object) -> bool:
        """Whether another decision has the same content, whatever its case is called."""
        if not isinstance(other, Decision):
            return NotImplemented
        content = [each.name for each in fields(Decision) if each.compare]
        return all(getattr(self, name) == getattr(other, name) for name in content)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join([self.sentence(), *self.warnings])

    def _repr_html_(self) -> str:
        from rehearsal_torch.reporting.decision_html import decision_html

        return decision_html(self.to_frame("pandas"), [self.sentence()])

    def _alone(self) -> "Decisions":
        """A list of this decision alone."""
        from rehearsal_torch.verbs.decisions import Decisions

        cases = () if self.case is None else [self.case]
        return Decisions([self], cases, self.label, self.wanted, self.library, self.units)
