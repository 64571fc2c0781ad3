"""Rows of the searches of the sepsis study: one row per episode and case, and their means over episodes.

A row is identified by episode, horizon, k, search, anchors, M and L_h, and is computed once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from reproduction.plan import study
from reproduction.record import Layout, Record

KEY = ("episode", "T", "k", "search", "anchors", "M", "L_h")
COLUMNS = (
    *KEY,
    "value",
    "observed",
    "improvement",
    "expanded",
    "generated",
    "ebf",
    "network_evaluations",
    "seconds",
    "proven",
)
NUMBERS = ("T", "k", "M", "L_h", *COLUMNS[7:-1])
# The stages that have these rows.
STAGES = tuple(name for name, stage in study("sepsis")["stages"].items() if stage["file"] == "episodes.csv")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A search with its settings.

    Attributes:
        horizon: T, the number of time steps of an episode that are searched.
        changes: k, the maximum number of changed actions.
        search: Name of the search.
        anchors: Name of the kind of anchor set; empty for a search without anchors.
        size: M, the number of sequences simulated for the anchor set, or the number of its states for kinds
            named ``..._of_size``; 0 without anchors.
        constant: L_h, the Lipschitz constant of the model's location.
    """

    horizon: int
    changes: int
    search: str
    anchors: str
    size: int
    constant: float

    def key(self, episode: str) -> Key:
        """The identifying cells of a row of this case, in the order of `KEY`.

        Args:
            episode: Identity of the episode.
        """
        return (
            episode,
            str(self.horizon),
            str(self.changes),
            self.search,
            self.anchors,
            str(self.size),
            f"{self.constant:g}",
        )

    def row(self, episode: str, decision: Decision) -> dict[str, object]:
        """The row of a decision; ``seconds`` are wall-clock seconds of the search.

        Args:
            episode: Identity of the episode.
            decision: The decision of the search, with its trace.
        """
        trace = decision.trace
        return {
            **dict(zip(KEY, self.key(episode), strict=True)),
            "value": decision.value,
            "observed": decision.baseline.point if decision.baseline else math.nan,
            "improvement": decision.improvement,
            "expanded": trace["expanded"],
            "generated": trace["generated"],
            "ebf": trace["effective_branching_factor"],
            "network_evaluations": trace["network_evaluations"],
            "seconds": round(decision.seconds, 4),
            "proven": trace["proven"],
        }


LAYOUT = Layout("episodes.csv", KEY, COLUMNS, exact=True, count=1)


def frame(record: Record) -> pd.DataFrame:
    """All rows, with numbers as numbers, ``proven`` as bool, and ``episode`` and names as strings."""
    found = pd.DataFrame(record.rows(STAGES[0]), columns=list(COLUMNS))
    numbers = {name: pd.to_numeric(found[name]) for name in NUMBERS}
    return found.assign(**numbers, proven=found["proven"] == "True")


@dataclass(frozen=True)
class Point:
    """Means over the episodes of a case; lower bounds if the optimum of some episodes is not proven.

    Attributes:
        x: The value along the axis.
        ebf: Effective branching factor.
        seconds: Wall-clock seconds.
        improvement: Relative improvement of the return.
        proven: Share of the episodes whose optimum is proven.
    """

    x: float
    ebf: Interval
    seconds: Interval
    improvement: Interval
    proven: float


def rows_of_cases(frame: pd.DataFrame, cases: Sequence[Case]) -> pd.DataFrame:
    """The rows of some cases.

    Args:
        frame: The rows of all searches.
    """
    wanted = {case.key("")[1:] for case in cases}
    keys = zip(
        *(frame[name].map("{:g}".format) if name == "L_h" else frame[name].astype(str) for name in KEY[1:]),
        strict=True,
    )
    return frame[[key in wanted for key in keys]]


def points(frame: pd.DataFrame, along: str) -> list[Point]:
    """One point for each value of a numeric column, in rising order.

    Args:
        frame: The rows of one search.
        along: The column.
    """
    found = []
    for x, rows in frame.groupby(along, sort=True):
        ebf, seconds, improvement = (
            mean_interval(rows[name].to_list()) for name in ("ebf", "seconds", "improvement")
        )
        found.append(Point(float(str(x)), ebf, seconds, improvement, float(rows["proven"].mean())))
    return found
