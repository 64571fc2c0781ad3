"""The structural generator of the NHANES benchmark.

Each variable depends on its parents in the influence graph. A variable v >= 0 with parents p satisfies

    v = clip(exp(f(p) + e) - 1),

f a boosted sum of trees fitted to log(1 + v), e drawn from the residuals of f, and the clip keeps v within
the observed support. The six context variables are roots: each is drawn from its own frequencies
(``independent``), or one after the other, each given those before it (``chain``: boosted classifiers, and the
same equation for income). The noises of the two outcomes are drawn with joint ranks (``paired``) or
independently.

A generator is a folder of two files: numbers in ``weights.safetensors``, everything else in ``card.yaml``,
which has the SHA-256 of the numbers. It holds trees, frequencies and group means; no row of a participant.

Source: Du et al. (2026), App. E.4; the chain and the joint ranks are ours.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from rehearsal_torch.files.plain import PlainFileError, read_yaml
from rehearsal_torch.problems.nhanes.modules import CONTEXT, INNER, OUTCOMES, PARENTS, VARIABLES
from rehearsal_torch.problems.nhanes.residuals import PairedRanks, ResidualDistribution
from rehearsal_torch.problems.nhanes.trees import BoostedTrees

Array = NDArray[np.float64]
FORMAT = 1
SHIPPED = Path(__file__).parent / "generators" / "nhanes"
LARGEST = 2**28
FILES = ("weights.safetensors", "card.yaml")


@dataclass(frozen=True, eq=False)
class Frequencies:
    """An empirical categorical distribution.

    Attributes:
        values: (K,), ascending.
        shares: (K,), summing to 1.
    """

    values: Array
    shares: Array

    def __post_init__(self) -> None:
        if (
            self.values.shape != self.shares.shape
            or self.values.ndim != 1
            or not (self.shares >= 0).all()
            or abs(self.shares.sum() - 1) > 1e-6
        ):
            raise ValueError(
                "frequencies: expected values and shares of one length that sum to 1; the file is damaged"
            )

    def quantile(self, uniform: Array) -> Array:
        """Values from uniform numbers, (...) -> (...)."""
        return self.values[
            np.clip(np.searchsorted(np.cumsum(self.shares), uniform, side="right"), 0, len(self.values) - 1)
        ]


@dataclass(frozen=True, eq=False)
class Classifier:
    """P(v = values_j | parents) = softmax_j of boosted trees.

    Attributes:
        values: (K,), the classes.
        scores: K sums of trees; K - 1 if the first class has the score 0.
    """

    values: Array
    scores: tuple[BoostedTrees, ...]

    def quantile(self, columns: list[Array], uniform: Array) -> Array:
        """Classes from uniform numbers, given columns of the parents."""
        raw = [score(columns) for score in self.scores]
        raw = [np.zeros_like(raw[0]), *raw] if len(raw) < len(self.values) else raw
        odds = np.exp(np.stack(raw) - np.max(raw, 0))
        rising = np.cumsum(odds, 0) / odds.sum(0)
        return self.values[np.clip((rising <= uniform).sum(0), 0, len(self.values) - 1)]


@dataclass(frozen=True, eq=False)
class LogEquation:
    """v = clip(exp(f(parents) + e) - 1).

    Attributes:
        trees: f.
        noise: The distribution of e.
        support: The smallest and the largest v.
    """

    trees: BoostedTrees
    noise: ResidualDistribution
    support: tuple[float, float]

    def quantile(self, columns: list[Array], uniform: Array) -> Array:
        """Values from uniform numbers, given columns of the parents."""
        return np.clip(np.expm1(self.trees(columns) + self.noise.quantile(uniform)), *self.support)

    def rank_of(self, columns: list[Array], bound: float) -> Array:
        """P(v <= bound | parents) for a bound inside the support, given columns of the parents."""
        return self.noise.below(np.log1p(bound) - self.trees(columns))


@dataclass(frozen=True, eq=False)
class Generator:
    """The fitted generator.

    Attributes:
        roots: Context variable to its frequencies.
        chain: Each context variable but the first to its conditional distribution given those before it.
        equations: Every other variable to its equation.
        ranks: The joint distribution of the ranks of the two outcomes' noises.
        card: What it was fitted to, how well it fits, and the [1 %, 99 %] interval of each actionable
            variable.
    """

    roots: Mapping[str, Frequencies]
    chain: Mapping[str, Classifier | LogEquation]
    equations: Mapping[str, LogEquation]
    ranks: PairedRanks
    card: Mapping[str, Any] = field(default_factory=dict)

    def contexts(self, uniform: Array, chain: bool = False) -> dict[str, Array]:
        """Context variables from uniform numbers (6, n), each (n, 1)."""
        columns: dict[str, Array] = {}
        for name, own in zip(CONTEXT, uniform[..., None], strict=True):
            distribution = self.chain[name] if chain and name in self.chain else self.roots[name]
            columns[name] = (
                distribution.quantile(own)
                if isinstance(distribution, Frequencies)
                else distribution.quantile([columns[before] for before in columns], own)
            )
        return columns

    def inner(self, given: Mapping[str, Array], uniform: Mapping[str, Array]) -> dict[str, Array]:
        """The variables between context and outcomes: given ones, (R, 1) or (1, 1), are kept, the others
        follow from their uniform numbers, (R, 1) or (1, M), or are left out where they have none.
        """
        columns = dict(given)
        for name in INNER:
            if name not in columns and name in uniform:
                columns[name] = self.equations[name].quantile(
                    [columns[parent] for parent in PARENTS[name]], uniform[name]
                )
        return columns

    def outcomes(
        self, columns: Mapping[str, Array], first: Array, second: Array, paired: bool = True
    ) -> dict[str, Array]:
        """The two outcomes, from two uniform numbers per row."""
        parts = (first, (self.ranks if paired else PairedRanks.independent()).second(first, second))
        return {
            name: self.equations[name].quantile([columns[parent] for parent in PARENTS[name]], own)
            for name, own in zip(OUTCOMES, parts, strict=True)
        }

    def desired(
        self, columns: Mapping[str, Array], bounds: tuple[float, float], paired: bool = True
    ) -> Array:
        """P(HbA1c <= bound and FPG <= bound | all variables before them), with the outcomes' noise integrated
        out exactly.
        """
        ranks = [
            self.equations[name].rank_of([columns[parent] for parent in PARENTS[name]], bound)
            for name, bound in zip(OUTCOMES, bounds, strict=True)
        ]
        return self.ranks.below(*ranks) if paired else ranks[0] * ranks[1]

    def draw(
        self, count: int, stream: np.random.Generator, chain: bool = False, paired: bool = True
    ) -> Array:
        """Rows of all variables under no action, (count, 17)."""
        uniform = stream.random((count, len(VARIABLES))).T
        columns = self.inner(
            self.contexts(uniform[: len(CONTEXT)], chain),
            dict(zip(INNER, uniform[len(CONTEXT) : -2, :, None], strict=True)),
        )
        columns |= self.outcomes(columns, uniform[-2][:, None], uniform[-1][:, None], paired)
        return np.concatenate([columns[name] for name in VARIABLES], 1)

    @classmethod
    def load(cls, folder: Path = SHIPPED) -> "Generator":
        """Reads a folder; nothing is unpickled.

        Raises:
            ValueError: if a file is missing, was changed after it was written, or holds no generator.
        """
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise ValueError(
                f"{folder}: there is no {' and no '.join(missing)}: give a folder that `python -m "
                "reproduction.nhanes` wrote as <out>/generator"
            )
        if (folder / FILES[0]).stat().st_size > LARGEST:
            raise ValueError(
                f"{folder / FILES[0]}: expected at most {LARGEST // 2**20} MiB; it is larger: prepare the "
                "generator again"
            )
        content = (folder / FILES[0]).read_bytes()
        try:
            card = read_yaml(folder / FILES[1])
        except PlainFileError as error:
            raise ValueError(f"{error}: prepare the generator again") from error
        if not isinstance(card, dict) or card.get("format") != FORMAT:
            raise ValueError(
                f"{folder / FILES[1]}: expected a card of format {FORMAT}: prepare the generator again"
            )
        if hashlib.sha256(content).hexdigest() != card.get("sha256"):
            raise ValueError(
                f"{folder / FILES[0]} is not the file that card.yaml describes (its SHA-256 differs): "
                "prepare the generator again"
            )
        try:
            return _read(load(content), card)
        except SafetensorError as error:
            raise ValueError(
                f"{folder / FILES[0]} is not a safetensors file ({error}): prepare the generator again"
            ) from error
        except (KeyError, IndexError) as error:
            raise ValueError(f"{folder / FILES[0]} lacks {error}: prepare the generator again") from error


def _read(arrays: Mapping[str, NDArray], card: Mapping[str, Any]) -> Generator:
    def distribution(part: str, name: str, width: int) -> Classifier | LogEquation:
        trees: list[BoostedTrees] = []
        while f"{part}.{name}.{len(trees)}.feature" in arrays:
            prefix = f"{part}.{name}.{len(trees)}."
            trees.append(
                BoostedTrees.of(
                    {
                        key.removeprefix(prefix): value
                        for key, value in arrays.items()
                        if key.startswith(prefix)
                    },
                    width,
                )
            )
        if f"{part}.{name}.values" in arrays:
            values = arrays[f"{part}.{name}.values"]
            if not 0 <= len(values) - len(trees) <= 1:
                raise ValueError(
                    f"{name}: expected a sum of trees for each of {len(values)} classes; got {len(trees)}; "
                    "the file is damaged"
                )
            return Classifier(values, tuple(trees))
        lower, upper = arrays[f"{part}.{name}.support"].tolist()
        return LogEquation(trees[0], ResidualDistribution(arrays[f"{part}.{name}.means"]), (lower, upper))

    equations: dict[str, LogEquation] = {}
    for name in (*INNER, *OUTCOMES):
        equation = distribution("equations", name, len(PARENTS[name]))
        if not isinstance(equation, LogEquation):
            raise ValueError(f"{name}: expected an equation, not classes; the file is damaged")
        equations[name] = equation
    return Generator(
        {
            name: Frequencies(arrays[f"roots.{name}.values"], arrays[f"roots.{name}.shares"])
            for name in CONTEXT
        },
        {name: distribution("chain", name, index + 1) for index, name in enumerate(CONTEXT[1:])},
        equations,
        PairedRanks(arrays["ranks.edges"], arrays["ranks.shares"]),
        card,
    )
