"""Cross-validation of transition models: held-out log-likelihood per transition.

Each fold refits everything, ranges and dose levels included, on its training rows, and so has coordinates of
its own, in which densities cannot be compared between folds. They can in the variables' units: with the
scaled value x = (v - lower) / width,

    log p(v) = log p(x) - sum_i log width_i,

and one more term, -log(v_i + 1), for each variable behind a logarithm. A constant model-independent shift
remains (the choice of the units), which percentages of a log-likelihood depend on; so `scaled`, in the
coordinates of one fixed set of ranges, is given beside it for the percentages of the paper's Fig. 6.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6.

Folds: which rows are held out in turn.

Rows of one patient resemble each other: with folds of single transitions a patient's neighbouring steps stand
on both sides, and held-out likelihoods flatter. Folds by patient hold out whole patients.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (five folds; their code draws them by transition).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode, next_name, transitions
from rehearsal_torch.data.scaling import Rescale
from rehearsal_torch.data.table import Table
from rehearsal_torch.seeding import fold_seed, generator
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit


@dataclass(frozen=True)
class Fold:
    """One way to cut rows in two.

    Attributes:
        index: The fold's number, 0 ... count - 1.
        train: Rows to fit on, rising, (n - m,) long.
        held_out: Rows to judge on, rising, (m,) long.
    """

    index: int
    train: Tensor
    held_out: Tensor


def patient_folds(identities: Sequence[str], count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds that keep each patient's rows together.

    Patients, not rows, are dealt out evenly, in an order that depends on the seed and on the set of
    identities but not on how the rows are sorted.

    Args:
        identities: Whose row it is, one a row.
        count: How many folds.
        seed: Decides who goes where.

    Raises:
        ValueError: if there are fewer than two folds, or fewer patients than folds.
    """
    patients = sorted(set(identities))
    place = dict(zip(patients, _deal(len(patients), count, seed, "patients").tolist(), strict=True))
    return _folds(torch.tensor([place[identity] for identity in identities]), count)


def transition_folds(rows: int, count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds of single rows, whoever they belong to: only for comparison with results that were made so.

    Args:
        rows: n, how many rows there are.
        count: How many folds.
        seed: Decides which row goes where.

    Raises:
        ValueError: if there are fewer than two folds, or fewer rows than folds.
    """
    return _folds(_deal(rows, count, seed, "rows"), count)


def _deal(items: int, count: int, seed: int, what: str) -> Tensor:
    if count < 2 or items < count:
        raise ValueError(
            f"expected at least 2 folds and as many {what}; got {count} folds and {items} {what}: take fewer "
            "folds or more data"
        )
    dealt = torch.empty(items, dtype=torch.long)
    dealt[torch.randperm(items, generator=generator(seed))] = torch.arange(items) % count
    return dealt


def _folds(place: Tensor, count: int) -> list[Fold]:
    return [
        Fold(index, (place != index).nonzero()[:, 0], (place == index).nonzero()[:, 0])
        for index in range(count)
    ]


@dataclass(frozen=True)
class FoldScore:
    """How well one fold's model foresees the fold's held-out rows.

    Attributes:
        fold: The fold's number.
        train: Transitions that the model was fitted to.
        held_out: Transitions that it was judged on.
        clinical: Mean log-likelihood of a held-out transition, density in the variables' units.
        scaled: The same with the density in one fixed box: the varying variables scaled by the ranges of the
            whole table.
        train_scaled: `scaled`, of the rows that were fitted.
    """

    fold: int
    train: int
    held_out: int
    clinical: float
    scaled: float
    train_scaled: float


@dataclass(frozen=True)
class CrossValidation:
    """All folds of one model.

    Attributes:
        by: "patient" or "transition".
        folds: One score a fold.
    """

    by: str
    folds: tuple[FoldScore, ...]

    @property
    def scaled(self) -> float:
        """Mean over the folds of `FoldScore.scaled`."""
        return fmean(score.scaled for score in self.folds)

    @property
    def clinical(self) -> float:
        """Mean over the folds of `FoldScore.clinical`."""
        return fmean(score.clinical for score in self.folds)

    @property
    def std(self) -> float:
        """Standard deviation of `FoldScore.scaled` over the folds."""
        return stdev(score.scaled for score in self.folds)


def cross_validate(
    episodes: Sequence[Episode],
    surrogate: Callable[[], Surrogate],
    trainer: Callable[[], Descent],
    count: int = 5,
    seed: int = 0,
    by: str = "patient",
) -> CrossValidation:
    """Held-out log-likelihood per transition of episodes, fold by fold; see `cross_validate_rows`."""
    identities = [episode.identity for episode in episodes for _ in range(episode.horizon - 1)]
    return cross_validate_rows(transitions(episodes), identities, surrogate, trainer, count, seed, by)


def cross_validate_rows(
    table: Table,
    identities: Sequence[str],
    surrogate: Callable[[], Surrogate],
    trainer: Callable[[], Descent],
    count: int = 5,
    seed: int = 0,
    by: str = "patient",
) -> CrossValidation:
    """Held-out log-likelihood per transition, fold by fold.

    Every fold trains for all of the trainer's epochs: the held-out rows judge, and so must not choose when to
    stop.

    Args:
        table: Transitions, in the variables' units.
        identities: Whose transition it is, one a row; in folds by patient, rows of one identity stay
            together.
        surrogate: Makes an unfitted model; its initial weights depend on seed and fold alone, so that equal
            calls give equal results.
        trainer: Makes a trainer, once a fold; without a folder, or with another one for each fold.
        count: How many folds.
        seed: Decides the folds and, with the fold's number, the initial weights.
        by: "patient", or "transition" for folds that split patients, as the paper's authors drew them.

    Returns:
        One score a fold.

    Raises:
        ValueError: if `by` is neither, there are too few patients, or identities and rows disagree in number.
        TypeError: if the surrogate is no transition model.
    """
    if len(identities) != len(table):
        raise ValueError(f"expected one identity for each of the {len(table)} rows; got {len(identities)}")
    if by == "patient":
        folds = patient_folds(identities, count, seed)
    elif by == "transition":
        folds = transition_folds(len(table), count, seed)
    else:
        raise ValueError(f"expected by=patient or by=transition; got {by!r}")
    return CrossValidation(by, tuple(_score(table, fold, surrogate, trainer, seed) for fold in folds))


def percentage_decrease(constrained: float, unconstrained: float) -> float:
    """How much lower a log-likelihood is than the unconstrained model's, in percent of the latter's size;
    negative where it is higher.

    Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 6.

    Raises:
        ValueError: if the unconstrained log-likelihood is zero, of which nothing is a percentage.
    """
    if unconstrained == 0:
        raise ValueError(
            "expected a log-likelihood other than zero to take percentages of; report the difference instead"
        )
    return 100.0 * (unconstrained - constrained) / abs(unconstrained)


def clinical_log_likelihood(model: TransitionModel, table: Table) -> Tensor:
    """Log-likelihood of each transition, density in the variables' units, (n,) float64."""
    with torch.no_grad():
        return model.log_likelihood(table).to(torch.float64) - _log_volume(
            model.rescale, model.varying, table
        )


def _log_volume(rescale: Rescale, varying: Sequence[str], table: Table) -> Tensor:
    """log |dv / dx| of each row's next state, (n,)."""
    width = len(varying)
    after = table.columns([next_name(name) for name in varying]).to(torch.float64)
    logged = torch.where(
        rescale.logged[:width], torch.log1p(after.clamp_min(-1 + 1e-12)), torch.zeros_like(after)
    )
    return rescale.width[:width].log().sum() + logged.sum(-1)


def _score(
    table: Table,
    fold: Fold,
    surrogate: Callable[[], Surrogate],
    trainer: Callable[[], Descent],
    seed: int,
) -> FoldScore:
    inside, outside = (
        Table(table.names, table.values[rows], table.altered[rows]) for rows in (fold.train, fold.held_out)
    )
    with torch.random.fork_rng():
        torch.manual_seed(fold_seed(seed, fold.index))
        model = surrogate()
    if not isinstance(model, TransitionModel):
        raise TypeError(f"expected a transition model, with likelihoods; got {type(model).__name__}")
    fit(model, inside, trainer())
    # The box of the whole table is a unit of measurement, the same for every fold and model; no model sees
    # it.
    names = model.rescale.names
    box = Rescale(
        names, [name for name, logged in zip(names, model.rescale.logged.tolist(), strict=True) if logged]
    )
    box.solve(torch.cat([table.columns(names), table.columns([next_name(name) for name in names])]))
    clinical = clinical_log_likelihood(model, outside)
    scaled, trained = (
        clinical_log_likelihood(model, rows) + _log_volume(box, model.varying, rows)
        for rows in (outside, inside)
    )
    return FoldScore(
        fold.index,
        len(inside),
        len(outside),
        float(clinical.mean()),
        float(scaled.mean()),
        float(trained.mean()),
    )
