"""Rows of the searches of the sepsis study: one for each episode and each way of searching it.

A row is known by its episode, horizon, k, search, anchors, M and L_h, and is never computed twice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.studies.record import Layout, Record
from rehearsal_torch.studies.study_files import study

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
WHOLE = ("T", "k", "M")
NUMBERS = (
    "L_h",
    "value",
    "observed",
    "improvement",
    "expanded",
    "generated",
    "ebf",
    "network_evaluations",
    "seconds",
)
# The stages whose rows they are.
STAGES = tuple(name for name, stage in study("sepsis").stages.items() if stage.file == "episodes.csv")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One way of searching.

    Attributes:
        horizon: T, the time steps of an episode that are searched.
        changes: k.
        search: The search's name.
        anchors: The anchors' strategy; empty for a search without anchors.
        size: M, simulated sequences of an anchor set, or the anchor set's size for the strategies that are
            given one; 0 without anchors.
        constant: L_h of the model.
    """

    horizon: int
    changes: int
    search: str
    anchors: str
    size: int
    constant: float

    def key(self, episode: str) -> Key:
        """The texts that a row of this case is known by."""
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
        """The row of one episode's decision; `seconds` are wall-clock seconds of the search."""
        found = decision.trace
        told: dict[str, object] = {
            "observed": decision.baseline.point if decision.baseline else math.nan,
            "improvement": decision.improvement,
        }
        told |= {name: found[name] for name in ("expanded", "generated", "network_evaluations")}
        told |= {
            "value": decision.value,
            "ebf": found["effective_branching_factor"],
            "seconds": round(decision.seconds, 4),
            "proven": found["proven"],
        }
        return dict(zip(KEY, self.key(episode), strict=True)) | told


LAYOUT = Layout("episodes.csv", KEY, COLUMNS, NUMBERS, WHOLE, exact=True, count=1)


def episodes_in(folder: Path) -> Record:
    """The record of all searches.

    Args:
        folder: Where it is, or is going to be.

    Raises:
        PlainFileError: if it has other columns, or is damaged.
    """
    return Record(folder, dict.fromkeys(STAGES, LAYOUT))


def frame(record: Record) -> pd.DataFrame:
    """All rows, typed; `episode` and the names are texts, `proven` is a bool.

    Args:
        record: The record of all searches.

    Raises:
        PlainFileError: if it is damaged.
    """
    rows = record.rows(STAGES[0])
    odd = next((row["proven"] for row in rows if row["proven"] not in ("True", "False")), None)
    if odd is not None:
        path = record.folder / LAYOUT.file
        raise PlainFileError(f"{path}, proven: expected True or False; got {odd[:60]!r}: move the file away")
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = {name: pd.to_numeric(found[name]) for name in (*WHOLE, *NUMBERS)}
    return found.assign(**numbers, proven=found["proven"] == "True")


@dataclass(frozen=True)
class Point:
    """The episodes of one setting, summed up.

    Attributes:
        x: The setting's place on its axis.
        ebf: Mean effective branching factor; a lower bound where not all episodes are proven.
        seconds: Mean wall-clock seconds; a lower bound likewise.
        improvement: Mean relative improvement.
        proven: Share of the episodes whose optimum is proven.
    """

    x: float
    ebf: Interval
    seconds: Interval
    improvement: Interval
    proven: float


def chosen(frame: pd.DataFrame, cases: Sequence[Case]) -> pd.DataFrame:
    """The rows of some cases."""
    wanted = {case.key("")[1:] for case in cases}
    keys = zip(
        *(frame[name].map("{:g}".format) if name == "L_h" else frame[name].astype(str) for name in KEY[1:]),
        strict=True,
    )
    return frame[[key in wanted for key in keys]]


def points(frame: pd.DataFrame, along: str) -> list[Point]:
    """Rows as points along a numeric column, rising."""
    found = []
    for x, rows in frame.groupby(along, sort=True):
        told = {name: mean_interval(rows[name].to_list()) for name in ("ebf", "seconds", "improvement")}
        found.append(
            Point(
                float(str(x)), told["ebf"], told["seconds"], told["improvement"], float(rows["proven"].mean())
            )
        )
    return found
