"""Multiple imputation: the m tables that missing cells may have come from.

The columns, outcomes included, are taken to be jointly normal, v ~ N(mu, Sigma), with Jeffreys' prior. After
EM has found the most likely parameters, a Markov chain alternates two draws (data augmentation),

    missing cells    of each row jointly, from N(mu_m + R (v_o - mu_o), Sigma_mm - R Sigma_om),
                     R = Sigma_mo Sigma_oo^-1, m the missing and o the observed cells of the row
    parameters       Sigma ~ inverse Wishart(n - 1, S),  mu ~ N(mean, Sigma / n),
                     S the scatter matrix of the completed rows

and ends with a draw of the missing cells whose noise is not normal: that of one of the ten complete rows
with the nearest prediction for these cells (local residual draws),

    missing cells    mean* + (donor's cells - donor's mean),

mean* by the parameters of the chain, the donor's mean by the most likely ones. So skewed columns and noise
that grows with the mean stay what they are. With fewer than twenty complete rows the noise is normal. m
chains with seeds of their own give m complete tables, and an estimate in each; the variance between the m
estimates is what is unknown because of the missing cells (`objectives.imputation_success`), parameters
included, since each chain draws its own.

All is computed in standard deviations, so that neither unit nor offset changes a draw. In a column with at
most twenty different values, such as yes/no or whole numbers, the nearest observed value is taken. Draws are
right where cells are missing at random and dependences are about linear.

With normal noise to the end, cells that were taken out of a table of NHANES (987 adults, a third of the
glycated haemoglobin missing, the more often the older) would lie in a desired region below 5.7 in 36 % of
the draws, with donors in 46 %; 52 % of them did. Taking the donor's cells themselves (predictive mean
matching) has 50 %, but breaks the dependence between cells that are missing together: on Lin-Syn1 its
intervals held the truth in 0 and 25 %.

In the worlds of `benchmarks/missing_cells.py` (seeds 900 to 903, m = 20) the intervals of these draws held
the truth in 98 % of the decisions, those of statsmodels' chained equations in 54 %, at about 20 times the
time. scikit-learn's IterativeImputer draws every cell by itself, around regressions whose parameters are not
drawn: 75 and 50 % were held on Lin-Syn1.

Source: Schafer (1997), Sec. 5.3 (EM) and 5.4 (data augmentation); Tanner and Wong (1987); Rubin (1987), Ch. 4
(proper imputation); Morris, White and Royston (2014) (donors); Moons et al. (2006) (outcomes predict).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rehearsal_torch.data.records import Records
from rehearsal_torch.data.size_limits import IMPUTATIONS
from rehearsal_torch.data.table import Table
from rehearsal_torch.seeding import generator, numpy_generator

# Steps of EM, and of each chain.
CLIMBS, STEPS = 200, 60
CLOSE = 1e-6
RIDGE = 1e-8  # Added to the scatter matrix for each row: columns may be functions of each other.
# Similar complete rows of which one gives its noise; the fewest and the most complete rows to choose from.
DONORS, FEWEST_DONORS, MOST_DONORS = 10, 20, 2000
# The number of different values up to which a draw is moved to the nearest observed one.
FEW_VALUES = 20
PURPOSE = 1987  # Distinguishes the seeds of imputations from the others of a table.
AT_ONCE = 4096  # Rows whose conditional distributions are evaluated at once.


@dataclass(frozen=True, eq=False)
class ImputedTable(Table):
    """A table of drawn cells, the first of `count`; `missing`, (n, d), is true where a cell was."""

    missing: Tensor
    count: int
    seed: int

    @classmethod
    def of(cls, names: Sequence[str], values: Tensor, count: int, seed: int = 0) -> "ImputedTable":
        """The first of `count` tables (2 to 200), from values (n, d) with NaN in missing cells; the others
        are drawn when needed. A ValueError for another count, or too few cells to draw from.
        """
        if not 2 <= count <= IMPUTATIONS:
            raise ValueError(f"expected 2 to {IMPUTATIONS} imputations; got {count}")
        missing = values.isnan()
        if empty := [name for name, column in zip(names, missing.T, strict=True) if bool(column.all())]:
            raise ValueError(f"{', '.join(empty)}: every cell is missing, so that none can be imputed")
        first = Imputation(values).drawn(seed, 0)
        return cls(tuple(names), first, torch.zeros_like(missing), missing, count, seed)

    @cached_property
    def completed(self) -> tuple[Table, ...]:
        """The m complete tables."""
        imputation = Imputation(self.values.masked_fill(self.missing, torch.nan))
        later = [imputation.drawn(self.seed, number) for number in range(1, self.count)]
        draws = (self.values, *later)
        return tuple(
            replace(Table.observed(self.names, values), units=self.units, places=self.places)
            for values in draws
        )

    def records(self) -> Records:
        """The rows as NumPy's numbers."""
        return replace(super().records(), complete=~self.missing.any(-1).cpu().numpy())

    def fingerprint(self) -> str:
        """That of the observed cells, 0 in the marked others."""
        return Table(self.names, self.values.masked_fill(self.missing, 0.0), self.missing).fingerprint()


class Imputation:
    """The normal distribution of a table with missing cells, (n, d) with NaN, and draws of these."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        cells = values.detach().cpu().to(torch.float64)
        self.known = ~cells.isnan()
        count = self.known.sum(0)
        self.middle = cells.nansum(0) / count
        spread = ((cells - self.middle).square().nansum(0) / count).sqrt()
        self.spread = torch.where(spread > 0, spread, torch.ones_like(spread))
        self.cells = ((cells - self.middle) / self.spread).nan_to_num(0.0)
        self.patterns, self.pattern_of = self.known.unique(dim=0, return_inverse=True)
        self.rows, self.columns = cells.shape

    def drawn(self, seed: int, place: int) -> Tensor:
        """One complete table, (n, d), with observed cells unchanged, the `place`-th of independent ones."""
        if bool(self.known.all()):
            return self.values.clone()
        if self.rows <= self.columns:
            size = f"got {self.rows} rows and {self.columns} columns: add rows, or take variables out"
            raise ValueError(f"expected more rows than columns to impute from; {size}")
        stream = generator(int(numpy_generator(seed, PURPOSE, place).integers(2**62)))
        mean, covariance = self.likely
        for _ in range(STEPS):
            filled = self._filled(mean, covariance, stream)
            mean, covariance = self._parameters(filled, stream)
        draw = self.middle + self.spread * self._with_donors(mean, covariance, stream)
        return torch.where(self.values.isnan(), self._rounded(draw).to(self.values), self.values)

    @cached_property
    def likely(self) -> tuple[Tensor, Tensor]:
        """The most likely mean (d,) and covariance (d, d) of the standardised columns, by EM."""
        unit = torch.eye(self.columns, dtype=torch.float64)
        mean, covariance = self.cells.new_zeros(self.columns), unit
        weights = torch.bincount(self.pattern_of, minlength=len(self.patterns)).to(torch.float64)
        for _ in range(CLIMBS):
            conditional, means = self.conditionals(mean, covariance)
            previous, mean = covariance, means.mean(0)
            within = (weights[:, None, None] * conditional).sum(0)
            covariance = ((means - mean).mT @ (means - mean) + within) / self.rows + RIDGE * unit
            if float((covariance - previous).abs().max()) < CLOSE:
                break
        return mean, covariance

    def conditionals(self, mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """The missing cells' covariance in each pattern, (p, d, d), and the rows with their means, (n, d)."""
        observed = self.patterns.to(torch.float64)
        pairs = observed.unsqueeze(-1) * observed.unsqueeze(-2)
        inner = torch.linalg.inv(pairs * covariance + torch.diag_embed(1 - observed)) * pairs
        slopes = covariance @ inner
        missing = (1 - observed).unsqueeze(-1) * (1 - observed).unsqueeze(-2)
        conditional = (covariance - slopes @ covariance) * missing
        batches = zip(
            self.pattern_of.split(AT_ONCE), self.cells.split(AT_ONCE), self.known.split(AT_ONCE), strict=True
        )
        means = [
            torch.where(known, cells, mean + (slopes[pattern] @ (cells - mean).unsqueeze(-1)).squeeze(-1))
            for pattern, cells, known in batches
        ]
        return conditional, torch.cat(means)

    def _filled(self, mean: Tensor, covariance: Tensor, stream: torch.Generator) -> Tensor:
        """The standardised rows with missing cells drawn, (n, d)."""
        conditional, means = self.conditionals(mean, covariance)
        # Observed cells have no variance; a root by eigenvalues takes singular matrices.
        eigenvalues, eigenvectors = torch.linalg.eigh(conditional)
        roots = eigenvectors * eigenvalues.clamp_min(0).sqrt().unsqueeze(-2)
        noise = torch.randn(self.rows, self.columns, dtype=torch.float64, generator=stream)
        batches = zip(self.pattern_of.split(AT_ONCE), noise.split(AT_ONCE), strict=True)
        deviations = torch.cat(
            [(roots[pattern] @ cells.unsqueeze(-1)).squeeze(-1) for pattern, cells in batches]
        )
        return torch.where(self.known, self.cells, means + deviations)

    def _with_donors(self, mean: Tensor, covariance: Tensor, stream: torch.Generator) -> Tensor:
        """The standardised rows with missing cells drawn, (n, d), with the noise of similar complete rows."""
        complete = self.known.all(-1).nonzero().squeeze(-1)
        if len(complete) < FEWEST_DONORS:
            return self._filled(mean, covariance, stream)
        if len(complete) > MOST_DONORS:
            complete = complete[torch.randperm(len(complete), generator=stream)[:MOST_DONORS].sort().values]
        donors = self.cells[complete]
        draws = self.conditionals(mean, covariance)[1].clone()
        likely, spread = self.likely
        for pattern, observed in enumerate(self.patterns):
            missing = (~observed).nonzero().squeeze(-1)
            rows = (self.pattern_of == pattern).nonzero().squeeze(-1)
            if not len(missing):
                continue
            known = observed.nonzero().squeeze(-1)
            # Not by least squares, whose last bits depend on where the matrices lie in memory.
            slopes = torch.linalg.solve(spread[known][:, known], spread[known][:, missing])
            means = likely[missing] + (donors[:, known] - likely[known]) @ slopes
            noise = donors[:, missing] - means
            scale = noise.std(0).clamp_min(CLOSE)
            for batch in rows.split(AT_ONCE):
                distances = torch.cdist(draws[batch][:, missing] / scale, means / scale)
                nearest = distances.topk(min(DONORS, len(complete)), dim=-1, largest=False).indices
                chosen = torch.randint(nearest.shape[-1], (len(batch), 1), generator=stream)
                drawn = noise[nearest.gather(-1, chosen).squeeze(-1)]
                draws[batch.unsqueeze(-1), missing] = draws[batch.unsqueeze(-1), missing] + drawn
        return draws

    def _parameters(self, filled: Tensor, stream: torch.Generator) -> tuple[Tensor, Tensor]:
        """A draw of mean and covariance given complete rows."""
        mean = filled.mean(0)
        scatter = (filled - mean).mT @ (filled - mean)
        scatter = scatter + RIDGE * self.rows * torch.eye(self.columns, dtype=torch.float64)
        # Bartlett: W = A A' is Wishart of the identity, and L A'^-1 A^-1 L' is inverse Wishart of L L'.
        degrees = torch.arange(self.rows - 1, self.rows - 1 - self.columns, -1, dtype=torch.float64)
        squares = 2 * torch._standard_gamma(degrees / 2, generator=stream)
        normal = torch.randn(self.columns, self.columns, dtype=torch.float64, generator=stream)
        factor = normal.tril(-1) + torch.diag(squares.sqrt())
        root = torch.linalg.cholesky(scatter)
        unit = torch.eye(self.columns, dtype=torch.float64)
        half = root @ torch.linalg.solve_triangular(factor, unit, upper=False).mT
        covariance = half @ half.mT
        shift = torch.randn(self.columns, dtype=torch.float64, generator=stream)
        return mean + half @ shift / self.rows**0.5, covariance

    def _rounded(self, cells: Tensor) -> Tensor:
        """Draws (n, d), moved to the nearest observed value in columns of few values."""
        draws = cells.clone()
        for column in range(self.columns):
            observed = self.known[:, column]
            values = self.values[:, column].detach().cpu().to(torch.float64)[observed].unique()
            if len(values) <= FEW_VALUES:
                draws[:, column] = values[(draws[:, column].unsqueeze(-1) - values).abs().argmin(-1)]
        return draws
