"""Outcome regression: one posterior behind every number that is said of a table's decisions.

The probability of a desired outcome after an alteration is

    P(Y in S | x, a altered) = E_{u | x} E_{v | x, u, a_first} P(Y in S | x, u, v, a),

with the covariates u and v of the adjustment (`graphs.separation`). An estimator of the indicator of S has
one bit per row, and nothing to regress where success is rare: an undesired future is exactly that. Here the
slack of the region's faces is regressed (`outcome_draws`), which varies in every row, and so are u on x, v
on (x, u, a_first), and the actions on what precedes them; each regression has a scale that may depend on its
inputs, units, and a pool of residuals (`estimators.response_regression`). Functions are drawn once, at the
fit; `shared_draws` evaluates them for every action, for no action, and for every case.

Kernels of nearly equal evidence differ most at the edge of the observations, where decisions lie: the
outcomes have E fits with kernels of different rows, and as many draws of each.

The slack of a yes/no outcome holds no more than the indicator of the region, and its noise is not additive.
Success itself is then modelled, P(Y in S | h) = Phi(f(h)) (`estimators.feature_classifier`): with a latent
sum t = f(h) + e, e ~ N(0, 1), an outcome is desired where t >= 0. The region is judged as a whole, by the
outcome with the fewest values:

    binary     an outcome takes at most two values: success is modelled
    few        an outcome takes at most 50 values, on average at least five times each (counts, classes,
               marks): the slack and success are both fitted, and the smaller Brier score of two-fold held-out
               predictions decides, of at most 10,000 rows, drawn by the seed; with fewer than 30 desired
               rows (or undesired ones) the slack is kept, which every row shows
    many       the slack is regressed

Outcomes that are counted or rounded lie on a lattice, y_0 + k s: a face that bounds one of them by d bounds
what is modelled, which is continuous, half a step beyond the last value that is desired
(`FaceCoordinates.between`).

How well success is predicted at all is measured likewise, beside the share of desired rows (`OutcomeScore`).

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
from rehearsal_torch.surrogates.outcome.average_effects import (
    LEAST_CHANCE,
    AverageEffects,
    chosen_rows,
    row_means,
)
from rehearsal_torch.surrogates.outcome.average_effects import (
    NEAR_ROWS as COMPARED_ROWS,
)
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

# Rows that are compared with points, at most.
NEAR_ROWS = 1000
# 160 MB of draws of several candidate sets.
KEPT_CELLS = 20_000_000
# Frequencies, rows of the evidence and iterations of regressions of covariates and actions.
COVARIATE = (50, 150, 20)

Values = Literal["binary", "few", "many"]
BINARY, FEW, REPEATS = 2, 50, 5
# Rounding: by which part of a step values may miss a lattice, by which of their range equal ones differ.
ON_LATTICE, ROUNDING = 1e-6, 1e-9
FEWEST_ROWS, SCORED_ROWS = 30, 10_000
# Rows of an action of levels in each fold, and actions, that are averaged.
FEWEST_OF_LEVEL, MOST_ACTIONS = 5, 12
# Of a continuous action those at these quantiles of the rows are.
QUANTILES = (0.1, 0.5, 0.9)


def latent_face() -> FaceCoordinates:
    """The region {t : t >= 0} of one coordinate."""
    unit = torch.ones(1, 1, dtype=torch.float64)
    return FaceCoordinates(unit, -unit, torch.zeros(1, dtype=torch.float64))


def lattice_of(values: Tensor) -> Tensor:
    """The step and the origin of the lattice on which values (n,) lie; a step of 0 where they lie on none."""
    distinct = values.unique()
    steps = distinct.diff()
    # Values that differ by rounding alone are one.
    steps = steps[steps > ROUNDING * (distinct[-1] - distinct[0])]
    if len(steps) < 2:
        return values.new_zeros(2)
    step = steps.min()
    whole = bool((steps / step - (steps / step).round()).abs().max() < ON_LATTICE)
    return torch.stack((step, distinct[0])) if whole else values.new_zeros(2)


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
        # s and y_0 of each coordinate's lattice; s = 0 without one.
        self.register_fitted(classified=(1,), lattice=(slack.count, 2))

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
        return self.latent if self.of_success else self.slack.between(self.lattice)

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
        """Chooses from the inputs of the first candidate set (n, p), standardised, outcomes (n, |Y|), and the
        numbers of units (n,) if there are some, which are left out whole. ValueError if an outcome has two
        values only, and all rows are desired or none is.
        """
        inputs, outcomes = (example.detach().to(torch.float64) for example in examples[:2])
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
        self.lattice = torch.stack([lattice_of(each) for each in self.slack.of_outcomes(outcomes).mT])
        if values != "few" or rarer < FEWEST_ROWS:
            return
        scored = drawn(number, SCORED_ROWS, generator(self.seed + 2)).to(outcomes.device)
        inputs, outcomes = inputs[scored], outcomes[scored]
        desired = self._desired(outcomes)
        units = examples[2][scored] if len(examples) > 2 else torch.arange(len(desired))
        groups = units.unique(return_inverse=True)[1].to(desired.device)
        halves = torch.randperm(int(groups.max()) + 1, generator=generator(self.seed)) % 2
        folds = halves.to(desired.device)[groups]
        scores = []
        for classified in (0.0, 1.0):
            self.classified = desired.new_tensor([classified])
            part, targets = self.model(bool(classified)), self.targets(outcomes)
            part.solve(inputs, targets)
            predicted = left_out(part, self.faces, inputs, targets, folds)
            scores.append(float((predicted - desired).square().mean()))
        self.classified = desired.new_tensor([float(scores[1] < scores[0])])


class OutcomeScore(Solved):
    """The Brier score of two-fold held-out predictions of success, and that of the share of desired rows."""

    def __init__(self) -> None:
        super().__init__()
        self.register_fitted(brier=(2,))

    def solve(self, *examples: Tensor) -> None:
        """Fits to predictions and whether rows are desired, (n,) each."""
        predicted, desired = examples
        self.brier = torch.stack([(each - desired).square().mean() for each in (predicted, desired.mean())])

    @property
    def beats_constant(self) -> bool:
        """Whether the model predicts success better than its share; true if it is not known."""
        return not self.fitted or bool(self.brier[0] < self.brier[1])

    def doubt(self) -> list[Finding]:
        """That it does not, if so."""
        if self.beats_constant:
            return []
        own, constant = self.brier.tolist()
        said = " against ".join(apart(own, constant, 4))
        text = (
            f"the model predicts rows that were left out no better than a constant does (Brier score {said})"
        )
        why = "by it alone, no gain is told from zero"
        return [Finding("score", f"{text}: {why}", {"brier": own, "constant": constant})]


def left_out(
    model: FeatureRegression,
    faces: FaceCoordinates,
    inputs: Tensor,
    targets: Tensor,
    folds: Tensor,
    points: Tensor | None = None,
) -> Tensor:
    """P(Y in S | h) at rows (n, p), standardised, (n,), or at points (..., n, p) that go with them, (..., n):
    each fold (n,) is predicted from the others, with targets (n, q) and the kernels of all rows.
    """
    points = inputs if points is None else points
    probabilities = points.new_zeros(points.shape[:-1])
    for fold in folds.unique().tolist():
        held = folds == fold
        refitted = deepcopy(model)
        refitted.condition(inputs[~held], targets[~held])
        some = points[..., held, :]
        success = mean_success(refitted, faces, some.flatten(0, -2))
        probabilities[..., held] = success.reshape(some.shape[:-1])
    return probabilities


class OutcomeRegression(AdjustedSurrogate):
    """Regressions of outcomes, covariates and actions for each candidate set. ValueError if a number is out
    of range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        members: E, the number of fits of the outcomes, each with kernels fitted to other rows.
        blocks: N, the number of draws of covariates and usual actions, a multiple of E.
        functions: G, the number of functions of the outcomes in each of them.
        frequencies: Number of random frequencies of a regression of the outcomes.
        evidence_rows: Maximum number of rows on which a kernel is fitted.
        iterations: Maximum number of iterations of each evidence maximisation.
        sequential: Uses the sequential formula where a single adjustment set does not exist; otherwise the
            single adjustment, with a warning.
        seed: Seed of rows, frequencies and draws.

    Attributes:
        adjustments: The adjustment of each candidate set.
        outcome_kind: Whether the slack is modelled, or success itself; known once fitted.
        score: How well success is predicted where it was left out.
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
        used = {name for adjusted in self.adjustments for name in adjusted.before}
        self.before = tuple(name for name in self.task.graph.names if name in used)
        self.covariates = Modules[ResponseRegression]([self._covariate(500)] if self.before else [])
        self.outcome_kind = OutcomeKind(
            partial(self._outcome, 0), FaceCoordinates.of(self.task.region), 1000 * seed + 96
        )
        self.fits, self.score = self._fits(classified=False), OutcomeScore()
        self.between, self.usual = Modules[ResponseRegression](), Modules[Modules[UsualAction]]()
        self.habits, self.near = Modules[ResponseRegression](), Modules[NearRows]()
        self.habits_seen, self.near_seen = Modules[ResponseRegression](), Modules[NearRows]()
        self.averages = Modules[AverageEffects](AverageEffects(members) for _ in self.task.candidates)
        context = len(self.task.context)
        for which, adjusted in enumerate(self.adjustments):
            base = 600 + 20 * which
            if adjusted.between:
                self.between.append(self._covariate(base))
            stages = self._stages(which)
            self.usual.append(
                Modules(
                    UsualAction(
                        len(stage),
                        [place for place, name in enumerate(stage) if name in self.task.box.levels],
                        COVARIATE,
                        1000 * seed + base + 2 + 2 * order,
                    )
                    for order, stage in enumerate(stages)
                )
            )
            self.habits.append(self._covariate(base + 8))
            beside = len(adjusted.before) + (0 if adjusted.front_door else len(adjusted.between))
            names = self.task.candidates[which]
            levels = [place for place, name in enumerate(names) if name in self.task.box.levels]
            self.near.append(NearRows(range(context, context + beside), NEAR_ROWS, levels))
            if adjusted.front_door:
                every = range(context, context + beside + len(adjusted.between))
                self.near_seen.append(NearRows(every, NEAR_ROWS, levels))
                self.habits_seen.append(self._covariate(base + 9))

    def parts(self, table: Table) -> Fits:
        """The overlap, the scaler, what is modelled, the regressions of the covariates, and for each
        candidate set those between, of the outcomes, and of the actions; ValueError as of
        `OutcomeKind.solve`.
        """
        self.task.check(table)
        outcomes = table.columns(self.task.outcomes)
        units = self._units(table)
        yield self.overlap, self.overlap.examples(table)
        yield self.scaler, (table.columns(self.task.graph.names),)
        yield self.outcome_kind, (self.inputs(table, 0), outcomes, *units)
        self._model(self.outcome_kind.of_success)
        context, targets = self._shown(table, self.task.context), self.outcome_kind.targets(outcomes)
        for part in self.covariates:
            yield part, (context, self._shown(table, self.before), *units)
        between = iter(self.between)
        for which, adjusted in enumerate(self.adjustments):
            if adjusted.between:
                given = self._shown(table, (*self.task.context, *adjusted.before, *adjusted.first))
                yield next(between), (given, self._shown(table, adjusted.between), *units)
            for member in self.fits[which]:
                yield member, (self.inputs(table, which), targets, *units)
            for stage, names in zip(self.usual[which], self._stages(which), strict=True):
                given = self._shown(table, self._preceding(which, names))
                yield stage, (given, self._shown(table, names), *units)
            covariates, actions = self.beside(table, which), self.set_to(table, which)
            yield self.habits[which], (covariates, actions)
            yield self.near[which], (covariates, actions - self.habits[which](covariates), actions)
            if (seen := self._seen(which)) is not None:
                covariates = self.covariates_of(table, which)
                yield seen[1], (covariates, actions)
                yield seen[0], (covariates, actions - seen[1](covariates), actions)
        yield self.score, self._scored(table, targets)
        # Where some actions were set by decisions, rows are no sample of what is usual.
        for which in range(0 if bool(table.altered.any()) else len(self.averages)):
            if len(actions := self._averaged(table, which)):
                yield self.averages[which], self._means(table, which, actions, targets)

    def models(self, which: int) -> ResponseModels:
        """The regressions of a candidate set."""
        adjusted, names = self.adjustments[which], self.task.candidates[which]
        place = sum(bool(each.between) for each in self.adjustments[:which])
        return ResponseModels(
            self.outcome_kind.faces,
            self.outcome_kind.of_success,
            list(self.fits[which]),
            self.covariates[0] if adjusted.before else None,
            [self.before.index(name) for name in adjusted.before],
            self.between[place] if adjusted.between else None,
            [names.index(name) for name in adjusted.first],
            list(self.usual[which]),
            self.near[which],
            self.habits[which],
            adjusted.front_door,
            self._seen(which),
        )

    def _seen(self, which: int) -> tuple[NearRows, ResponseRegression] | None:
        """By the front door, what tells whether rows are near the usual actions beside (x, u, v)."""
        if not self.adjustments[which].front_door:
            return None
        place = sum(each.front_door for each in self.adjustments[:which])
        return self.near_seen[place], self.habits_seen[place]

    def draws(self, which: int, each: int, points: int, near: int, purpose: int) -> SharedDraws:
        """Draws for a candidate set by the first G functions of each block, at points of a purpose."""
        models = self.models(which)
        source = [buffer for part in self.children() for buffer in part.buffers()]
        cells = self.blocks * each * models.outcomes[0].coefficients.numel()

        def make() -> SharedDraws:
            stream = generator(1000 * self.seed + 100 + which)
            functions = Functions.drawn(models, self.blocks, self.functions, stream)
            own = generator(1000 * self.seed + 200 + purpose)
            return SharedDraws(models, functions, each, points, near, own)

        return self._kept.get((which, each, points, near, purpose), source, cells, make)

    def contradictions(self, which: int) -> list[Finding]:
        """Where the draws and their check lie apart, for each action of a candidate set against none."""
        findings = []
        for effect in self.averages[which].effects():
            if effect.against is None and effect.check is not None and effect.contradicted:
                values = self.averages[which].actions[effect.action].tolist()
                setting = self.task.worded(dict(zip(self.task.candidates[which], values, strict=True)))
                words = " and ".join(f"{name} at {value}" for name, value in setting.items())
                intervals = Intervals()
                model, check = (
                    intervals.difference(each.point, ends_of(each), each.level)
                    for each in (effect.draws.estimate(), effect.check)
                )
                text = (
                    f"on average over the rows, {words} changes the chance of a desired outcome by {model} "
                    f"according to the model, and by {check} by a doubly robust estimate: one of them errs"
                )
                findings.append(Finding("claim", text))
        return findings

    @torch.no_grad()
    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Those of all functions; None where success itself is modelled."""
        if self.outcome_kind.of_success:
            return None
        which = self.task.candidates.index(tuple(altered)) if altered else 0
        case = CaseDraws(self.draws(which, 4, 32, 1, 2), self.contexts(given.unsqueeze(0)))
        standardised = self.scaler.standardised(tuple(altered), action.unsqueeze(0)) if altered else None
        values = case.outcomes(standardised, generator(1000 * self.seed + 98))
        step, origin = self.outcome_kind.lattice.unbind(-1)
        near = origin + step * ((values - origin) / torch.where(step > 0, step, 1.0)).round()
        values = torch.where(step > 0, near, values)
        return OutcomeDraws(values.to(given.device), self.outcome_kind.faces.basis)

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

    def beside(self, table: Table, which: int) -> Tensor:
        """What rows are compared by beside their actions: z, or (x, u) by the front door, (n, p)."""
        adjusted = self.adjustments[which]
        between = () if adjusted.front_door else adjusted.between
        return self._shown(table, (*self.task.context, *adjusted.before, *between))

    def set_to(self, table: Table, which: int) -> Tensor:
        """The actions of rows for a candidate set, standardised, (n, k)."""
        return self._shown(table, self.task.candidates[which])

    def _averaged(self, table: Table, which: int) -> Tensor:
        """The actions of a candidate set whose means over rows are taken, (c, k), in units: what rows have of
        the levels; of a single other action, quantiles; none where the effect is not identified.
        """
        names, box = self.task.candidates[which], self.task.box
        values = table.columns(names)
        if self.adjustments[which].reasons:
            return values[:0]
        levels = {name: box.levels[name] for name in names if name in box.levels}
        if len(levels) == len(names):
            every = values.new_tensor(combinations(levels, self.task.codings))
            counts = (
                (values[:, None] == every).all(-1).sum(0) if len(every) <= MOST_ACTIONS else 0 * every[:, 0]
            )
            return every[counts >= 2 * FEWEST_OF_LEVEL]
        if len(names) > 1:
            return values[:0]
        return box.only(names).project(values.quantile(values.new_tensor(QUANTILES), dim=0)).unique(dim=0)

    @torch.no_grad()
    def _means(self, table: Table, which: int, actions: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """What `AverageEffects.solve` takes."""
        stream = generator(1000 * self.seed + 99)
        places = chosen_rows(len(table), stream).to(targets.device)
        rows = self._shown(table, (*self.task.context, *self.adjustments[which].before))[places]
        units = self._keys(table, places)
        draws = self.draws(which, self.functions, len(rows), COMPARED_ROWS, 3)
        standardised = self.scaler.standardised(self.task.candidates[which], actions)
        means = row_means(draws, rows, units, standardised, stream)
        return actions, *means, *self._robust(table, which, actions, targets)

    def _robust(self, table: Table, which: int, actions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """psi of some rows under each action and none, and their units; empty where there is no check."""
        names, adjusted = self.task.candidates[which], self.adjustments[which]
        empty = targets.new_empty(0), targets.new_empty(0)
        if adjusted.between or adjusted.front_door or not set(names) <= set(self.task.box.levels):
            return empty
        rows, keys, folds = self._folded(table)
        own, desired = table.columns(names)[rows], self._desired(table, rows)
        same = (own[:, None] == actions).all(-1)
        usual, standardised = self.usual[which][0], self.scaler.standardised(names, actions)
        if not usual.told_apart:
            return empty
        columns = (standardised[:, None] == usual.combinations).all(-1)
        counts = torch.stack([same[folds == fold].sum(0) for fold in (0, 1)])
        if bool((counts < FEWEST_OF_LEVEL).any()) or not bool(columns.any(-1).all()):
            return empty
        before = self.covariates_of(table, which)[rows]
        chances = usual.left_out(before, self.set_to(table, which)[rows], folds)
        chances = chances[:, columns.long().argmax(-1)].clamp_min(LEAST_CHANCE)
        inputs, member = self.inputs(table, which)[rows], self.fits[which][0]
        altered = torch.cat(
            (before.expand(len(actions), -1, -1), standardised[:, None].expand(-1, len(rows), -1)), -1
        )
        mean = left_out(member, self.outcome_kind.faces, inputs, targets[rows], folds, altered).mT
        psi = mean + same * (desired.unsqueeze(-1) - mean) / chances
        return torch.cat((psi, desired.unsqueeze(-1)), -1), keys.to(targets)

    def _folded(self, table: Table) -> tuple[Tensor, Tensor, Tensor]:
        """Some rows, with the numbers of their units, and their folds, 0 or 1."""
        stream = generator(1000 * self.seed + 97)
        rows = drawn(len(table), SCORED_ROWS, stream).to(table.values.device)
        keys = self._keys(table, rows)
        folds = (torch.randperm(int(keys.max()) + 1, generator=stream) % 2).to(keys.device)[keys]
        return rows, keys, folds

    def _keys(self, table: Table, rows: Tensor) -> Tensor:
        """The numbers of the units of rows, or of the rows themselves."""
        units = self._units(table)
        return units[0][rows].unique(return_inverse=True)[1] if units else torch.arange(len(rows))

    def _desired(self, table: Table, rows: Tensor) -> Tensor:
        return self.task.region.contains(table.columns(self.task.outcomes)[rows]).to(torch.float64)

    def _scored(self, table: Table, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Held-out predictions of success of some rows, and whether they are desired."""
        rows, _, folds = self._folded(table)
        faces, inputs = self.outcome_kind.faces, self.inputs(table, 0)[rows]
        predicted = left_out(self.fits[0][0], faces, inputs, targets[rows], folds)
        return predicted, self._desired(table, rows)

    def _stages(self, which: int) -> list[tuple[str, ...]]:
        """The actions of a candidate set in the order in which they happen: before v, and after."""
        names, first = self.task.candidates[which], self.adjustments[which].first
        if self.adjustments[which].front_door:
            return [names]
        later = tuple(name for name in names if name not in first)
        return [stage for stage in (first, later) if stage]

    def _preceding(self, which: int, stage: Sequence[str]) -> tuple[str, ...]:
        """What the actions of a stage are regressed on."""
        adjusted = self.adjustments[which]
        known = (*self.task.context, *adjusted.before)
        later = adjusted.first and not adjusted.front_door and tuple(stage) != adjusted.first
        return (*known, *adjusted.first, *adjusted.between) if later else known

    def _units(self, table: Table) -> tuple[Tensor, ...]:
        """The numbers of the rows' units, where rows belong together."""
        if table.units is not None:
            return (table.units,)
        unit = self.task.unit
        return () if unit is None or unit not in table.names else (table.columns((unit,))[:, 0],)

    def _covariate(self, index: int) -> ResponseRegression:
        return ResponseRegression(*COVARIATE, seed=1000 * self.seed + index)

    def _outcome(self, index: int, classified: bool = False) -> FeatureRegression:
        """A regression, or a classification, with a seed of its own."""
        kind = FeatureClassifier if classified else ResponseRegression
        return kind(*self._settings, seed=1000 * self.seed + index)

    def _model(self, classified: bool) -> None:
        """Takes unfitted models of the slack or of success, unless it has them."""
        if isinstance(self.fits[0][0], FeatureClassifier) != classified:
            self.fits = self._fits(classified)

    def _fits(self, classified: bool) -> Modules[Modules[FeatureRegression]]:
        return Modules(
            Modules(self._outcome(member, classified) for member in range(self.members))
            for _ in self.task.candidates
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        classified = state_dict.get(f"{prefix}outcome_kind.classified")
        self._model(classified is not None and bool(classified.any()))
        super()._load_from_state_dict(state_dict, prefix, *rest)
