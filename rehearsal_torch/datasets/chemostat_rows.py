"""A chemostat of algae, rotifers and their dead: the rows of ten long-term experiments.

From the measured columns, with gaps filled by cubic interpolation and negative values set to 0,

    N = 28 algae,   P = .57 rotifers,   D = .57 dead,   E = .57 eggs,   B = 5 eggs / egg ratio,   A = .285 B,   J = .057 B,

so that J is A / 5 exactly. N and P are prey and predator here, nitrogen and phytoplankton in the differential equations that the
letters come from.

Source: Blasius et al. (2020), doi:10.6084/m9.figshare.10045976, CC BY 4.0; preparation as in Aglietti et al. (2021).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.datasets.csv_file import TableError
from rehearsal_torch.datasets.number_columns import table_file

VARIABLES = ("N_in", "N", "P", "J", "A", "E", "D")
COLUMNS = (
    "algae (10^6 cells/ml)",
    "rotifers (animals/ml)",
    "egg-ratio",
    "eggs (per ml)",
    "dead animals (per ml)",
    "external medium (mu mol N / l)",
)
HOW = (
    "the ten files C1.csv ... C10.csv of doi:10.6084/m9.figshare.10045976 (CC BY 4.0) belong there: download them from"
    " https://figshare.com/articles/dataset/10045976 into one folder and set path= to it, or use scm=ode, which needs no data"
)


def chemostat_pairs(path: str | Path | None, series: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Each row and the one after it, (n, 7) each: columns as in `VARIABLES`.

    Args:
        path: The folder with the files.
        series: Which experiments, such as C1; pairs do not reach from one into the next.

    Raises:
        TableError: if a file is missing, or lacks a column.
    """
    if path is None:
        raise TableError(f"scm=gp needs measurements, and path= names no folder: {HOW}")
    before, after = [], []
    for name in series:
        file = Path(path) / f"{name}.csv"
        if not file.is_file():
            raise TableError(f"there is no file {file}: {HOW}")
        rows = _prepared(file)
        before.append(rows[:-1])
        after.append(rows[1:])
    return torch.cat(before), torch.cat(after)


def _prepared(file: Path) -> Tensor:
    frame = table_file(file)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise TableError(f"{file} has no column {missing}: expected those of doi:10.6084/m9.figshare.10045976, {list(COLUMNS)}")
    filled = frame[list(COLUMNS)].astype(float).interpolate(method="cubic").fillna(0.0).clip(lower=0.0).to_numpy()
    algae, rotifers, ratio, eggs, dead, medium = filled.T
    biomass = np.where(ratio > 0, 5 * eggs / np.where(ratio > 0, ratio, 1.0), 0.0)
    return torch.from_numpy(np.stack([medium, 28 * algae, 0.57 * rotifers, 0.057 * biomass, 0.285 * biomass, 0.57 * eggs, 0.57 * dead], -1))
