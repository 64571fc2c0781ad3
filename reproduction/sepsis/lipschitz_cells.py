"""The cost of the Lipschitz constraint: held-out log-likelihood over a grid of constants, by cross-validation
over patients.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import made
from rehearsal_torch.training.cross_validation import cross_validate, percentage_decrease
from reproduction.plan import study
from reproduction.record import Layout, Row
from reproduction.sepsis.fitted import cohort, configuration

STAGE = "grid"
KEY = ("L_h", "L_phi")
COLUMNS = (*KEY, "fold", "train", "held_out", "clinical", "scaled", "train_scaled")
LAYOUT = Layout(study("sepsis")["stages"][STAGE]["file"], KEY, COLUMNS, exact=True)


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


def cells() -> list[Cell]:
    """The cells of study.yaml, after the unconstrained one."""
    found = [Cell(None, None)]
    for entry in study("sepsis")["stages"][STAGE]["cases"]:
        found += [Cell(float(x), float(y)) for x in entry["location"] for y in entry["scale"]]
    return found


def validated(options: Mapping[str, Any], cell: Cell) -> list[Row]:
    """The rows of a cell, one per fold.

    The held-out episodes are for evaluation, so that there is no early stopping.
    """
    config = plain(configuration(options))
    surrogate, trainer = config["surrogate"], config["trainer"]
    constants = {"location_constant": cell.location, "scale_constant": cell.scale}
    node = surrogate | {"mechanism": surrogate["mechanism"] | constants}
    quiet = trainer | {
        "max_epochs": options["grid_epochs"],
        "patience": None,
        "progress": False,
        "folder": None,
        "loggers": None,
    }
    episodes = cohort(options)[0].episodes("train")
    scores = cross_validate(episodes, partial(made, node, "surrogate"), partial(made, quiet, "trainer")).folds
    names = dict(zip(KEY, cell.key, strict=True))
    return [names | {name: getattr(score, name) for name in COLUMNS[2:]} for score in scores]


def decreases(path: Path) -> dict[tuple[float, float], float]:
    """(L_h, L_phi) to the decrease in percent of the mean held-out log-likelihood.

    The decrease is relative to the unconstrained model; without its rows the result is empty.
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
