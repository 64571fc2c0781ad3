"""What `look_back` returns: the decision for one episode, with its course as a frame, a figure and HTML.

    decision = rt.look_back(model, episode)
    decision.to_frame()      one row per changed time step
    decision.plot()          the observed course and the counterfactual one
    decision                 in a notebook: a sentence and a table

It is a `Decision` in every other respect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, Self

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.tables.in_memory import in_library
from rehearsal_torch.reporting.decision_frame import table_html
from rehearsal_torch.reporting.wording import Wording, wording
from rehearsal_torch.round_line import Round

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FROM, TO = "from/", "to/"


@dataclass(frozen=True, kw_only=True)
class LookedBack(Decision):
    """The decision for one episode, with its course.

    Attributes:
        case: The episode, and which of its actions are fixed.
        trajectory: The rewards, doses and actions step by step, as observed and under the decision
            (`return_record`).
        words: What the numbers are called.
    """

    case: EpisodeCase = field(repr=False, compare=False)
    trajectory: Mapping[str, Any] = field(repr=False, compare=False)
    words: Wording = field(default=Wording(), repr=False, compare=False)

    @classmethod
    def of(cls, decided: Round, words: Wording) -> Self:
        """The decision of a round with one episode."""
        assert isinstance(decided.case, EpisodeCase)
        content = {each.name: getattr(decided.decision, each.name) for each in fields(Decision)}
        return cls(**content, case=decided.case, trajectory=decided.trajectory, words=words)

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per changed time step, as a data frame of pandas, polars or pyarrow (`library`): ``time``
        (0 is the first, whatever the table calls it), ``action`` and ``observed_action``, their numbers; and
        for each dose ``from/NAME``, as it was given, and ``to/NAME``, in the dose's unit, or the names of its
        levels where they have some. Both are the same where a dose keeps its level.
        """
        import pandas as pd

        names = self._doses()
        heads = ["time", "observed_action", "action"]
        heads += [f"{part}{name}" for name in names for part in (FROM, TO)]
        observed, rows = self.trajectory["observed_actions"], []
        for time, action in sorted(self.actions().items()):
            doses = [dose for pair in self._changes(time) for dose in pair]
            rows.append([time, observed[time], action, *doses])
        return in_library(pd.DataFrame(rows, columns=heads), library)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the observed course and the one under the decision, with the changed steps shaded."""
        from rehearsal_torch.reporting.figures.episodes import draw_course
        from rehearsal_torch.reporting.style import drawing

        with drawing():
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots(figsize=(6.2, 4.0), layout="constrained")
            draw_course(ax, {"identity": self.case.identity, "trajectory": self.trajectory}, self.words)
            ax.legend()
        return ax

    def summary(self) -> str:
        """One sentence: how many actions change, and what the model expects of that."""
        who = self.words.titled(self.case.identity)
        if self.alteration is None:
            what = "refused" if self.undecided else "no action would have been changed"
            return f"{who}: {what}{f': {self.reason}' if self.reason else ''}."
        changed, most = len(self.alteration.names), self.trajectory["changes"]
        found, before = (self.words.sign * self.trajectory[key] for key in ("value", "observed"))
        share = 100 * self.trajectory["improvement"]
        proven = "; proven best for this model" if self.trace.get("proven") else ""
        return (
            f"{who}: {changed} of at most {most} changed actions; {self.words.total[0].lower()}"
            f"{self.words.total[1:]} {found:.4g} instead of {before:.4g}, {share:.1f}% better{proven}."
        )

    def __str__(self) -> str:
        return "\n".join(self._said())

    def _repr_html_(self) -> str:
        heads = [self.words.one_step.lower(), *self._doses()]
        rows = [
            [str(self.words.start + time), *(_change(*pair) for pair in self._changes(time))]
            for time in sorted(self.actions())
        ]
        parts = [f"<p>{escape(each)}</p>" for each in self._said()]
        return "<div>" + "".join([*parts, *([table_html(heads, rows)] if rows else [])]) + "</div>"

    def _said(self) -> list[str]:
        cause = "" if self.hidden_cause is None else self.hidden_cause.sentence(self.words.actions)
        against = [f"{cause[:1].upper()}{cause[1:]}."] if cause else []
        return [self.summary(), *against, *self.warnings]

    def _doses(self) -> list[str]:
        """The names of the coordinates of an action."""
        count = len(self.trajectory["doses"][0]) if self.trajectory["doses"] else 0
        return [self.words.dose(index).name for index in range(count)]

    def _changes(self, time: int) -> list[tuple[float | str, float | str]]:
        """Each dose of a step as it was given and under the decision, named where levels have names."""
        doses = zip(self.trajectory["observed_doses"][time], self.trajectory["doses"][time], strict=True)
        named = [self.words.dose(index).level for index in range(len(self.trajectory["doses"][time]))]
        return [
            (level(given) or given, level(chosen) or chosen)
            for level, (given, chosen) in zip(named, doses, strict=True)
        ]


def words_for(reward: Mapping[str, Any], doses: Sequence[str]) -> Wording:
    """What the numbers of an episode's decision are called.

    Args:
        reward: The reward of a step, as a node of a configuration; empty if it is not known.
        doses: The names of the doses of the model.
    """
    found = wording({"surrogate": {"doses": list(doses)}, "objective": {"reward": dict(reward)}})
    named = tuple(replace(each, name=name) for each, name in zip(found.doses, doses, strict=True))
    return replace(found, doses=named, subject="episode", subjects="episodes")


def _change(before: float | str, after: float | str) -> str:
    first, then = (each if isinstance(each, str) else f"{each:.4g}" for each in (before, after))
    return first if before == after else f"{first} → {then}"
