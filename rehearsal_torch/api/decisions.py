"""Lists of decisions with a data frame, a figure and HTML, as `rehearse` and `RehearsalModel.decide` return.

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
from rehearsal_torch.data.codings.decision_texts import line_in_texts
from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.finding import doubted, reason_of
from rehearsal_torch.data.mean_gain import Answer, Overall, overall
from rehearsal_torch.data.tables.in_memory import in_library
from rehearsal_torch.reporting.decision_frame import (
    counts_of,
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
    """A decision with its case, the index and position of its row (`label`), and the region in words."""

    name: str = "1"
    case: DecisionContext | None = field(default=None, repr=False)
    label: "tuple[pd.Index, int] | None" = field(default=None, repr=False)
    wanted: str = field(default="", repr=False)
    library: str = field(default="pandas", repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)

    def sentence(self) -> str:
        """What to set, and the chances without and with it; or why nothing is set."""
        return self._as_list().sentences()[0]

    def to_frame(self, library: str | None = None) -> Any:
        """One row, as `Decisions.to_frame` has it."""
        return self._as_list().to_frame(library)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the estimate with its interval, beside that for no action, as `Decisions.plot` does."""
        return self._as_list().plot(ax)

    def __eq__(self, other: object) -> bool:
        """Whether another decision has the same content, whatever its case is called."""
        if not isinstance(other, Decision):
            return NotImplemented
        names = [attribute.name for attribute in fields(Decision) if attribute.compare]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join([self.sentence(), *self.warnings])

    def _repr_html_(self) -> str:
        return decision_html(self.to_frame("pandas"), [self.sentence()])

    def _as_list(self) -> "Decisions":
        cases = () if self.case is None else [self.case]
        labels = None if self.label is None else self.label[0][[self.label[1]]]
        return Decisions([self], cases, labels, self.wanted, self.library, self.units)


SHOWN = 10


class Decisions(list[Decision]):
    """Decisions, in the order of their cases. A ValueError without a case or label for each.

    Attributes:
        cases: In the same order; without them, decisions are numbered from 1 and show no context.
        labels: The index of the data frame from which the cases come; None if they come from elsewhere.
        wanted: The desired region in words (`data.codings.decision_texts`); empty where these are too long.
        library: The library of the frames of `to_frame` where none is asked for.
        units: Variable to its unit, where it is known.
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
        for noun, values in (("case", self.cases or self), ("label", self if labels is None else labels)):
            if len(values) != len(self):
                raise ValueError(f"expected one {noun} for each of {len(self)} decisions; got {len(values)}")
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
        """One row per case (`reporting.decision_frame`): what to set (``set/NAME``), the estimate with its
        interval, that for no action, warnings and context (``given/NAME``), with the index of pandas' cases.
        `library` is "pandas", "polars" or "pyarrow"; None for that of the cases.
        """
        return in_library(self._frame(), library or self.library)

    def _frame(self) -> "pd.DataFrame":
        variable_of = {column: coding.name for coding in self.codings.values() for column in coding.columns}
        feasible = [name for case in self.cases if isinstance(case, RehearsalCase) for name in case.feasible]
        actions = dict.fromkeys(variable_of.get(name, name) for name in feasible)
        return decision_frame(self._records(), list(actions), self.labels)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws each case's estimate with its interval beside that for no action (`ax`: new by default)."""
        from rehearsal_torch.reporting.figure_style import drawing, given_or_new
        from rehearsal_torch.reporting.figures.case_figures import draw_decisions_into

        with drawing():
            ax = given_or_new(ax)
            draw_decisions_into(ax, self._frame(), quantity(self._records()))
        return ax

    @property
    def overall(self) -> Overall | None:
        """The mean over all cases, by their common draws; None without draws, or if nothing is altered."""
        return overall(list(map(_answer, self)))

    def summary(self) -> str:
        """The mean chances without and with the decisions, in a sentence; without draws, counts of statuses
        and mean estimates. Before it, where so, that the model is not one to act on alone.
        """
        pooled = self.overall
        last = summary(self._frame(), quantity(self._records()), self.wanted)
        first = doubts(decision.findings for decision in self)
        if pooled is not None:
            last = in_all(pooled, self.wanted, counts_of(self._records()))
        return " ".join([*first, last])

    def sentences(self) -> list[str]:
        """For each case what to set and the chances without and with it, as in the report, or why nothing;
        outside the data, that reason in place of the chances (the frame keeps the numbers).
        """
        sentences = []
        for line in self._records():
            texts = [headline(line, self.units), *chances(line, self.wanted)]
            if line.get("alteration") is None and (reason := reason_of(line)):
                texts.append(f"Why: {reason}.")
            sentences.append(f"Case {line['identity']}: {' '.join(text for text in texts if text)}")
        return sentences

    def __str__(self) -> str:
        count = len(self) - SHOWN
        omitted = [f"... and {count} more cases: see sentences() and to_frame()"] if count > 0 else []
        first, *last = self._sentences()
        if self.overall is None:
            return "\n".join([*self.sentences()[:SHOWN], *omitted, first, *last])
        return "\n".join([first, *self.sentences()[:SHOWN], *omitted, *last])

    def _repr_html_(self) -> str:
        return decision_html(self._frame(), self._sentences())

    def _sentences(self) -> list[str]:
        return [self.summary()]

    def _records(self) -> list[dict[str, Any]]:
        facts = [case.facts() for case in self.cases] or [
            {"identity": case.name if isinstance(case, CaseDecision) else str(number)}
            for number, case in enumerate(self, 1)
        ]
        pairs = zip(facts, self, strict=True)
        return [line_in_texts({**case, **decision.to_dict()}, self.codings) for case, decision in pairs]

    @property
    def codings(self) -> dict[str, Coding]:
        """What texts are as numbers: tables have the texts, decisions the numbers."""
        cases = (case for case in self.cases if isinstance(case, RehearsalCase))
        return {coding.name: coding for case in cases for coding in case.codings}


def _answer(decision: Decision) -> Answer:
    names = () if decision.alteration is None else decision.alteration.names
    before = None if decision.before is None else decision.before.point
    draws = decision.draws
    at_most_may = doubted(decision.findings, draws is not None and draws.untouched)
    return Answer(decision.status, names, before, at_most_may, draws)
