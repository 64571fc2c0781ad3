"""Cross-validation of transition models: held-out log-likelihood per transition.

Each fold refits everything, ranges and dose levels included, on its training rows, so that every fold has its
own scaling and densities of scaled values cannot be compared between folds. Densities in the variables' units
can: with the scaled value x = (v - lower) / width,

    log p(v) = log p(x) - sum_i log width_i,

and a further term, -log(v_i + 1), for each log-transformed variable. A constant, model-independent shift
remains (the choice of units), on which percentages of a log-likelihood depend; hence `scaled`, the density
under one fixed scaling, for the percentages of the paper's Fig. 6. Used by `cli.verbs.cross_validate`.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (their code draws folds by transition) and Fig. 6.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode, following, next_name, transitions
from rehearsal_torch.data.scaling import Rescale
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.table import Table
from rehearsal_torch.progress import Progress
from rehearsal_torch.seeding import seeded
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.transition import CheckedTransition, TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.task_pool import results
from rehearsal_torch.training.gradient_descent import Descent, settled
from rehearsal_torch.training.surrogate_fit import Fold, fit, folds_of, trained_elsewhere


@dataclass(frozen=True)
class FoldScore:
    """The numbers of rows of a fold, and the mean log-likelihood of its held-out transitions: in the
    variables' units (`clinical`), and under the fixed scaling (`scaled`; `train_scaled` of training rows).
    """

    fold: int
    train: int
    held_out: int
    clinical: float
    scaled: float
    train_scaled: float


@dataclass(frozen=True)
class CrossValidation:
    """The scores of all folds of one model, by "patient" or "transition"."""

    by: str
    folds: tuple[FoldScore, ...]

    @property
    def scaled(self) -> float:
        """Mean over the folds of `FoldScore.scaled`."""
        return fmean(score.scaled for score in self.folds)

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
    workers: int = 1,
) -> CrossValidation:
    """Held-out log-likelihood per transition, fold by fold. Every fold trains for all epochs: its held-out
    rows are for evaluation, and so must not be used for early stopping.

    Args:
        surrogate: Returns an unfitted model; its initial weights depend on seed and fold alone.
        trainer: Returns a trainer, once per fold; without a folder, or with a different one for each fold.
        by: "patient", or "transition" for folds that split patients, as the paper's authors drew them.
        workers: The number of processes that share the folds, each with one thread, where their trainings are
            long enough (`training.surrogate_fit`).

    Raises:
        ValueError: if `by` is neither, there are too few patients, or the surrogate is no transition model.
    """
    table = transitions(episodes)
    require(by in ("patient", "transition"), "by=patient or by=transition", by=by)
    identities = [episode.identity for episode in episodes for _ in range(episode.horizon - 1)]
    folds = folds_of(len(table), identities if by == "patient" else None, count, seed)
    descent = trainer()
    work = float(len(table) * (count - 1) * _members(surrogate))
    workers = workers if trained_elsewhere(descent, work) else 1
    line = Progress("cross-validation", count, steps="fold", quiet=not descent.progress)
    scores = list[FoldScore]()
    with line:
        shared = _Shared(table, surrogate, trainer, seed, settled(descent.accelerator))
        for score in results(_score, shared, folds, workers, ahead=1):
            scores.append(score)
            line.at(len(scores))
    return CrossValidation(by, tuple(scores))


def percentage_decrease(constrained: float, unconstrained: float) -> float:
    """The decrease in percent of the unconstrained log-likelihood's size (Fig. 6); ValueError if it is 0."""
    require(
        unconstrained != 0,
        "a log-likelihood other than zero (or report the difference)",
        unconstrained=unconstrained,
    )
    return 100.0 * (unconstrained - constrained) / abs(unconstrained)


def clinical_log_likelihood(model: TransitionModel | TransitionEnsemble, table: Table) -> Tensor:
    """Log-likelihood of each transition in the variables' units, (n,) float64; the mean over an ensemble."""
    member = model.each[0]
    with torch.no_grad():
        likelihood = model.log_likelihood(table).to(torch.float64)
    return likelihood - _log_volume(member.rescale, member.varying, table)


def _members(surrogate: Callable[[], Surrogate]) -> int:
    """The number of models that a fold trains."""
    with torch.random.fork_rng(devices=[]):
        model = surrogate()
    return len(model.each) if isinstance(model, CheckedTransition) else 1


def _log_volume(rescale: Rescale, varying: Sequence[str], table: Table) -> Tensor:
    """log |dv / dx| of each row's next state, over its measured variables, (n,)."""
    count = len(varying)
    states, widths = following(table, varying).to(rescale.width.device, torch.float64), rescale.width[:count]
    logged = torch.log1p(states.clamp_min(-1 + 1e-12)).where(rescale.logged[:count], 0.0)
    # An unmeasured value contributes nothing: -log width cancels the one in the sum.
    logged = logged.where(~states.isnan(), -widths.log())
    return (widths.log().sum() + logged.sum(-1)).to(table.values.device)


@dataclass(frozen=True)
class _Shared:
    """The arguments of `_score` that all folds share."""

    table: Table
    surrogate: Callable[[], Surrogate]
    trainer: Callable[[], Descent]
    seed: int
    accelerator: Literal["cpu", "gpu"]


def _score(shared: _Shared, fold: Fold) -> FoldScore:
    table = shared.table
    training, held_out = (table.rows(rows) for rows in (fold.train, fold.held_out))
    with seeded(shared.seed + fold.index):
        model = shared.surrogate()
    if not isinstance(model, TransitionModel | TransitionEnsemble):
        raise ValueError(
            f"cross-validation evaluates models of transitions; got a {type(model).__name__}: choose "
            "surrogate=transition_ensemble, surrogate=transition or surrogate=unconstrained"
        )
    descent = shared.trainer()
    # A worker trains on the kind of device that this process would use.
    descent.accelerator = shared.accelerator
    fit(model, training, descent)
    # The ranges of the whole table serve as units, the same for every fold and model; no model uses them.
    member = model.each[0]
    names, logarithms = member.rescale.names, member.rescale.logged.tolist()
    fixed_scaling = Rescale(names, [name for name, logged in zip(names, logarithms, strict=True) if logged])
    fixed_scaling.solve(torch.cat([table.columns(names), table.columns([next_name(name) for name in names])]))
    clinical = clinical_log_likelihood(model, held_out)
    scaled, train_scaled = (
        clinical_log_likelihood(model, rows) + _log_volume(fixed_scaling, member.varying, rows)
        for rows in (held_out, training)
    )
    means = (float(values.mean()) for values in (clinical, scaled, train_scaled))
    return FoldScore(fold.index, len(training), len(held_out), *means)
