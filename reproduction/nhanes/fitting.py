"""Fitting the NHANES generator to complete cases, and comparing it with them.

Every equation is a gradient-boosted regressor of log(1 + v) on the parents, 100 trees of depth 3 at rate 0.1;
discrete variables that are not roots get a gradient-boosted classifier. Residuals are kept as means of
groups, roots as frequencies: an age is shared by dozens, an income is the mean of a group. No leaf has fewer
than 20 participants.

The validation compares generated rows with participants: the correlation matrices, by the mean absolute error
over all cells (with and without the diagonal, which is exact by definition: the paper does not say), each
variable's distribution, by the largest distance between the two distribution functions, and how often the
outcomes are as desired. All four readings of the paper are measured: context variables independent or in a
chain, the outcomes' noises independent or paired.

Source: Du et al. (2026), App. E.4, Table 5 and Fig. 10; Friedman (2001), Alg. 1; settings are scikit-learn's
defaults except for the leaves.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from safetensors.numpy import save
from scipy.stats import ks_2samp
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from rehearsal_torch.files.atomic_write import write_bytes, write_text
from rehearsal_torch.problems.nhanes.nhanes_generator import (
    ACTIONABLE,
    CONTEXT,
    DESIRED,
    FILES,
    FORMAT,
    LEAF,
    OUTCOMES,
    PARENTS,
    VARIABLES,
    BoostedTrees,
    Classifier,
    Frequencies,
    Generator,
    LogEquation,
    PairedRanks,
    ResidualDistribution,
)
from rehearsal_torch.seeding import numpy_generator

Array = NDArray[np.float64]
PUBLISHED_ERROR = 0.0483
GROUPS = 256
EDGES = np.array([0.0, 0.01, 0.03, 0.06, *np.arange(0.1, 0.95, 0.1), 0.94, 0.97, 0.99, 1.0])
DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Validation:
    """Comparison of generated rows with participants.

    Attributes:
        real: Participants, (n, 17).
        generated: Rows of the default generator, (DRAWS, 17).
        correlations: The two correlation matrices, real and generated, (2, 17, 17).
        summary: Entries of the generator's card.
    """

    real: Array
    generated: Array
    correlations: Array
    summary: dict[str, Any]


def validated(generator: Generator, cases: pd.DataFrame, seed: int = 0) -> Validation:
    """Compares generated rows with complete cases."""
    real = cases[list(VARIABLES)].to_numpy(float)
    true = np.corrcoef(real.T)
    off = ~np.eye(len(true), dtype=bool)
    readings: dict[str, dict[str, float]] = {}
    drawn = {}
    for chain in (False, True):
        for paired in (True, False):
            name = (
                f"roots {'chain' if chain else 'independent'}, noise {'paired' if paired else 'independent'}"
            )
            drawn[name] = generator.draw(DRAWS, numpy_generator(seed), chain, paired)
            error = np.abs(np.corrcoef(drawn[name].T) - true)
            readings[name] = {
                "correlation_mae": round(float(error.mean()), 4),
                "correlation_mae_off_diagonal": round(float(error[off].mean()), 4),
                "desired": round(float(_desired(drawn[name])), 4),
            }
    first = next(iter(readings))
    distances = {
        name: round(float(ks_2samp(real[:, place], drawn[first][:, place]).statistic), 4)
        for place, name in enumerate(VARIABLES)
    }
    summary = {
        "default": first,
        "correlation_mae": readings[first]["correlation_mae"],
        "correlation_mae_paper": PUBLISHED_ERROR,
        "desired_real": round(float(_desired(real)), 4),
        "desired_generated": readings[first]["desired"],
        "draws": DRAWS,
        "readings": readings,
        "largest_distance_of_distributions": distances,
    }
    return Validation(real, drawn[first], np.stack([true, np.corrcoef(drawn[first].T)]), summary)


def _desired(rows: Array) -> float:
    """Share of rows strictly below both bounds: HbA1c is recorded to 0.1 %, so that the bound itself occurs,
    and counts as too high.
    """
    places = [VARIABLES.index(name) for name in OUTCOMES]
    return np.all(
        [rows[:, place] < DESIRED[name][1] for place, name in zip(places, OUTCOMES, strict=True)], axis=0
    ).mean()


CLASSIFIER_TREES = 40
REGRESSOR_TREES = 100
MIN_LEAF_SIZE = 20
CLASSES = ("Sex", "Race", "FamilyHx_Diabetes", "Education")


def _say_nothing(text: str) -> None:
    """Progress callback that prints nothing."""


def fit_generator(
    cases: pd.DataFrame, progress: Callable[[str], None] = _say_nothing, trees: int = REGRESSOR_TREES
) -> Generator:
    """The generator fitted to complete cases.

    Args:
        cases: One row per participant, with the 17 variables among its columns, none missing.
        progress: Called with a line of text before each fit.
        trees: Number of trees per equation.

    Raises:
        ValueError: if a variable is missing, constant or not finite, or there are too few rows.
    """
    missing = [name for name in VARIABLES if name not in cases.columns]
    if missing:
        raise ValueError(f"no column {missing}: expected {list(VARIABLES)}")
    if not np.isfinite(cases[list(VARIABLES)].to_numpy(float)).all():
        raise ValueError("expected complete cases; some values are missing: drop those rows first")
    if len(cases) < 2 * GROUPS:
        raise ValueError(f"expected at least {2 * GROUPS} complete cases; got {len(cases)}")
    constant = [name for name in VARIABLES if cases[name].nunique() < 2]
    if constant:
        raise ValueError(f"{constant}: all values are equal; expected variables that vary")
    equations: dict[str, LogEquation] = {}
    residuals: dict[str, Array] = {}
    for name, parents in PARENTS.items():
        progress(f"{name} from {len(parents)} parents")
        equations[name], residuals[name] = _equation(cases, name, parents, trees)
    chain: dict[str, Classifier | LogEquation] = {}
    for place, name in enumerate(CONTEXT[1:], 1):
        progress(f"{name} given {', '.join(CONTEXT[:place])}")
        chain[name] = (
            _classifier(cases, name, CONTEXT[:place])
            if name in CLASSES
            else _equation(cases, name, CONTEXT[:place], trees)[0]
        )
    bounds = {
        name: [round(float(side), 4) for side in cases[name].quantile([0.01, 0.99])] for name in ACTIONABLE
    }
    return Generator(
        {name: _frequencies(cases[name]) for name in CONTEXT},
        chain,
        equations,
        paired_ranks(*(residuals[y] for y in OUTCOMES)),
        {"bounds": bounds},
    )


def settings() -> dict[str, object]:
    """How the trees were grown and what is kept of the data, for a card."""
    return {
        "equations": f"gradient-boosted regressors of log(1 + v): {REGRESSOR_TREES} trees of depth 3, rate "
        f"0.1, at least {MIN_LEAF_SIZE} participants a leaf",
        "classifiers": f"gradient-boosted classifiers: {CLASSIFIER_TREES} rounds of depth 3, rate 0.1, at "
        f"least {MIN_LEAF_SIZE} participants a leaf",
        "residuals": f"means of {GROUPS} groups of neighbours; ranks of the two outcomes' residuals by cells",
    }


def _equation(
    cases: pd.DataFrame, name: str, parents: tuple[str, ...], trees: int
) -> tuple[LogEquation, Array]:
    columns, target = cases[list(parents)].to_numpy(float), np.log1p(cases[name].to_numpy(float))
    model = GradientBoostingRegressor(
        n_estimators=trees, max_depth=3, learning_rate=0.1, min_samples_leaf=MIN_LEAF_SIZE, random_state=0
    ).fit(columns, target)
    grown = _trees(
        [row[0] for row in model.estimators_], len(parents), float(target.mean()), model.learning_rate
    )
    residuals = target - model.predict(columns)
    return LogEquation(
        grown, grouped(residuals), (float(cases[name].min()), float(cases[name].max()))
    ), residuals


def _classifier(cases: pd.DataFrame, name: str, parents: tuple[str, ...]) -> Classifier:
    columns, target = cases[list(parents)].to_numpy(float), cases[name].to_numpy(float)
    model = GradientBoostingClassifier(
        n_estimators=CLASSIFIER_TREES,
        max_depth=3,
        learning_rate=0.1,
        min_samples_leaf=MIN_LEAF_SIZE,
        random_state=0,
    ).fit(columns, target)
    shares = np.array([(target == value).mean() for value in model.classes_])
    starts = np.log(shares) if len(shares) > 2 else np.log(shares[1:] / shares[:1])
    scores = [
        _trees(list(model.estimators_[:, k]), len(parents), float(start), model.learning_rate)
        for k, start in enumerate(starts)
    ]
    return Classifier(model.classes_.astype(float), tuple(scores))


def _frequencies(column: pd.Series) -> Frequencies:
    values = column.to_numpy(float)
    if (
        len(np.unique(values)) > GROUPS // 2
    ):  # too many values for each to be shared by many people: replaced by means of groups
        values = np.concatenate(
            [
                np.full(len(part), round(float(part.mean()), 2))
                for part in np.array_split(np.sort(values), GROUPS)
            ]
        )
    kept, counts = np.unique(values, return_counts=True)
    return Frequencies(kept, counts / counts.sum())


def _trees(estimators: list, width: int, start: float, rate: float) -> BoostedTrees:
    """Converts scikit-learn's trees."""
    grown = [estimator.tree_ for estimator in estimators]
    shape = (len(grown), max(tree.node_count for tree in grown))
    arrays: Mapping[str, NDArray] = {
        "feature": np.full(shape, LEAF, np.int16),
        "threshold": np.zeros(shape, np.float32),
        "left": np.zeros(shape, np.int16),
        "right": np.zeros(shape, np.int16),
        "value": np.zeros(shape, np.float32),
        "start": np.asarray([start]),
    }
    for row, tree in enumerate(grown):
        inner, own = tree.children_left != -1, slice(tree.node_count)
        rounded = tree.threshold.astype(np.float32)
        # Rounded down to float32: then x <= threshold is the same for every float32 x.
        rounded = np.where(
            rounded.astype(float) > tree.threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded
        )
        arrays["feature"][row, own] = np.where(inner, tree.feature, LEAF)
        arrays["threshold"][row, own] = np.where(inner, rounded, 0)
        arrays["left"][row, own] = np.where(inner, tree.children_left, 0)
        arrays["right"][row, own] = np.where(inner, tree.children_right, 0)
        arrays["value"][row, own] = np.where(inner, 0, rate * tree.value[:, 0, 0])
    return BoostedTrees.of(arrays, width)


def grouped(residuals: Array, groups: int = GROUPS) -> ResidualDistribution:
    """The distribution of residuals (n,).

    Raises:
        ValueError: if there are fewer than two residuals per group.
    """
    if len(residuals) < 2 * groups:
        raise ValueError(
            f"expected at least {2 * groups} residuals; got {len(residuals)}: a mean of one would reveal a "
            "single participant's residual"
        )
    means = [part.mean() for part in np.array_split(np.sort(residuals), groups)]
    return ResidualDistribution(np.array(means, dtype=np.float32).astype(np.float64))


def paired_ranks(first: Array, second: Array, edges: Array = EDGES) -> PairedRanks:
    """The joint distribution of the ranks of first (n,) and second (n,)."""
    one, other = ((np.argsort(np.argsort(part)) + 0.5) / len(part) for part in (first, second))
    shares = np.histogram2d(one, other, bins=(edges, edges))[0] / len(first)
    widths = np.diff(edges)
    # The grid lines split the n ranks only nearly in proportion: scale rows and columns in turn.
    for _ in range(50):
        shares *= (widths / shares.sum(1))[:, None]
        shares *= widths / shares.sum(0)
    return PairedRanks(edges, shares)


def arrays_of(trees: BoostedTrees) -> dict[str, NDArray]:
    """Named arrays, from which `BoostedTrees.of` restores the trees."""
    small = {name: getattr(trees, name).astype(np.int8) for name in ("feature", "left", "right")}
    return small | {"threshold": trees.threshold, "value": trees.value, "start": np.asarray([trees.start])}


def save_generator(generator: Generator, folder: Path) -> None:
    """Writes the two files of a generator."""
    ranks = generator.ranks
    arrays: dict[str, NDArray] = {"ranks.edges": ranks.edges, "ranks.shares": ranks.shares}
    for name, root in generator.roots.items():
        arrays |= {f"roots.{name}.values": root.values, f"roots.{name}.shares": root.shares}
    for part, distributions in (("chain", generator.chain), ("equations", generator.equations)):
        for name, distribution in distributions.items():
            if isinstance(distribution, Classifier):
                arrays[f"{part}.{name}.values"] = distribution.values
                trees = distribution.scores
            else:
                arrays[f"{part}.{name}.means"] = distribution.noise.means
                arrays[f"{part}.{name}.support"] = np.asarray(distribution.support)
                trees = (distribution.trees,)
            for place, score in enumerate(trees):
                arrays |= {f"{part}.{name}.{place}.{key}": value for key, value in arrays_of(score).items()}
    content = save({key: np.ascontiguousarray(value) for key, value in arrays.items()})
    write_bytes(folder / FILES[0], content)
    card = {"format": FORMAT, "sha256": hashlib.sha256(content).hexdigest(), **generator.card}
    write_text(folder / FILES[1], yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=140))
