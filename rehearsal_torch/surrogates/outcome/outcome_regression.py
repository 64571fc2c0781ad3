"""Outcome regression: the outcomes themselves are regressed, and success is counted from their posterior.

The probability of a desired outcome after an alteration is

    P(Y in S | x, a altered) = E_{u | x} E_{v | x, u, a_first} P(Y in S | x, u, v, a),

with the covariates u and v of the adjustment (`graphs.separation`). By the front door, v are the mediators,
and the outcome is averaged over the usual actions a' | x, u in the place of a.

An estimator of the indicator of S has one bit per row, and nothing to regress where success is rare: an
undesired future is exactly that. Here the slack of the region's faces is regressed (`outcome_draws`), which
varies in every row, and so are u on x and v on (x, u, a_first), each by Bayesian regression on random
features of a kernel fitted by evidence (`estimators.feature_regression`). `posterior_success` draws functions
and residuals and counts. A regression on the context alone predicts the outcome of no action.

Kernels of nearly equal evidence differ most at the edge of the observations, where decisions lie: the
outcomes have E fits, with kernels fitted to different rows, whose disagreement is part of the posterior. The
noise is assumed to have the same distribution at all inputs. Of a covariate that is yes/no the drawn values
are not 0 and 1 but have its conditional mean, which is what counts as far as the outcomes' response to it is
linear.

The slack of a yes/no outcome holds no more than the indicator of the region, and its noise is not additive.
Success itself is then modelled, P(Y in S | h) = Phi(f(h)) (`estimators.feature_classifier`): with a latent
sum t = f(h) + e, e ~ N(0, 1), an outcome is desired where t >= 0. That is one coordinate with one face, and
everything else stays the same. The region is judged as a whole, by the outcome with the fewest values:

    binary     an outcome takes at most two values: success is modelled
    few        an outcome takes at most 50 values, on average at least five times each (counts, classes,
               marks): the slack and success are both fitted, and the smaller Brier score of two-fold held-out
               predictions decides, of at most 10,000 rows, drawn by the seed; with fewer than 30 desired
               rows (or undesired ones) the slack is kept, which every row shows
    many       the slack is regressed

Source: Robins (1986) (g-formula by outcome regression); Snowden, Rose and Mortimer (2011) (its implementation
with one model per variable); Albert and Chib (1993) (the latent sum); Gneiting and Raftery (2007) (the Brier
score).

Which share of the points at which an outcome is evaluated lies where no row is near.

A decision is judged by the mean of success over draws of the covariates, P(a) = mean_j P(Y in S | z_j, a) at
z_j = (x, u_j, v_j). The dose a may be common, and (x, a), too, and still no row may have it together with the
covariates that decide whether it helps: where they nearly determine the action, as where experts dose by
severity, the model's answer is the continuation of its own form. So all of z counts, and of the action what
the covariates leave open. With m, C the mean and covariance of z over the n rows, the habit h(z) of the rows
(a regression of a on z), b(w) and s(w)^2 the mean and variance of its residuals a - h(z) over the 50 nearest
rows in w and those as near as they are,

    w = C^(-1/2) (z - m),    e = (a - h(z) - b(w)) / s(w),    d_5 = distance of (w, e) to the 5th nearest row,

a point is far if d_5 or |e| exceeds the 97.5th percentile of the rows' own, and S(a) is the share of the z_j
that are far with a. Where everything is linear and normal, (w, e) is (z, a) whitened by its covariance. The
habit is what sees a ridge: of rows with a = u^2 + .15 noise, any fixed scale calls a dose near that is four
standard deviations of a given u away; b mends it where doses jump, and s sees who is dosed with little
freedom beside others who are dosed with much. |e| (over the root of k, for k actions) counts by itself since
in many dimensions the 5th nearest row is far in any case.

Rows that repeat others count once, where at least `DISTINCT` are left: a table that was expanded by weights
says no more than before. The radius of d_5 is at least `LEAST`, so that rows of few values do not make
everything between them far. Directions in which rows do not vary at all have the `FLOOR`-th part of the
largest variance: whatever leaves them is far. A drawn covariate of few values is moved to the nearest of
them, as the draws are means with residuals.

Source: Loftsgaarden and Quesenberry (1965) (nearest-neighbour densities); Mahalanobis (1936) (whitening);
Hirano and Imbens (2004) (the action's density given covariates, for doses).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rehearsal_torch.data.part import Solved
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.table import Table, drawn, evenly
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.outcome.posterior_success import (
    ConditionalModels,
    PosteriorSuccess,
    held_out,
    resampled,
)
from rehearsal_torch.surrogates.outcome_draws import EACH, MODELS, FaceCoordinates, KeptDraws, OutcomeDraws
from rehearsal_torch.surrogates.rehearsal_surrogate import AdjustedSurrogate
from rehearsal_torch.surrogates.surrogate import Fits, Modules

NEIGHBOURS, AROUND, SHARE = 5, 50, 0.975
FLOOR, LEAST, DISTINCT = 1e-8, 0.25, 100
# Columns of at most so many values are moved to them.
FEW_VALUES = 20
# Rounding of squared distances, by which equal rows may differ.
ROUNDING = 1e-9
# Numbers of a block of distances, 32 MB.
CHUNK = 4_000_000


class NearRows(Solved):
    """At most so many rows of one candidate set, and how near they are; `drawn` are the covariates in z."""

    def __init__(self, drawn: Sequence[int], most: int = 2000) -> None:
        super().__init__()
        self.drawn, self.most = tuple(drawn), most
        # a - h(z) and e of k actions; the radii of d_5 and of |e|.
        self.register_fitted(rows=("n", "p"), open=("n", "k"), freedom=("n", "k"), radii=(2,))

    def faults(self) -> list[str]:
        """Sizes, and radii that are none."""
        faults = super().faults()
        if faults or bool((self.radii >= 0).all()):
            return faults
        return [f"radii: expected distances; got {self.radii.tolist()}"]

    def solve(self, *examples: Tensor) -> None:
        """Fits to z (n, p) and a - h(z) (n, k), standardised; of many rows, to evenly spaced ones."""
        kept = evenly(len(examples[0]), self.most, examples[0].device)
        rows, left = (example.detach().to(torch.float64)[kept] for example in examples)
        distinct = torch.cat((rows, left), -1).unique(dim=0)
        if DISTINCT <= len(distinct) < len(rows):
            rows, left = distinct.split((rows.shape[1], left.shape[1]), -1)
        self.rows, self.open = rows, left
        self.radii, self.freedom = rows.new_full((2,), LEAST), torch.zeros_like(left)
        if not self.known:
            return
        self.freedom = self._freedom(self._white(rows), left, own=True)
        both = self._both()
        size = max(1, CHUNK // len(both))
        fifth = [
            torch.cdist(part, both).topk(NEIGHBOURS + 1, largest=False).values[:, -1]
            for part in both.split(size)
        ]
        own = torch.stack((torch.cat(fifth), self.freedom.square().mean(-1).sqrt()))
        self.radii = torch.quantile(own, SHARE, dim=-1).clamp_min(LEAST)

    @property
    def known(self) -> bool:
        """Whether there are enough rows for distances."""
        return len(self.rows) > NEIGHBOURS

    def share(
        self, points: Tensor, actions: Tensor, habit: Callable[[Tensor], Tensor], seen: Tensor | None = None
    ) -> Tensor:
        """S of actions (..., B, k) at z (..., B, D, m, p), standardised, given h -> (..., B); by the front
        door also of what the outcome sees of actions, (..., B, D, m, k).
        """
        observed = self._observed(points)
        usual = habit(observed.flatten(0, -2)).reshape(*points.shape[:-1], -1)
        is_far = self.far(observed, actions[..., None, None, :] - usual)
        if seen is not None:
            is_far |= self.far(observed, seen - usual)
        return is_far.to(actions).mean((-2, -1))

    def far(self, points: Tensor, left: Tensor) -> Tensor:
        """Whether no row is near, (...) bool, at z (..., p), standardised, with a - h(z) (..., k)."""
        reach, span = (self.radii * (1 + 1e-9)).tolist()
        known = self._white(points.to(self.rows).flatten(0, -2))
        beside = left.to(self.open).reshape(-1, *points.shape[:-1], left.shape[-1]).flatten(1, -2)
        freedom = self._freedom(known, beside).reshape(-1, left.shape[-1])
        is_far = freedom.square().mean(-1).sqrt() > span
        # Only what the rows may have done at all is compared with the rows.
        open_points = (~is_far).nonzero().squeeze(-1)
        both = self._both()
        for block in open_points.split(max(1, CHUNK // len(both))):
            part = torch.cat((known[block % len(known)], freedom[block]), -1)
            is_far[block] = _squares(part, both).le_(reach**2).sum(-1) < NEIGHBOURS
        return is_far.reshape(left.shape[:-1])

    def _both(self) -> Tensor:
        """(w, e) of the rows, (n, p + k)."""
        return torch.cat((self._white(self.rows), self.freedom), -1)

    def _freedom(self, known: Tensor, left: Tensor, own: bool = False) -> Tensor:
        """e at whitened points (m, p) with a - h(z) (..., m, k), by the nearest rows, (..., m, k)."""
        rows, count, moments = self._white(self.rows), min(AROUND, len(self.rows) - own), []
        centre = self.open.mean(0)
        sums = torch.cat((self.open - centre, (self.open - centre).square()), -1)
        for places in torch.arange(len(known), device=rows.device).split(max(1, CHUNK // len(rows))):
            squares = _squares(known[places], rows)
            if own:
                squares[torch.arange(len(places), device=rows.device), places] = torch.inf
            last = squares.topk(count, dim=-1, largest=False).values[:, -1:]
            nearest = (squares <= last + ROUNDING).to(rows)
            moments.append(nearest @ sums / nearest.sum(-1, keepdim=True))
        mean, square = torch.cat(moments).chunk(2, -1)
        least = FLOOR * float(sums.abs().max().clamp_min(1e-300))
        scale = (square - mean.square()).clamp_min(0).sqrt().clamp_min(least)
        return (left - centre - mean) / scale

    def _white(self, points: Tensor) -> Tensor:
        """Whitened by the mean and covariance of the rows, (m, p) -> (m, p)."""
        mean = self.rows.mean(0)
        centred = self.rows - mean
        variances, directions = torch.linalg.eigh(centred.mT @ centred / len(centred))
        largest = variances.max() if variances.numel() else variances.new_ones(())
        floor = (FLOOR * largest).clamp_min(torch.finfo(torch.float64).tiny)
        return (points.to(mean) - mean) @ (directions / variances.clamp_min(floor).sqrt())

    def _observed(self, points: Tensor) -> Tensor:
        """Points with drawn covariates of few values at the nearest of them."""
        moved = points.to(self.rows).clone()
        for column in self.drawn:
            values = self.rows[:, column].unique()
            if len(values) <= FEW_VALUES:
                between = (values[1:] + values[:-1]) / 2
                moved[..., column] = values[torch.bucketize(moved[..., column].contiguous(), between)]
        return moved


def _squares(points: Tensor, rows: Tensor) -> Tensor:
    """Squared distances, (m, p), (n, p) -> (m, n), four times as fast as `torch.cdist`."""
    squares = torch.addmm(rows.square().sum(-1), points, rows.mT, alpha=-2)
    return squares.add_(points.square().sum(-1, keepdim=True))


Values = Literal["binary", "few", "many"]
BINARY, FEW, REPEATS = 2, 50, 5
FEWEST_ROWS, SCORED_ROWS = 30, 10_000


def latent_face() -> FaceCoordinates:
    """The region {t : t >= 0} of one coordinate."""
    unit = torch.ones(1, 1, dtype=torch.float64)
    return FaceCoordinates(unit, -unit, torch.zeros(1, dtype=torch.float64))


def values_of(outcomes: Tensor) -> Values:
    """How many values the outcomes, (n, |Y|), take; the outcome with the fewest counts."""
    fewest = min(len(column.unique()) for column in outcomes.mT)
    if fewest <= BINARY:
        return "binary"
    return "few" if fewest <= min(FEW, len(outcomes) // REPEATS) else "many"


class OutcomeKind(Solved):
    """The choice between the slack and success, given what makes an unfitted model of the slack (False) or of
    success (True); 1 if success is modelled, 0 if the slack is. The seed is that of folds and draws.
    """

    def __init__(self, model: Callable[[bool], FeatureRegression], slack: FaceCoordinates, seed: int) -> None:
        super().__init__()
        self.model, self.slack, self.latent, self.seed = model, slack, latent_face(), seed
        self.register_fitted(classified=(1,))

    def faults(self) -> list[str]:
        """Sizes, and a choice that is none."""
        faults = super().faults()
        if faults or float(self.classified) in (0.0, 1.0):
            return faults
        return [f"classified: expected 0 or 1; got {float(self.classified)}"]

    @property
    def of_success(self) -> bool:
        """Whether success itself is modelled; False before the choice."""
        return self.fitted and bool(self.classified)

    @property
    def faces(self) -> FaceCoordinates:
        """The coordinates that are modelled: of the slack, or the latent sum."""
        return self.latent if self.of_success else self.slack

    def targets(self, outcomes: Tensor) -> Tensor:
        """What is modelled: the slack's coordinates, or whether rows are desired, (n, |Y|) -> (n, q)."""
        coordinates = self.slack.of_outcomes(outcomes)
        if not self.of_success:
            return coordinates
        return self.slack.desired(coordinates).to(torch.float64).unsqueeze(-1)

    def _desired(self, outcomes: Tensor) -> Tensor:
        """Whether rows are desired, (n, |Y|) -> (n,), 0 or 1."""
        return self.slack.desired(self.slack.of_outcomes(outcomes)).to(torch.float64)

    def solve(self, *examples: Tensor) -> None:
        """Chooses from the inputs of the first candidate set (n, p), standardised, and outcomes (n, |Y|).
        ValueError if an outcome has two values only, and all rows are desired or none is.
        """
        inputs, outcomes = (example.detach().to(torch.float64) for example in examples)
        values, number = values_of(outcomes), len(outcomes)
        count = int(self._desired(outcomes).sum())
        rarer = min(count, number - count)
        if values == "binary" and not rarer:
            which = "every one" if count else "none"
            raise ValueError(
                f"an outcome has two values only, and {which} of the {number} rows is desired: the "
                "rows do not show what makes the difference; add rows of both kinds, or change the region"
            )
        self.classified = outcomes.new_tensor([float(values == "binary")])
        if values != "few" or rarer < FEWEST_ROWS:
            return
        scored = drawn(number, SCORED_ROWS, generator(self.seed + 2)).to(outcomes.device)
        inputs, outcomes = inputs[scored], outcomes[scored]
        desired = self._desired(outcomes)
        folds = torch.randperm(len(desired), generator=generator(self.seed)).to(desired.device) % 2
        scores = []
        for classified in (0.0, 1.0):
            self.classified = desired.new_tensor([classified])
            part, targets = self.model(bool(classified)), self.targets(outcomes)
            part.solve(inputs, targets)
            stream = generator(self.seed + 1)
            predicted = held_out([part], self.faces, inputs, targets, folds, 24, 32, stream)
            scores.append(float((predicted - desired).square().mean()))
        self.classified = desired.new_tensor([float(scores[1] < scores[0])])


# 160 MB: the draws that choose, and those that judge, of several candidate sets.
KEPT_CELLS = 20_000_000
# The draws that judge what others have chosen.
JUDGEMENT = 1


class OutcomeRegression(AdjustedSurrogate):
    """Regressions of the outcomes for each candidate set. ValueError if a number is out of range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        members: E, the number of fits of the outcomes, each with kernels fitted to other rows.
        frequencies: Number of random frequencies of a regression.
        evidence_rows: Maximum number of rows on which a kernel is fitted.
        iterations: Maximum number of iterations of each evidence maximisation.
        sequential: Uses the sequential formula where a single adjustment set does not exist; otherwise the
            single adjustment, with a warning.
        seed: Seed of rows, frequencies and posterior draws.

    Attributes:
        adjustments: The adjustment of each candidate set.
        outcome_kind: Whether the slack is modelled, or success itself; known once fitted.
    """

    by_front_door: bool = True

    def __init__(
        self,
        task: Mapping[str, Any] | RehearsalTask,
        members: int = 3,
        frequencies: int = 100,
        evidence_rows: int = 250,
        iterations: int = 30,
        sequential: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(task, sequential)
        if members < 1:
            raise ValueError(f"expected at least 1 member; got {members}")
        bounded("members", members, 1000)
        self.members, self.seed = members, seed
        used = {name for adjusted in self.adjustments for name in adjusted.before}
        self.before = tuple(name for name in self.task.graph.names if name in used)
        self._settings = (frequencies, evidence_rows, iterations)
        self._kept: KeptDraws[PosteriorSuccess] = KeptDraws(KEPT_CELLS)
        self.covariates = Modules[FeatureRegression]([self._regression(500)] if self.before else [])
        sequential_sets = [index for index, adjusted in enumerate(self.adjustments) if adjusted.between]
        self.between = nn.ModuleDict({str(index): self._regression(600 + index) for index in sequential_sets})
        by_front_door = [index for index, adjusted in enumerate(self.adjustments) if adjusted.front_door]
        self.usual = nn.ModuleDict({str(index): self._regression(700 + index) for index in by_front_door})
        self.outcome_kind = OutcomeKind(
            partial(self._regression, 0), FaceCoordinates.of(self.task.region), 1000 * seed + 96
        )
        self.fits = self._fits(classified=False)
        self.no_action = self._regression(900)
        self.habits = Modules[FeatureRegression](
            self._regression(800 + index) for index in range(len(self.adjustments))
        )
        count = len(self.task.context)
        self.near = Modules[NearRows](
            NearRows(range(count, count + len(sets.before) + len(sets.between))) for sets in self.adjustments
        )

    @property
    def faces(self) -> FaceCoordinates:
        """The coordinates that are modelled: of the slack, or the latent sum."""
        return self.outcome_kind.faces

    def parts(self, table: Table) -> Fits:
        """The overlap, the scaler, what is modelled, the regressions of the covariates, the models of the
        outcomes, and the one without action; ValueError as of `OutcomeKind.solve`.
        """
        self.task.check(table)
        outcomes = table.columns(self.task.outcomes)
        yield self.overlap, self.overlap.examples(table)
        yield self.scaler, (table.columns(self.task.graph.names),)
        yield self.outcome_kind, (self.inputs(table, 0), outcomes)
        self._model(self.outcome_kind.of_success)
        context, targets = self._shown(table, self.task.context), self.outcome_kind.targets(outcomes)
        for part in self.covariates:
            yield part, (context, self._shown(table, self.before))
        for which, adjusted in enumerate(self.adjustments):
            between = self.models(which).between
            if between is not None:
                inputs = (*self.task.context, *adjusted.before, *adjusted.first)
                yield between, (self._shown(table, inputs), self._shown(table, adjusted.between))
            if (usual := self.models(which).usual) is not None:
                known = self._shown(table, (*self.task.context, *adjusted.before))
                yield usual, (known, self.set_to(table, which))
            for member in self.models(which).outcomes:
                yield member, (self.inputs(table, which), targets)
            covariates = self.covariates_of(table, which)
            yield self.habits[which], (covariates, self.set_to(table, which))
            yield self.near[which], (covariates, self.left_open(table, which))
        yield self.no_action, (context, targets)

    def faults(self) -> list[str]:
        """The parts' faults, and regressions whose inputs or outputs differ from the task's."""
        faults = super().faults()
        if faults:
            return faults
        context, count = len(self.task.context), self.faces.count
        expected: list[tuple[str, FeatureRegression, int, int]] = []
        expected += [("covariates.0", part, context, len(self.before)) for part in self.covariates]
        for which, (names, adjusted) in enumerate(zip(self.task.candidates, self.adjustments, strict=True)):
            models, before = self.models(which), context + len(adjusted.before)
            if models.between is not None:
                sizes = (before + len(adjusted.first), len(adjusted.between))
                expected.append((f"between.{which}", models.between, *sizes))
            if models.usual is not None:
                expected.append((f"usual.{which}", models.usual, before, len(names)))
            width = before + len(adjusted.between) + len(names)
            expected.append((f"habits.{which}", self.habits[which], width - len(names), len(names)))
            expected += [
                (f"fits.{which}.{member}", part, width, count) for member, part in enumerate(models.outcomes)
            ]
        expected.append(("no_action", self.no_action, context, count))
        return [
            f"{name}: expected {inputs} inputs and {outputs} outputs; got {part.inputs} and {part.outputs}"
            for name, part, inputs, outputs in expected
            if (part.inputs, part.outputs) != (inputs, outputs)
        ]

    def models(self, which: int) -> ConditionalModels:
        """The regressions of a candidate set."""
        adjusted, names = self.adjustments[which], self.task.candidates[which]
        between = self.between[str(which)] if adjusted.between else None
        assert between is None or isinstance(between, FeatureRegression)
        usual = self.usual[str(which)] if adjusted.front_door else None
        assert usual is None or isinstance(usual, FeatureRegression)
        before = self.covariates[0] if adjusted.before else None
        columns = [self.before.index(name) for name in adjusted.before]
        first = [names.index(name) for name in adjusted.first]
        return ConditionalModels(self.faces, list(self.fits[which]), before, columns, between, first, usual)

    def contexts(self, given: Tensor) -> Tensor:
        """Contexts in units to standardised ones, (B, |X|)."""
        return self.scaler.standardised(self.task.context, given)

    def inputs(self, table: Table, which: int) -> Tensor:
        """The inputs (x, u, v, a) of the regressions of a candidate set, standardised, (n, p)."""
        return torch.cat((self.covariates_of(table, which), self.set_to(table, which)), -1)

    def covariates_of(self, table: Table, which: int) -> Tensor:
        """z = (x, u, v) of rows for a candidate set, standardised, (n, p)."""
        adjusted = self.adjustments[which]
        return self._shown(table, (*self.task.context, *adjusted.before, *adjusted.between))

    def set_to(self, table: Table, which: int) -> Tensor:
        """The actions of rows for a candidate set, standardised, (n, k)."""
        return self._shown(table, self.task.candidates[which])

    def left_open(self, table: Table, which: int) -> Tensor:
        """What the covariates of rows leave open of their actions, a - h(z), (n, k)."""
        return self.set_to(table, which) - self.habits[which](self.covariates_of(table, which))

    def success(self, which: int, draws: int, points: int, purpose: int) -> PosteriorSuccess:
        """Posterior draws of the success of a candidate set: so many functions, and residuals of each;
        `purpose` distinguishes independent samples, such as those that choose and those that judge.
        """
        models = self.models(which)
        every = (*models.outcomes, models.before, models.between, models.usual)
        parts = [part for part in every if part is not None]
        source = [buffer for part in (*parts, self.outcome_kind) for buffer in part.buffers()]
        cells = draws * points * models.outcomes[0].coefficients.numel()

        def make() -> PosteriorSuccess:
            return PosteriorSuccess(models, draws, points, generator(1000 * self.seed + 100 + purpose))

        return self._kept.get((which, draws, points, purpose), source, cells, make)

    def success_without_action(self, contexts: Tensor, draws: int, points: int) -> Tensor:
        """p_d(x) without an alteration, (B, |X|) -> (B, D)."""
        values = self._without_action(contexts, draws, points)
        return self.faces.desired(values).to(torch.float64).mean(-1)

    @torch.no_grad()
    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Those by which the default objective judges; None where success itself is modelled."""
        if self.outcome_kind.of_success:
            return None
        contexts = self.contexts(given.unsqueeze(0))
        if altered:
            success = self.success(self.task.candidates.index(tuple(altered)), MODELS, EACH, JUDGEMENT)
            standardised = self.scaler.standardised(tuple(altered), action.unsqueeze(0))
            values = success.values(contexts, standardised) + success.noise
        else:
            values = self._without_action(contexts, MODELS, EACH)
        return OutcomeDraws(values.reshape(-1, self.faces.count).to(given.device), self.faces.basis)

    def _without_action(self, contexts: Tensor, draws: int, points: int) -> Tensor:
        """The coordinates without an alteration, (B, |X|) -> (B, D, P, q)."""
        stream = generator(1000 * self.seed + 99)
        functions = self.no_action.draws(draws, stream)
        noise = resampled(self.no_action.residuals, draws, points, stream)
        return self.no_action.drawn(functions, contexts[:, None, None].expand(-1, draws, 1, -1)) + noise

    def support(self, which: int, contexts: Tensor, actions: Tensor) -> Tensor:
        """The effective number of rows like a decision, covariates at their means, (..., B)."""
        models = self.models(which)
        known = contexts.expand(*actions.shape[:-1], -1)
        if models.before is not None:
            known = torch.cat((known, models.before(known)[..., list(models.columns)]), -1)
        seen, rows = actions, list[Tensor]()
        if models.between is not None:
            inputs = torch.cat((known, actions[..., list(models.first)]), -1)
            if models.usual is not None:
                # By the front door, the rows like the action are those of the mediators.
                seen, rows = models.usual(known), [models.between.support(inputs.flatten(0, -2))]
            known = torch.cat((known, models.between(inputs)), -1)
        whole = torch.cat((known, seen), -1)
        flat = whole.reshape(-1, whole.shape[-1])
        rows.append(torch.stack([member.support(flat) for member in models.outcomes]).mean(0))
        return torch.stack(rows).amin(0).reshape(whole.shape[:-1])

    def beyond(self, success: PosteriorSuccess, which: int, contexts: Tensor, actions: Tensor) -> Tensor:
        """S of a candidate set, (B, |X|), (..., B, k), standardised -> (..., B); NaN with too few rows."""
        if not self.near[which].known:
            return actions.new_full(actions.shape[:-1], torch.nan)
        points, habit = success.scattered(contexts, actions), self.habits[which]
        seen = success.usual_actions(success.scattered_known(contexts), success.scatter)
        return self.near[which].share(points, actions, habit, seen)

    def left_out(self, table: Table, which: int, folds: Tensor, draws: int = 24, points: int = 32) -> Tensor:
        """P(Y in S | x, u, v, a), (n,), each fold (n,) predicted from the others with the kernels of all."""
        members = self.models(which).outcomes
        targets = self.outcome_kind.targets(table.columns(self.task.outcomes))
        stream = generator(1000 * self.seed + 98)
        inputs = self.inputs(table, which)
        return held_out(members, self.faces, inputs, targets, folds, draws, points, stream)

    def _regression(self, index: int, classified: bool = False) -> FeatureRegression:
        """A regression, or a classification, with a seed of its own."""
        kind = FeatureClassifier if classified else FeatureRegression
        return kind(*self._settings, seed=1000 * self.seed + index)

    def _model(self, classified: bool) -> None:
        """Takes unfitted models of the slack or of success, unless it has them."""
        if isinstance(self.no_action, FeatureClassifier) == classified:
            return
        self.fits = self._fits(classified)
        self.no_action = self._regression(900, classified)

    def _fits(self, classified: bool) -> Modules[Modules[FeatureRegression]]:
        return Modules(
            Modules(self._regression(member, classified) for member in range(self.members))
            for _ in self.task.candidates
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        classified = state_dict.get(f"{prefix}outcome_kind.classified")
        self._model(classified is not None and bool(classified.any()))
        super()._load_from_state_dict(state_dict, prefix, *rest)
