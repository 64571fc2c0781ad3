"""One posterior behind every number that is said of a table's decisions.

The outcomes' slack (or success itself, `outcome_regression`) is regressed on (x, u, v, a), the covariates on
what precedes them, and the actions on what precedes them; each regression has a scale that may depend on its
inputs, units, and a pool of residuals. Functions are drawn once, at the fit; `shared_draws` evaluates them for
every action, for no action, and for every case.

Kernels of nearly equal evidence differ most at the edge of the observations, where decisions lie: the outcomes
have E fits with kernels of different rows, and as many draws of each.

How well the outcomes are predicted at all is measured on rows that are left out, by the Brier score of the
desired region beside that of the share of desired rows.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.part import Solved
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.estimators.response_regression import ResponseRegression
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.outcome.outcome_regression import NearRows, OutcomeKind
from rehearsal_torch.surrogates.outcome.shared_draws import Functions, ResponseModels, SharedDraws
from rehearsal_torch.surrogates.outcome.usual_action import UsualAction
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates, KeptDraws
from rehearsal_torch.surrogates.rehearsal_surrogate import AdjustedSurrogate
from rehearsal_torch.surrogates.surrogate import Fits, Modules

# Rows that are compared with points, at most.
NEAR_ROWS = 1000
# 160 MB of draws of several candidate sets.
KEPT_CELLS = 20_000_000
# Frequencies, rows of the evidence and iterations of regressions of covariates and actions.
COVARIATE = (50, 150, 20)


class OutcomePosterior(AdjustedSurrogate):
    """Regressions of outcomes, covariates and actions for each candidate set. ValueError if a number is out of
    range.

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
    """

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
        self.fits = self._fits(classified=False)
        self.between, self.usual = Modules[ResponseRegression](), Modules[Modules[UsualAction]]()
        self.habits, self.near = Modules[ResponseRegression](), Modules[NearRows]()
        context = len(self.task.context)
        for which, (names, adjusted) in enumerate(zip(self.task.candidates, self.adjustments, strict=True)):
            base = 600 + 20 * which
            if adjusted.between:
                self.between.append(self._covariate(base))
            stages = self._stages(which)
            self.usual.append(
                Modules(
                    UsualAction(
                        [place for place, name in enumerate(stage) if name in self.task.box.levels],
                        COVARIATE,
                        1000 * seed + base + 2 + 2 * order,
                    )
                    for order, stage in enumerate(stages)
                )
            )
            self.habits.append(self._covariate(base + 8))
            drawn = range(context, context + len(adjusted.before) + len(adjusted.between))
            self.near.append(NearRows(drawn, NEAR_ROWS))

    def parts(self, table: Table) -> Fits:
        """The overlap, the scaler, what is modelled, the regressions of the covariates, and for each candidate
        set those between, of the outcomes, and of the actions; ValueError as of `OutcomeKind.solve`.
        """
        self.task.check(table)
        outcomes = table.columns(self.task.outcomes)
        units = self._units(table)
        yield self.overlap, self.overlap.examples(table)
        yield self.scaler, (table.columns(self.task.graph.names),)
        yield self.outcome_kind, (self.inputs(table, 0), outcomes)
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
            covariates, actions = self.covariates_of(table, which), self.set_to(table, which)
            yield self.habits[which], (covariates, actions)
            yield self.near[which], (covariates, actions - self.habits[which](covariates))

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
        )

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

    def _stages(self, which: int) -> list[tuple[str, ...]]:
        """The actions of a candidate set in the order in which they happen: before v, and after."""
        names, first = self.task.candidates[which], self.adjustments[which].first
        later = tuple(name for name in names if name not in first)
        return [stage for stage in (first, later) if stage]

    def _preceding(self, which: int, stage: Sequence[str]) -> tuple[str, ...]:
        """What the actions of a stage are regressed on."""
        adjusted = self.adjustments[which]
        known = (*self.task.context, *adjusted.before)
        return known if not adjusted.first or stage == adjusted.first else (
            *known, *adjusted.first, *adjusted.between
        )

    def _units(self, table: Table) -> tuple[Tensor, ...]:
        """The numbers of the rows' units, where rows belong together."""
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
