"""Outcome regression (Bayesian g-formula): one posterior behind all claims about a table's decisions.

The probability of a desired outcome after an alteration is

    P(Y in S | x, a altered) = E_{u | x} E_{v | x, u, a_first} P(Y in S | x, u, v, a),

with the covariates u and v of the adjustment (`graphs.separation`): v follows a_first, the actions of the set
that are set before it, and h = (x, u, v, a) below. An indicator of S has one bit per row,
and hardly any where success is rare. So the slack of the region's faces, how far an outcome lies inside
each of its inequalities, is regressed (`outcome_draws`). It varies in every row, as are u on x, v on (x, u,
a_first), and the actions on their predecessors; each regression has a scale that may depend on its inputs,
units, and a pool of residuals (`estimators.response_regression`). Functions are drawn once, at the fit;
`shared_draws` evaluates them for every action, for no action, and for every case.

Kernels of nearly equal evidence differ most at the edge of the observations, where decisions lie: the
outcomes have E fits with kernels of different rows, and as many draws of each.

The slack of a yes/no outcome has no more information than the indicator, and its noise is not additive. Then
success itself is modelled, P(Y in S | h) = Phi(f(h)) (`estimators.feature_classifier`): with a latent sum t =
f(h) + e, e ~ N(0, 1), an outcome is desired if t >= 0. The outcome with the fewest values decides for the
whole region:

    binary     an outcome takes at most two values: success is modelled
    few        an outcome takes at most 50 values, on average at least five times each (counts, classes,
               marks): both are fitted, and the smaller Brier score of two-fold held-out predictions decides,
               of at most 10,000 rows, drawn by the seed; with fewer than 30 desired (or undesired) rows the
               slack is modelled
    many       the slack is regressed

Counted or rounded outcomes lie on a lattice, y_0 + k s: a face that bounds one of them bounds the continuous
model half a step beyond the last desired value (`FaceCoordinates.between`).

The predictions of success are scored likewise, beside the share of desired rows (`OutcomeScore`).

Source: Robins (1986) (g-formula by outcome regression); Snowden, Rose and Mortimer (2011) (its implementation
with one model per variable); Albert and Chib (1993) (the latent sum); Gneiting and Raftery (2007) (the Brier
score).
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from rehearsal_torch.data.codings.one_hot_actions import combinations
from rehearsal_torch.data.estimate import Intervals, apart, ends_of
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.table import Table, drawn
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.estimators.response_regression import ResponseRegression
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.outcome import average_effects as averaging
from rehearsal_torch.surrogates.outcome.behaviour_policy import UsualAction
from rehearsal_torch.surrogates.outcome.case_draws import CaseDraws
from rehearsal_torch.surrogates.outcome.near_rows import NearRows
from rehearsal_torch.surrogates.outcome.shared_draws import (
    Functions,
    ResponseModels,
    SharedDraws,
    mean_success,
)
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates, KeptDraws, OutcomeDraws
from rehearsal_torch.surrogates.rehearsal_surrogate import AdjustedSurrogate
from rehearsal_torch.surrogates.surrogate import Fits, Modules

NEAR_ROWS = 1000  # the most rows that are compared with points
KEPT_CELLS = 20_000_000  # 160 MB of draws of several candidate sets
COVARIATE = (50, 150, 20)  # frequencies, evidence rows and iterations for covariates and actions

Values = Literal["binary", "few", "many"]
BINARY, FEW, REPEATS = 2, 50, 5
# Rounding: by which part of a step values may miss a lattice, by which of their range equal ones differ.
ON_LATTICE, ROUNDING = 1e-6, 1e-9
FEWEST_ROWS, SCORED_ROWS = 30, 10_000
# For averages: the fewest rows of a level in each fold, the most actions, and quantiles of a continuous one.
FEWEST_OF_LEVEL, MOST_ACTIONS = 5, 12
QUANTILES = (0.1, 0.5, 0.9)


def latent_face() -> FaceCoordinates:
    """The region {t : t >= 0} of one coordinate."""
    unit = torch.ones(1, 1, dtype=torch.float64)
    return FaceCoordinates(unit, -unit, torch.zeros(1, dtype=torch.float64))


def lattice_of(values: Tensor) -> Tensor:
    """Step and origin of the lattice on which values (n,) lie; a step of 0 if they lie on none."""
    distinct = values.unique()
    steps = distinct.diff()
    # Values that differ by rounding alone are one.
    steps = steps[steps > ROUNDING * (distinct[-1] - distinct[0])]
    if len(steps) < 2:
        return values.new_zeros(2)
    step = steps.min()
    regular = bool((steps / step - (steps / step).round()).abs().max() < ON_LATTICE)
    return torch.stack((step, distinct[0])) if regular else values.new_zeros(2)


def values_of(outcomes: Tensor) -> Values:
    """How many values the outcome (n, |Y|) with the fewest values takes."""
    fewest = min(len(column.unique()) for column in outcomes.mT)
    if fewest <= BINARY:
        return "binary"
    return "few" if fewest <= min(FEW, len(outcomes) // REPEATS) else "many"


class OutcomeKind(Solved):
    """Decides whether the slack (0) or success (1) is modelled; `model(classified)` makes an unfitted model
    of either kind.
    """

    def __init__(self, model: Callable[[bool], FeatureRegression], slack: FaceCoordinates, seed: int) -> None:
        super().__init__()
        self.model, self.slack, self.latent, self.seed = model, slack, latent_face(), seed
        # The lattice: s and y_0 of each coordinate; s = 0 without one.
        self.register_fitted(classified=(1,), lattice=(slack.count, 2))

    def faults(self) -> list[str]:
        """Faults of sizes, and an invalid choice."""
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
        """The modelled coordinates: of the slack, or the latent sum."""
        return self.latent if self.of_success else self.slack.between(self.lattice)

    def targets(self, outcomes: Tensor) -> Tensor:
        """Regression targets: the slack's coordinates, or whether rows are desired, (n, |Y|) -> (n, q)."""
        coordinates = self.slack.of_outcomes(outcomes)
        if not self.of_success:
            return coordinates
        return self.slack.desired(coordinates).to(torch.float64).unsqueeze(-1)

    def _desired(self, outcomes: Tensor) -> Tensor:
        """Whether rows are desired, (n, |Y|) -> (n,), 0 or 1."""
        return self.slack.desired(self.slack.of_outcomes(outcomes)).to(torch.float64)

    def solve(self, *examples: Tensor) -> None:
        """Selects by inputs (n, p), outcomes (n, |Y|), units (n,); ValueError if rows are all alike."""
        inputs, outcomes = (example.detach().to(torch.float64) for example in examples[:2])
        values, total = values_of(outcomes), len(outcomes)
        count = int(self._desired(outcomes).sum())
        rarer = min(count, total - count)
        if values == "binary" and not rarer:
            share = "every one" if count else "none"
            raise ValueError(
                f"an outcome has two values only, and {share} of the {total} rows is desired: the "
                "rows do not show what makes the difference; add rows of both kinds, or change the region"
            )
        self.classified = outcomes.new_tensor([float(values == "binary")])
        self.lattice = torch.stack([lattice_of(column) for column in self.slack.of_outcomes(outcomes).mT])
        if values != "few" or rarer < FEWEST_ROWS:
            return
        subset = drawn(total, SCORED_ROWS, generator(self.seed + 2)).to(outcomes.device)
        inputs, outcomes = inputs[subset], outcomes[subset]
        desired = self._desired(outcomes)
        units = examples[2][subset] if len(examples) > 2 else torch.arange(len(desired))
        groups = units.unique(return_inverse=True)[1].to(desired.device)
        halves = torch.randperm(int(groups.max()) + 1, generator=generator(self.seed)) % 2
        folds = halves.to(desired.device)[groups]
        scores = []
        for classified in (0.0, 1.0):
            self.classified = desired.new_tensor([classified])
            model, targets = self.model(bool(classified)), self.targets(outcomes)
            model.solve(inputs, targets)
            predicted = left_out(model, self.faces, inputs, targets, folds)
            scores.append(float((predicted - desired).square().mean()))
        self.classified = desired.new_tensor([float(scores[1] < scores[0])])


class OutcomeScore(Solved):
    """Brier scores of two-fold held-out predictions of success, and of the share of desired rows."""

    def __init__(self) -> None:
        super().__init__()
        self.register_fitted(brier=(2,))

    def solve(self, *examples: Tensor) -> None:
        """Fits to predictions and whether rows are desired, (n,) each."""
        predicted, desired = examples
        self.brier = torch.stack([(p - desired).square().mean() for p in (predicted, desired.mean())])

    @property
    def beats_constant(self) -> bool:
        """Whether the model predicts success better than its share; true if unknown."""
        return not self.fitted or bool(self.brier[0] < self.brier[1])

    def doubt(self) -> list[Finding]:
        """A finding if the model predicts no better than the share."""
        if self.beats_constant:
            return []
        brier, constant = self.brier.tolist()
        pair = " against ".join(apart(brier, constant, 4))
        pair = f"Brier score {pair}, in two folds of the rows learnt from"
        text = f"the model predicts rows that were left out no better than a constant does ({pair})"
        consequence = "by it alone, no gain is told from zero"
        return [Finding("score", f"{text}: {consequence}", {"brier": brier, "constant": constant})]


def left_out(
    model: FeatureRegression,
    faces: FaceCoordinates,
    inputs: Tensor,
    targets: Tensor,
    folds: Tensor,
    points: Tensor | None = None,
) -> Tensor:
    """Cross-fitted P(Y in S | h) at rows (n, p), or at points (..., n, p) of these, by folds (n,)."""
    points = inputs if points is None else points
    probabilities = points.new_zeros(points.shape[:-1])
    for fold in folds.unique().tolist():
        held_out = folds == fold
        refitted = deepcopy(model)
        refitted.condition(inputs[~held_out], targets[~held_out])
        fold_points = points[..., held_out, :]
        success = mean_success(refitted, faces, fold_points.flatten(0, -2))
        probabilities[..., held_out] = success.reshape(fold_points.shape[:-1])
    return probabilities


class OutcomeRegression(AdjustedSurrogate):
    """Regressions of outcomes, covariates and actions for each candidate set; ValueError for settings out of
    range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        members: E, the number of fits of the outcomes, each with kernels of other rows.
        blocks: N, the number of draws of covariates and usual actions, a multiple of E.
        functions: G, the number of functions of the outcomes in each of them.
        frequencies: Number of random frequencies of a regression of the outcomes.
        evidence_rows: The most rows on which a kernel is fitted.
        iterations: The most iterations of each evidence maximisation.
        sequential: Uses the sequential formula where no single adjustment set is valid; if false, the single
            set all the same, with a warning.
        seed: Seed of rows, frequencies and draws.
    """

    by_front_door: bool = True

    def __init__(
        self,
        task: Mapping[str, Any] | RehearsalTask,
        members: int = 4,
        blocks: int = 16,
        functions: int = 12,
        frequencies: int = 100,
        evidence_rows: int = 300,
        iterations: int = 30,
        sequential: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(task, sequential)
        bounded("members", members, 100)
        if members < 1 or blocks < 1 or blocks % members or functions < 1:
            expected = "expected at least one member and function, and blocks that are a multiple of members"
            raise ValueError(f"{expected}; got members {members}, blocks {blocks}, functions {functions}")
        self.members, self.blocks, self.functions, self.seed = members, blocks, functions, seed
        self._settings = (frequencies, evidence_rows, iterations)
        self._kept: KeptDraws[SharedDraws] = KeptDraws(KEPT_CELLS)
        covariates = {name for adjustment in self.adjustments for name in adjustment.before}
        self.before = tuple(name for name in self.task.graph.names if name in covariates)
        self.covariates = Modules[ResponseRegression]([self._covariate(500)] if self.before else [])
        self.outcome_kind = OutcomeKind(
            partial(self._outcome, 0), FaceCoordinates.of(self.task.region), 1000 * seed + 96
        )
        self.fits, self.score = self._fits(classified=False), OutcomeScore()
        self.between, self.usual = Modules[ResponseRegression](), Modules[Modules[UsualAction]]()
        self.habits, self.near = Modules[ResponseRegression](), Modules[NearRows]()
        self.habits_seen, self.near_seen = Modules[ResponseRegression](), Modules[NearRows]()
        self.averages = Modules[averaging.AverageEffects](
            averaging.AverageEffects(members) for _ in self.task.candidates
        )
        context = len(self.task.context)
        for which, adjustment in enumerate(self.adjustments):
            base = 600 + 20 * which
            if adjustment.between:
                self.between.append(self._covariate(base))
            stages = enumerate(self._stages(which), 1)
            seeds = [(stage, 1000 * seed + base + 2 * order) for order, stage in stages]
            self.usual.append(
                Modules(
                    UsualAction(len(stage), self._levels(stage), COVARIATE, unit_seed)
                    for stage, unit_seed in seeds
                )
            )
            self.habits.append(self._covariate(base + 8))
            levels = self._levels(self.task.candidates[which])
            after_u = context + len(adjustment.before)
            after_v = after_u + len(adjustment.between)
            drawn_end = after_u if adjustment.front_door else after_v
            self.near.append(NearRows(range(context, drawn_end), NEAR_ROWS, levels))
            if adjustment.front_door:
                self.near_seen.append(NearRows(range(context, after_v), NEAR_ROWS, levels))
                self.habits_seen.append(self._covariate(base + 9))

    def parts(self, table: Table) -> Fits:
        """All parts in order: scaling, kind, covariates, then each candidate set's, score and averages."""
        self.task.check(table)
        outcomes = table.columns(self.task.outcomes)
        units = self._units(table)
        yield self.overlap, self.overlap.examples(table)
        yield self.scaler, (table.columns(self.task.graph.names),)
        yield self.outcome_kind, (self.inputs(table, 0), outcomes, *units)
        self._set_model(self.outcome_kind.of_success)
        context, targets = self._standardised(table, self.task.context), self.outcome_kind.targets(outcomes)
        for part in self.covariates:
            yield part, (context, self._standardised(table, self.before), *units)
        between = iter(self.between)
        for which, adjustment in enumerate(self.adjustments):
            if adjustment.between:
                names = (*self.task.context, *adjustment.before, *adjustment.first)
                targets_v = self._standardised(table, adjustment.between)
                yield next(between), (self._standardised(table, names), targets_v, *units)
            for member in self.fits[which]:
                yield member, (self.inputs(table, which), targets, *units)
            for stage, names in zip(self.usual[which], self._stages(which), strict=True):
                predictors = self._standardised(table, self._predecessors(which, names))
                yield stage, (predictors, self._standardised(table, names), *units)
            covariates, actions = self.beside(table, which), self.set_to(table, which)
            yield self.habits[which], (covariates, actions)
            yield self.near[which], (covariates, actions - self.habits[which](covariates), actions)
            if (front_door := self._front_door_near(which)) is not None:
                covariates = self.covariates_of(table, which)
                yield front_door[1], (covariates, actions)
                yield front_door[0], (covariates, actions - front_door[1](covariates), actions)
        rows, _, folds = self._fold_rows(table)
        faces, inputs = self.outcome_kind.faces, self.inputs(table, 0)[rows]
        predicted = left_out(self.fits[0][0], faces, inputs, targets[rows], folds)
        yield self.score, (predicted, self._desired(table, rows))
        # With actions set by decisions, rows are no sample of usual actions.
        for which in range(0 if bool(table.altered.any()) else len(self.averages)):
            if len(actions := self._averaged_actions(table, which)):
                yield self.averages[which], self._averages(table, which, actions, targets)

    def models(self, which: int) -> ResponseModels:
        """The regressions of a candidate set."""
        adjustment, names = self.adjustments[which], self.task.candidates[which]
        index = sum(bool(earlier.between) for earlier in self.adjustments[:which])
        return ResponseModels(
            self.outcome_kind.faces,
            self.outcome_kind.of_success,
            list(self.fits[which]),
            self.covariates[0] if adjustment.before else None,
            [self.before.index(name) for name in adjustment.before],
            self.between[index] if adjustment.between else None,
            [names.index(name) for name in adjustment.first],
            list(self.usual[which]),
            self.near[which],
            self.habits[which],
            adjustment.front_door,
            self._front_door_near(which),
        )

    def _front_door_near(self, which: int) -> tuple[NearRows, ResponseRegression] | None:
        """By the front door, near rows and habit for usual actions beside (x, u, v)."""
        if not self.adjustments[which].front_door:
            return None
        index = sum(earlier.front_door for earlier in self.adjustments[:which])
        return self.near_seen[index], self.habits_seen[index]

    def draws(self, which: int, each: int, points: int, near: int, purpose: int) -> SharedDraws:
        """Draws for a candidate set by the first `each` functions of each block, at points by purpose."""
        models = self.models(which)
        source = [buffer for part in self.children() for buffer in part.buffers()]
        cells = self.blocks * each * models.outcomes[0].coefficients.numel()

        def make() -> SharedDraws:
            stream = generator(1000 * self.seed + 100 + which)
            functions = Functions.drawn(models, self.blocks, self.functions, stream)
            point_stream = generator(1000 * self.seed + 200 + purpose)
            return SharedDraws(models, functions, each, points, near, point_stream)

        return self._kept.get((which, each, points, near, purpose), source, cells, make)

    def contradictions(self, which: int) -> list[Finding]:
        """A finding for each action of a candidate set whose average effect the check contradicts."""
        findings = []
        for effect in self.averages[which].effects():
            if effect.against is None and effect.check is not None and effect.contradicted:
                values = self.averages[which].actions[effect.action].tolist()
                setting = self.task.worded(dict(zip(self.task.candidates[which], values, strict=True)))
                words = " and ".join(f"{name} at {value}" for name, value in setting.items())
                intervals = Intervals()
                model, check = (
                    intervals.difference(estimate.point, ends_of(estimate), estimate.level)
                    for estimate in (effect.draws.estimate(), effect.check)
                )
                text = (
                    f"on average over the rows, {words} changes the chance of a desired outcome by {model} "
                    f"according to the model, and by {check} by a second estimate: one of them errs"
                )
                findings.append(Finding("claim", text))
        return findings

    @torch.no_grad()
    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Draws by all functions; None if success itself is modelled."""
        if self.outcome_kind.of_success:
            return None
        which = self.task.candidates.index(tuple(altered)) if altered else 0
        case = CaseDraws(self.draws(which, 4, 32, 1, 2), self.contexts(given.unsqueeze(0)))
        standardised = self.scaler.standardised(tuple(altered), action.unsqueeze(0)) if altered else None
        values = case.outcomes(standardised, generator(1000 * self.seed + 98))
        step, origin = self.outcome_kind.lattice.unbind(-1)
        rounded = origin + step * ((values - origin) / torch.where(step > 0, step, 1.0)).round()
        values = torch.where(step > 0, rounded, values)
        return OutcomeDraws(values.to(given.device), self.outcome_kind.faces.basis)

    def contexts(self, given: Tensor) -> Tensor:
        """Contexts in units to standardised ones, (B, |X|)."""
        return self.scaler.standardised(self.task.context, given)

    def inputs(self, table: Table, which: int) -> Tensor:
        """The inputs (x, u, v, a) of the regressions of a candidate set, standardised, (n, p)."""
        return torch.cat((self.covariates_of(table, which), self.set_to(table, which)), -1)

    def covariates_of(self, table: Table, which: int) -> Tensor:
        """z = (x, u, v) of rows for a candidate set, standardised, (n, p)."""
        adjustment = self.adjustments[which]
        return self._standardised(table, (*self.task.context, *adjustment.before, *adjustment.between))

    def beside(self, table: Table, which: int) -> Tensor:
        """The covariates by which rows are compared, z, or (x, u) by the front door, (n, p)."""
        adjustment = self.adjustments[which]
        between = () if adjustment.front_door else adjustment.between
        return self._standardised(table, (*self.task.context, *adjustment.before, *between))

    def set_to(self, table: Table, which: int) -> Tensor:
        """The actions of rows for a candidate set, standardised, (n, k)."""
        return self._standardised(table, self.task.candidates[which])

    def _averaged_actions(self, table: Table, which: int) -> Tensor:
        """Actions (c, k), in units, to average over: observed levels, or quantiles; none if unidentified."""
        names, box = self.task.candidates[which], self.task.box
        values = table.columns(names)
        if self.adjustments[which].reasons:
            return values[:0]
        levels = {name: box.levels[name] for name in names if name in box.levels}
        if len(levels) == len(names):
            grid = values.new_tensor(combinations(levels, self.task.codings))
            counts = (values[:, None] == grid).all(-1).sum(0) if len(grid) <= MOST_ACTIONS else 0 * grid[:, 0]
            return grid[counts >= 2 * FEWEST_OF_LEVEL]
        if len(names) > 1:
            return values[:0]
        return box.only(names).project(values.quantile(values.new_tensor(QUANTILES), dim=0)).unique(dim=0)

    @torch.no_grad()
    def _averages(self, table: Table, which: int, actions: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """The examples of `AverageEffects.solve`."""
        stream = generator(1000 * self.seed + 99)
        indices = averaging.chosen_rows(len(table), stream).to(targets.device)
        rows = self._standardised(table, (*self.task.context, *self.adjustments[which].before))[indices]
        units = self._unit_numbers(table, indices)
        draws = self.draws(which, self.functions, len(rows), averaging.NEAR_ROWS, 3)
        standardised = self.scaler.standardised(self.task.candidates[which], actions)
        means = averaging.row_means(draws, rows, units, standardised, stream)
        return actions, *means, *self._robust(table, which, actions, targets)

    def _robust(self, table: Table, which: int, actions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Doubly robust (AIPW) scores psi of some rows under each action and under none, and their units;
        empty where the check does not apply.
        """
        names, adjustment = self.task.candidates[which], self.adjustments[which]
        empty = targets.new_empty(0), targets.new_empty(0)
        if adjustment.between or adjustment.front_door or not set(names) <= set(self.task.box.levels):
            return empty
        rows, keys, folds = self._fold_rows(table)
        actions_taken, desired = table.columns(names)[rows], self._desired(table, rows)
        matches = (actions_taken[:, None] == actions).all(-1)
        usual, standardised = self.usual[which][0], self.scaler.standardised(names, actions)
        if not usual.told_apart:
            return empty
        columns = (standardised[:, None] == usual.combinations).all(-1)
        counts = torch.stack([matches[folds == fold].sum(0) for fold in (0, 1)])
        if bool((counts < FEWEST_OF_LEVEL).any()) or not bool(columns.any(-1).all()):
            return empty
        covariates = self.covariates_of(table, which)[rows]
        chances = usual.left_out(covariates, self.set_to(table, which)[rows], folds)
        chances = chances[:, columns.long().argmax(-1)].clamp_min(averaging.LEAST_CHANCE)
        inputs, member = self.inputs(table, which)[rows], self.fits[which][0]
        altered_inputs = torch.cat(
            (covariates.expand(len(actions), -1, -1), standardised[:, None].expand(-1, len(rows), -1)), -1
        )
        mean = left_out(member, self.outcome_kind.faces, inputs, targets[rows], folds, altered_inputs).mT
        psi = mean + matches * (desired.unsqueeze(-1) - mean) / chances
        return torch.cat((psi, desired.unsqueeze(-1)), -1), keys.to(targets)

    def _fold_rows(self, table: Table) -> tuple[Tensor, Tensor, Tensor]:
        """Some rows, the numbers of their units, and their folds, 0 or 1."""
        stream = generator(1000 * self.seed + 97)
        rows = drawn(len(table), SCORED_ROWS, stream).to(table.values.device)
        keys = self._unit_numbers(table, rows)
        folds = (torch.randperm(int(keys.max()) + 1, generator=stream) % 2).to(keys.device)[keys]
        return rows, keys, folds

    def _unit_numbers(self, table: Table, rows: Tensor) -> Tensor:
        """The numbers of the units of rows, or of the rows themselves."""
        units = self._units(table)
        return units[0][rows].unique(return_inverse=True)[1] if units else torch.arange(len(rows))

    def _desired(self, table: Table, rows: Tensor) -> Tensor:
        return self.task.region.contains(table.columns(self.task.outcomes)[rows]).to(torch.float64)

    def _stages(self, which: int) -> list[tuple[str, ...]]:
        """The actions of a candidate set in temporal order: before v, and after."""
        names, first = self.task.candidates[which], self.adjustments[which].first
        if self.adjustments[which].front_door:
            return [names]
        later = tuple(name for name in names if name not in first)
        return [stage for stage in (first, later) if stage]

    def _predecessors(self, which: int, stage: Sequence[str]) -> tuple[str, ...]:
        """The predictors of the actions of a stage."""
        adjustment = self.adjustments[which]
        covariates = (*self.task.context, *adjustment.before)
        later = adjustment.first and not adjustment.front_door and tuple(stage) != adjustment.first
        return (*covariates, *adjustment.first, *adjustment.between) if later else covariates

    def _units(self, table: Table) -> tuple[Tensor, ...]:
        """The numbers of the rows' units, or empty."""
        if table.units is not None:
            return (table.units,)
        unit = self.task.unit
        return () if unit is None or unit not in table.names else (table.columns((unit,))[:, 0],)

    def _levels(self, names: Sequence[str]) -> list[int]:
        """Indices of the actions that have levels."""
        return [index for index, name in enumerate(names) if name in self.task.box.levels]

    def _covariate(self, index: int) -> ResponseRegression:
        return ResponseRegression(*COVARIATE, seed=1000 * self.seed + index)

    def _outcome(self, index: int, classified: bool = False) -> FeatureRegression:
        """A regression, or a classification, with its own seed."""
        model = FeatureClassifier if classified else ResponseRegression
        return model(*self._settings, seed=1000 * self.seed + index)

    def _set_model(self, classified: bool) -> None:
        """Replaces the outcome models by unfitted ones of the other kind, if need be."""
        if isinstance(self.fits[0][0], FeatureClassifier) != classified:
            self.fits = self._fits(classified)

    def _fits(self, classified: bool) -> Modules[Modules[FeatureRegression]]:
        return Modules(
            Modules(self._outcome(member, classified) for member in range(self.members))
            for _ in self.task.candidates
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        classified = state_dict.get(f"{prefix}outcome_kind.classified")
        self._set_model(classified is not None and bool(classified.any()))
        super()._load_from_state_dict(state_dict, prefix, *rest)
