"""Rows of a study: one for each episode and each way of searching it.

Rows are appended as they come, so that a study that was stopped goes on where it ended: a row is known by its
episode, horizon, k, search, anchors, M and L_h, and is never computed twice. A line that was cut off is
dropped.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.files.writing import write_text

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


class EpisodeRows:
    """The rows on disk.

    Args:
        path: A CSV file with the columns `COLUMNS`; made with its first row.

    Raises:
        PlainFileError: if the file has other columns, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.done = path, set[Key]()
        if not path.is_file() or not path.stat().st_size:
            return
        lines = read_rows(path, COLUMNS, NUMBERS, WHOLE)
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        head = tuple(whole.splitlines()[0].split(",")) if whole else ()
        if head != COLUMNS:
            raise PlainFileError(
                f"{path}: expected the columns {','.join(COLUMNS)}; got {','.join(head)[:200]}: move the "
                "file away"
            )
        if odd := next((line["proven"] for line in lines if line["proven"] not in ("True", "False")), None):
            raise PlainFileError(
                f"{path}, proven: expected True or False; got {odd[:60]!r}: move the file away"
            )
        if whole != text:
            write_text(path, whole)
        self.done = {tuple(line[name] for name in KEY) for line in lines}

    def append(self, rows: Iterable[dict[str, object]]) -> None:
        """Adds rows that are not there yet, and writes them through to the disk.

        Raises:
            ValueError: if a row lacks a column, or has one too many.
        """
        fresh = []
        for row in rows:
            if set(row) != set(COLUMNS):
                raise ValueError(f"expected the columns {COLUMNS}; got {tuple(row)}")
            key = tuple(str(row[name]) for name in KEY)
            if key not in self.done:
                self.done.add(key)
                fresh.append(row)
        if not fresh:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        begun = self.path.is_file() and self.path.stat().st_size > 0
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if not begun:
                writer.writeheader()
            writer.writerows(fresh)

    def frame(self) -> pd.DataFrame:
        """All rows, typed; `episode` and the names are texts, `proven` is a bool."""
        if not self.done:
            return pd.DataFrame(columns=list(COLUMNS))
        frame = pd.read_csv(
            self.path, dtype={"episode": str, "search": str, "anchors": str}, keep_default_na=False
        )
        numbers = {name: pd.to_numeric(frame[name]) for name in (*WHOLE, *NUMBERS)}
        return frame.assign(**numbers).astype({"proven": bool})


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
