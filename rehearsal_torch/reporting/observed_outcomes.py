"""Observed outcomes of episodes beside what was recommended for them: a comparison, not an effect.

Where the data say what happened afterwards (a death in hospital, for instance), the table gives its share
among the episodes for which a change is recommended and among the others, and, for the former, by thirds of
the predicted improvement. Shares have 95 % Wilson intervals, which do not collapse where nobody died.

The groups differ in how ill the patients were, and nobody was treated as recommended: no difference between
them is an effect of the recommendation.

Source: Wilson (1927), Probable inference, the law of succession, and statistical inference (intervals).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rehearsal_torch.evaluation.recorded_run import Decided, Recorded

FILE = "observed_outcomes.csv"
COLUMNS = ("search", "k", "outcome", "group", "episodes", "observed", "share", "low", "high")
NOT_AN_EFFECT = (
    "Observed outcomes are a comparison of patients, not an effect: the groups differ in severity, nobody "
    "was treated as recommended, and no model has seen these columns."
)
RECOMMENDED, OTHERS = "change recommended", "nothing recommended"
THIRDS = ("smallest", "middle", "largest")
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


@dataclass(frozen=True)
class Group:
    """How many of the episodes of a group with a known outcome had it, for a search with so many changes."""

    search: str
    changes: int
    outcome: str
    group: str
    episodes: int
    observed: int

    @property
    def share(self) -> float:
        """The share with the outcome; NaN without an episode."""
        return self.observed / self.episodes if self.episodes else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share; NaN without an episode."""
        if not self.episodes:
            return math.nan, math.nan
        n, square = self.episodes, NORMAL**2
        centre = (self.observed + square / 2) / (n + square)
        half = NORMAL / (n + square) * math.sqrt(n * self.share * (1 - self.share) + square / 4)
        return max(0.0, centre - half), min(1.0, centre + half)

    def row(self) -> dict[str, float | int | str]:
        """The row of ``observed_outcomes.csv``."""
        low, high = self.interval
        cells = (self.search, self.changes, self.outcome, self.group, self.episodes, self.observed)
        return dict(zip(COLUMNS, (*cells, self.share, low, high), strict=True))

    def line(self) -> str:
        """The group in one line."""
        if not self.episodes:
            return f"  {self.group}: no episode"
        low, high = self.interval
        return (
            f"  {self.group}: {self.observed} of {self.episodes}, {100 * self.share:.1f}% "
            f"[{100 * low:.1f}, {100 * high:.1f}]"
        )


def groups(run: Recorded) -> list[Group]:
    """The groups of a run; empty if its data know no outcomes."""
    known_groups = []
    for (search, changes), decided in run.groups().items():
        if changes is None:
            continue
        known = [decision for decision in decided if isinstance(decision.get("observed_outcomes"), Mapping)]
        for outcome in dict.fromkeys(name for decision in known for name in decision["observed_outcomes"]):
            with_outcome = [decision for decision in known if outcome in decision["observed_outcomes"]]
            for group, members in _split(with_outcome):
                observed = sum(decision["observed_outcomes"][outcome] > 0 for decision in members)
                known_groups.append(Group(search, changes, outcome, group, len(members), observed))
    return known_groups


def text(known_groups: Sequence[Group]) -> list[str]:
    """The groups as lines for a terminal, with the sentence of what they are not; empty without groups."""
    if not known_groups:
        return []
    lines = []
    head = ""
    for group in known_groups:
        title = (
            f"Observed {group.outcome} ({group.search}, at most {group.changes} changes), with 95% intervals:"
        )
        lines += [title] if title != head else []
        head = title
        lines.append(group.line())
    return [*lines, NOT_AN_EFFECT]


def _split(decided: Sequence[Decided]) -> list[tuple[str, list[Decided]]]:
    """Named groups: without and with a recommendation, the latter also by thirds of its predicted
    improvement.
    """
    acted = [decision for decision in decided if decision.get("alteration") is not None]
    split = [
        (OTHERS, [decision for decision in decided if decision.get("alteration") is None]),
        (RECOMMENDED, acted),
    ]
    ordered = sorted(acted, key=lambda decision: float(decision["trajectory"]["improvement"]))
    if len(ordered) < len(THIRDS):
        return split
    count = len(THIRDS)
    for number, third in enumerate(THIRDS):
        members = ordered[number * len(ordered) // count : (number + 1) * len(ordered) // count]
        ends = [100 * float(members[end]["trajectory"]["improvement"]) for end in (0, -1)]
        split.append((f"{third} third of predicted improvements, {ends[0]:.1f} to {ends[1]:.1f}%", members))
    return split
