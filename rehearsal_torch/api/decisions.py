"""Collections of decisions, as verbs return them: a list, with a data frame, a figure and HTML.

decisions = rt.rehearse(frame, task, cases)
print(decisions)         a sentence for each of the first cases
decisions.to_frame()     one row per case
decisions.plot()         claims with intervals, case by case
decisions                in a notebook: a sentence and a table
decisions[0]             one of them, with the same methods

One of them is a `Decision` that knows its case, and equals one of the same content.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import said
from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.finding import doubted, reason_of
from rehearsal_torch.data.mean_gain import Answer, Overall, overall
from rehearsal_torch.data.tables.in_memory import in_library
from rehearsal_torch.reporting.decision_frame import (
    decision_frame,
    decision_html,
    doubts,
    in_all,
    quantity,
    summary,
)
from rehearsal_torch.reporting.page.sentences import chances, headline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseDecision(Decision):
    """A decision with its case.

    Attributes:
        name: What the case is called.
        label: The index of the data frame of all cases, and the place in it.
        wanted: The desired region in words; empty where these are too long.
        units: Variable to its unit, where it is known.
    """

    name: str = "1"
    case: DecisionContext | None = field(default=None, repr=False)
    label: "tuple[pd.Index, int] | None" = field(default=None, repr=False)
    wanted: str = field(default="", repr=False)
    library: str = field(default="pandas", repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)

    def sentence(self) -> str:
        """What to set, and the chances without and with it; or why nothing is set."""
        return self._alone().sentences()[0]

    def to_frame(self, library: str | None = None) -> Any:
        """One row, as `Decisions.to_frame` has it."""
        return self._alone().to_frame(library)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the estimate with its interval, beside that for no action, as `Decisions.plot` does."""
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
        return decision_html(self.to_frame("pandas"), [self.sentence()])

    def _alone(self) -> "Decisions":
        cases = () if self.case is None else [self.case]
        labels = None if self.label is None else self.label[0][[self.label[1]]]
        return Decisions([self], cases, labels, self.wanted, self.library, self.units)


SHOWN = 10


class Decisions(list[Decision]):
    """Decisions, in the order of their cases.

    Attributes:
        cases: The cases, in the same order; without them, decisions are numbered from 1, and no context is
            shown.
        labels: The index of the data frame from which the cases come; None if they come from elsewhere.
        wanted: The desired region in words (`data.codings.decision_texts`); empty where these are too long.
        library: The library of the frames of `to_frame` where none is asked for.
        units: Variable to its unit, where it is known.

    Raises:
        ValueError: if there is not one case, or not one label, for each decision.
    """

    def __init__(
        self,
        decisions: Iterable[Decision],
        cases: Sequence[DecisionContext] = (),
        labels: "pd.Index | None" = None,
        wanted: str = "",
        library: str = "pandas",
        units: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(decisions)
        self.cases, self.labels, self.wanted, self.library = tuple(cases), labels, wanted, library
        self.units = dict(units or {})
        for what, given in (("case", self.cases or self), ("label", self if labels is None else labels)):
            if len(given) != len(self):
                raise ValueError(f"expected one {what} for each of {len(self)} decisions; got {len(given)}")
        for row, decision in enumerate(self):
            # A decision of another class has displays of its own.
            if type(decision) is Decision:
                case = self.cases[row] if self.cases else None
                self[row] = decision.as_class(
                    CaseDecision,
                    name=str(row + 1) if case is None else case.identity,
                    case=case,
                    label=None if labels is None else (labels, row),
                    wanted=wanted,
                    library=library,
                    units=self.units,
                )

    def to_frame(self, library: str | None = None) -> Any:
        """One row per case: what to set (``set/NAME``), the estimate with its interval, the estimate for no
        action, warnings and context (``given/NAME``); `reporting.decision_frame` says what each column
        means. The index is that of the cases' data frame, if they came from one of pandas.

        Args:
            library: "pandas", "polars" or "pyarrow"; None for that in which the cases were given. Where
                pandas has NaN, the others have a missing value.
        """
        return in_library(self._frame(), library or self.library)

    def _frame(self) -> "pd.DataFrame":
        of = {column: each.name for each in self.codings.values() for column in each.columns}
        feasible = [name for each in self.cases if isinstance(each, RehearsalCase) for name in each.feasible]
        actions = dict.fromkeys(of.get(name, name) for name in feasible)
        return decision_frame(self._lines(), list(actions), self.labels)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the estimate of each case with its interval, beside that for no action, into `ax` or a new
        figure.
        """
        from rehearsal_torch.reporting.figure_style import drawing
        from rehearsal_torch.reporting.figures.case_figures import draw_decisions_into

        with drawing():
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots(layout="constrained")
            draw_decisions_into(ax, self._frame(), quantity(self._lines()))
        return ax

    @property
    def overall(self) -> Overall | None:
        """What they come to in all cases together, by the draws that these have in common; None where the
        method has none, or nothing is altered.
        """
        return overall(list(map(_answer, self)))

    def summary(self) -> str:
        """What they come to in all cases together, in a sentence: the mean chances without and with them;
        where the method has no draws of its gain, how many cases have which status, and the mean estimates.
        Before it, where that is so, that the model is not one to act on alone.
        """
        whole = self.overall
        last = summary(self._frame(), quantity(self._lines()), self.wanted)
        first = doubts(each for decision in self for each in decision.findings)
        return " ".join([*first, last if whole is None else in_all(whole, self.wanted)])

    def sentences(self) -> list[str]:
        """A sentence or two for each case, as in the report: what to set, and the chances without and with
        it; or why nothing is. Where they lie outside the data, that reason in place of the chances, as in
        `WhatIf.sentence`; the frame keeps the numbers.
        """
        sentences = []
        for line in self._lines():
            parts = [headline(line, self.units), *chances(line, self.wanted)]
            if line.get("alteration") is None and (reason := reason_of(line)):
                parts.append(f"Why: {reason}.")
            sentences.append(f"Case {line['identity']}: {' '.join(part for part in parts if part)}")
        return sentences

    def __str__(self) -> str:
        more = len(self) - SHOWN
        rest = [f"... and {more} more cases: see sentences() and to_frame()"] if more > 0 else []
        first, *last = self._sentences()
        if self.overall is None:
            return "\n".join([*self.sentences()[:SHOWN], *rest, first, *last])
        return "\n".join([first, *self.sentences()[:SHOWN], *rest, *last])

    def _repr_html_(self) -> str:
        return decision_html(self._frame(), self._sentences())

    def _sentences(self) -> list[str]:
        return [self.summary()]

    def _lines(self) -> list[dict[str, Any]]:
        facts = [each.facts() for each in self.cases] or [
            {"identity": each.name if isinstance(each, CaseDecision) else str(number)}
            for number, each in enumerate(self, 1)
        ]
        pairs = zip(facts, self, strict=True)
        return [said({**case, **decision.to_dict()}, self.codings) for case, decision in pairs]

    @property
    def codings(self) -> dict[str, Coding]:
        """What texts are as numbers: tables have the texts, decisions the numbers."""
        cases = (each for each in self.cases if isinstance(each, RehearsalCase))
        return {coding.name: coding for each in cases for coding in each.codings}


def _answer(decision: Decision) -> Answer:
    names = () if decision.alteration is None else decision.alteration.names
    before = None if decision.before is None else decision.before.point
    draws = decision.draws
    at_most_may = doubted(decision.findings, draws is not None and draws.untouched)
    return Answer(decision.status, names, before, at_most_may, draws)
