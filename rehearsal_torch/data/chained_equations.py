"""Multiple imputation by the chained equations of statsmodels, beside our own (`data.imputation`, which says
how the two compare).

From the mean of each column on, each cycle takes the columns with missing cells in turn, those with fewest
first. With the other cells as they are by then,

    donors         a bootstrap sample of the rows in which the column is observed
    regression     of their cells of the column on all other columns, by least squares
    parameters     a draw from N(estimate, its covariance)
    missing cells  each takes that of one of the five donors whose predictions by these parameters are nearest
                   to its own (predictive mean matching)

Ten cycles make one table. Each of the m tables has a chain of its own from a seed of its own, so that they
are independent draws. A drawn cell is an observed one: few values stay these, and nothing lies beyond the
range. A row without any observed cell takes all cells of a completed row, drawn at random.

The bootstrap sample is ours. statsmodels takes all observed rows as donors, and predicts them and the others
by the same drawn parameters, whose intercept cancels, and, with one predictor, whose slope does: the tables
then differ too little (van Buuren, 2018, Sec. 3.4.2, matching of type 2). With half of a column missing, and
nothing that predicts it, the variance of its mean between the tables was half of what it has to be.

Columns are standardised for the regressions and have names of our own there, so that neither unit, offset nor
the letters of a name change a draw, and what is drawn is looked up among the observed cells, bit by bit.
Where columns are functions of each other, the regression of least norm is taken.

Where the others determine a column closely, the most similar donors are not similar enough: drawn cells
loosen the dependence, and claims are off (Lin-Syn1 in `benchmarks/missing_cells.py`, where the others leave
open .1 of the standard deviation of most columns, or less; on BankExp, with .13 or more, claims are right).
Such columns are warned of.

Needs statsmodels 0.15 (``pip install 'rehearsal-torch[impute]'``), as nothing else in the package does.

Source: Raghunathan, Lepkowski, Van Hoewyk and Solenberger (2001); van Buuren and Groothuis-Oudshoorn (2011)
(chained equations, five donors); Little (1988) (predictive mean matching); White, Royston and Wood (2011)
(ten cycles); Rubin and Schenker (1986) (a bootstrap sample of donors for each draw), as Harrell's aregImpute;
`statsmodels.imputation.mice.MICEData`.
"""

import re
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.seeding import numpy_generator

# Cycles of each chain, and rows of which one gives its cell.
CYCLES, DONORS = 10, 5
# The residual of a column, as a share of its standard deviation, below which it is closely determined; the
# complete rows for each column that it takes to say so.
CLOSE, FEWEST = 0.1, 5
# Distinguishes the seeds of these imputations from the others of a table.
PURPOSE = 2001
# Earlier versions take no generator: they draw from the global state of NumPy.
LEAST = (0, 15)


def installed() -> str:
    """The version of statsmodels; empty if it is not installed."""
    try:
        return version("statsmodels")
    except PackageNotFoundError:
        return ""


def lacking() -> str:
    """What is to be installed for chained equations, as a sentence without a full stop; empty if nothing."""
    found = installed()
    numbers = tuple(map(int, re.findall(r"\d+", found)[:2]))
    if numbers >= LEAST:
        return ""
    which = f"{found} is installed" if found else "it is not installed"
    needs = f"by: statsmodels needs statsmodels {'.'.join(map(str, LEAST))} or later; {which}"
    remedy = "leave by out: our own imputation needs no further package"
    return f"{needs}: pip install 'rehearsal-torch[impute]', or {remedy}"


def residuals(values: np.ndarray) -> np.ndarray:
    """The residual standard deviation of each column, regressed on all others, as a share of its own, (d,).

    Complete rows of the values (n, d) count. NaN for constant columns, and for all of them if there are fewer
    than five complete rows a column.
    """
    rows = values[~np.isnan(values).any(1)]
    count, columns = rows.shape
    found = np.full(columns, np.nan)
    if count < FEWEST * columns:
        return found
    centred = rows - rows.mean(0)
    spread = np.sqrt(np.square(centred).sum(0) / (count - 1))
    centred = centred / np.where(spread > 0, spread, 1.0)
    for place in np.flatnonzero(spread > 0):
        others = np.delete(centred, place, 1)
        left = centred[:, place] - others @ np.linalg.lstsq(others, centred[:, place])[0]
        found[place] = np.sqrt(np.square(left).sum() / (count - columns))
    return found


def loosened(names: Sequence[str], values: np.ndarray) -> list[str]:
    """Why chained equations may mislead in a table, at most one sentence without a full stop."""
    columns = zip(names, residuals(values), np.isnan(values).any(0), strict=True)
    close = [f"{name}: {share:.3f}" for name, share, missing in columns if missing and share < CLOSE]
    if not close:
        return []
    return [
        "by: statsmodels loosens close dependences: what the other columns leave open of columns with "
        f"missing cells is less than a tenth of their standard deviation ({', '.join(close)}), so "
        "that claims may be off: leave by out, or compare both"
    ]


class ChainedEquations:
    """A table with missing cells, and draws of these.

    Args:
        values: (n, d), NaN in missing cells.
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.cells = values.detach().cpu().to(torch.float64).numpy()
        self.known = ~np.isnan(self.cells)

    def drawn(self, seed: int, place: int) -> Tensor:
        """One complete table, (n, d), with observed cells unchanged, the `place`-th of independent ones.

        Raises:
            ModuleNotFoundError: if statsmodels is not installed, or is too old.
            ValueError: if there are too few columns or observed cells.
        """
        if self.known.all():
            return self.values.clone()
        self._check()
        stream = numpy_generator(seed, PURPOSE, place)
        some = self.known.any(1)
        made = self.cells.copy()
        made[some] = self._chain(stream)
        if not some.all():
            made[~some] = made[some][stream.integers(int(some.sum()), size=int((~some).sum()))]
        filled = torch.from_numpy(made).to(self.values)
        return torch.where(self.values.isnan(), filled, self.values)

    def _check(self) -> None:
        if words := lacking():
            raise ModuleNotFoundError(words)
        columns, seen = self.known.shape[1], self.known.sum(0)
        if columns < 2:
            raise ValueError("expected at least 2 columns, one of which says something of the other; got 1")
        if (least := int(seen[seen < len(self.known)].min())) <= columns:
            raise ValueError(
                "chained equations regress each column on all others: expected more observed cells in each "
                f"column than there are columns; got {least} cells and {columns} columns: add rows, take "
                "variables out, or leave by: statsmodels out"
            )

    def _chain(self, stream: np.random.Generator) -> np.ndarray:
        """The rows with an observed cell, completed by a chain of its own, (r, d)."""
        cells = self.cells[self.known.any(1)]
        known = ~np.isnan(cells)
        middle, spread = np.nanmean(cells, 0), np.nanstd(cells, 0)
        spread[spread == 0] = 1.0
        names = [f"v{place}" for place in range(cells.shape[1])]
        with warnings.catch_warnings():
            # Importing statsmodels changes the filters of warnings. It warns where columns are functions of
            # each other, in which case its least-norm regression is what is wanted here.
            from statsmodels.imputation.mice import MICEData
            from statsmodels.tools.sm_exceptions import SingularMatrixWarning

            warnings.simplefilter("ignore", SingularMatrixWarning)
            warnings.filterwarnings("ignore", "covariance is not symmetric positive-semidefinite")
            chain = MICEData(
                pd.DataFrame((cells - middle) / spread, columns=names),
                k_pmm=min(DONORS, int(known.sum(0).min())),
                rng=stream,
            )
            seen = dict(chain.ix_obs)
            for _ in range(CYCLES):
                chain.ix_obs = {name: stream.choice(rows, len(rows)) for name, rows in seen.items()}
                chain.update_all()
        for place, name in enumerate(names):
            # The observed values of which the draws are the standardised ones.
            values = np.unique(cells[known[:, place], place])
            drawn = chain.data[name].to_numpy()
            cells[:, place] = values[np.searchsorted((values - middle[place]) / spread[place], drawn)]
        return cells
