"""The cost of the Lipschitz constraint: held-out log-likelihood over a grid of constants, by cross-validation
over patients.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.build import made
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.studies.record import Layout, Outcome
from rehearsal_torch.studies.study_files import study
from rehearsal_torch.training.cross_validation import cross_validate, percentage_decrease

STAGE = "grid"
KEY = ("L_h", "L_phi")
COLUMNS = (*KEY, "fold", "train", "held_out", "clinical", "scaled", "train_scaled")
LAYOUT = Layout(study("sepsis").stages[STAGE].file, KEY, COLUMNS, COLUMNS, exact=True)


@dataclass(frozen=True)
class Cell:
    """A pair of Lipschitz constants.

    Attributes:
        location: L_h; None for an unconstrained network.
        scale: L_phi, likewise.
        stage: The stage of the study.
    """

    location: float | None
    scale: float | None
    stage: str = STAGE

    @property
    def key(self) -> tuple[str, str]:
        """The identifying cells of its rows: L_h and L_phi."""
        return (_text(self.location), _text(self.scale))


@dataclass(frozen=True)
class Validated:
    """What all cells have in common.

    Attributes:
        episodes: One episode per patient.
        surrogate: The resolved configuration of the surrogate.
        trainer: The resolved configuration of the trainer.
        epochs: Training epochs of each fold. The held-out episodes are for evaluation, so there is no early
            stopping.
    """

    episodes: Sequence[Episode]
    surrogate: Mapping[str, Any]
    trainer: Mapping[str, Any]
    epochs: int


def cells() -> list[Cell]:
    """The cells of study.yaml, after the unconstrained one."""
    found = [Cell(None, None)]
    for entry in study("sepsis").stages[STAGE].cases:
        found += [Cell(float(x), float(y)) for x in entry["location"] for y in entry["scale"]]
    return found


def validated(common: Validated, cell: Cell) -> Outcome[Cell]:
    """The rows of a cell, one per fold.

    Args:
        common: What all cells have in common.
        cell: The cell.
    """
    node = dict(common.surrogate) | {
        "mechanism": dict(common.surrogate["mechanism"])
        | {"location_constant": cell.location, "scale_constant": cell.scale}
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
    names = dict(zip(KEY, cell.key, strict=True))
    return Outcome(cell, [names | {name: getattr(score, name) for name in COLUMNS[2:]} for score in scores])


def decreases(path: Path) -> dict[tuple[float, float], float]:
    """(L_h, L_phi) to the decrease in percent of the mean held-out log-likelihood.

    The decrease is relative to the unconstrained model; without its rows the result is empty.

    Args:
        path: The file of the grid.

    Raises:
        PlainFileError: if it is damaged.
    """
    sums: dict[tuple[str, str], list[float]] = {}
    for row in read_rows(path, COLUMNS, COLUMNS):
        sums.setdefault((row["L_h"], row["L_phi"]), []).append(float(row["scaled"]))
    means = {cell: sum(values) / len(values) for cell, values in sums.items()}
    free = means.pop(("", ""), None)
    return (
        {}
        if free is None
        else {(float(x), float(y)): percentage_decrease(mean, free) for (x, y), mean in means.items()}
    )


def _text(constant: float | None) -> str:
    return "" if constant is None else f"{constant:g}"
