"""What the Lipschitz constraint costs, over a grid of constants, by cross-validation over patients.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.build import made
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.studies.workers import shared
from rehearsal_torch.training.cross_validation import cross_validate, percentage_decrease

LOCATION, SCALE = (0.1, 0.2, 0.5, 0.8, 1.0, 1.2, 1.5), (0.01, 0.1, 0.5, 1.0)
COLUMNS = ("L_h", "L_phi", "fold", "train", "held_out", "clinical", "scaled", "train_scaled")
Cell = tuple[float | None, float | None]
FREE: Cell = (None, None)


@dataclass(frozen=True)
class Validated:
    """What every cell needs.

    Attributes:
        episodes: The patients.
        surrogate: The resolved node of the surrogate.
        trainer: The resolved node of the trainer.
        epochs: How long each fold trains; held-out rows judge, and so cannot end the training.
    """

    episodes: Sequence[Episode]
    surrogate: Mapping[str, Any]
    trainer: Mapping[str, Any]
    epochs: int


def validated(common: Validated, cell: Cell) -> list[dict[str, object]]:
    """One row a fold of a cell."""
    location, scale = cell
    node = dict(common.surrogate) | {
        "mechanism": dict(common.surrogate["mechanism"])
        | {"location_constant": location, "scale_constant": scale}
    }
    quiet = dict(common.trainer) | {
        "max_epochs": common.epochs,
        "patience": None,
        "progress": False,
        "folder": None,
        "loggers": None,
    }
    scores = cross_validate(
        common.episodes, partial(made, node, "surrogate"), partial(made, quiet, "trainer")
    ).folds
    names = {"L_h": _text(location), "L_phi": _text(scale)}
    return [names | {name: getattr(score, name) for name in COLUMNS[2:]} for score in scores]


def grid(common: Validated, path: Path, workers: int, deadline: float | None) -> Iterator[Cell]:
    """Fills the grid's file, cell by cell, the unconstrained model first; cells that are there are left out.

    Yields:
        The cells that were written.
    """
    done = {(row["L_h"], row["L_phi"]) for row in _rows(path)}
    cells = [
        cell
        for cell in [FREE, *((x, y) for x in LOCATION for y in SCALE)]
        if (_text(cell[0]), _text(cell[1])) not in done
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    for rows in shared(validated, common, cells, workers, deadline):
        _append(path, rows)
        yield (_number(rows[0]["L_h"]), _number(rows[0]["L_phi"]))


def decreases(path: Path) -> dict[tuple[float, float], float]:
    """(L_h, L_phi) to the percentage decrease of the mean held-out log-likelihood; empty without the
    unconstrained model.
    """
    sums: dict[tuple[str, str], list[float]] = {}
    for row in _rows(path):
        sums.setdefault((row["L_h"], row["L_phi"]), []).append(float(row["scaled"]))
    means = {cell: sum(values) / len(values) for cell, values in sums.items()}
    free = means.pop(("", ""), None)
    return (
        {}
        if free is None
        else {(float(x), float(y)): percentage_decrease(mean, free) for (x, y), mean in means.items()}
    )


def _rows(path: Path) -> list[dict[str, str]]:
    return read_rows(path, COLUMNS, COLUMNS)


def _append(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """All folds of a cell, at once."""
    begun = path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not begun:
            writer.writeheader()
        writer.writerows(rows)


def _text(constant: float | None) -> str:
    return "" if constant is None else f"{constant:g}"


def _number(text: object) -> float | None:
    return float(str(text)) if text != "" else None
