"""The posterior over rehearsal graphs and their parameters.

Hypotheses G_1, ..., G_H with prior weights each factorise what follows a context over cliques; every clique, and every
altered part of one, has a Bayesian regression of its own. Given the rows seen so far,

    p(theta | G, D)  =  prod over cliques p(W, b, Sigma | rows in which just that part was altered),
    log p(G | D)     =  log p(G) + sum_t log p(z_t, y_t | x_t, xi_t, G, D_<t)  + constant,

the sum over rounds t of what the rows before t foresaw: a row never speaks for a model that has learnt from it. Sums are of
logarithms, so that a hypothesis that has all but vanished may come back.

The *first* rows, before anything was altered, teach parameters and say nothing of the graphs: graphs that data alone cannot
tell apart agree on them, and weights that were learnt from them (Eq. 7) would count them twice. An equation of an altered
part of a clique sees no such rows; the association in the first rows stands in for a few (`borrowed`) rows of its own.

With forgetting below 1, older rows count less, for parameters and graphs alike: the rehearsal model may change with time.

Source: Qin et al. (2023), Sec. 4.1 (Eq. 4 and 7, and the incremental update), Sec. 2 (time-dependent models, Fig. 2d).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rehearsal_torch.data.fitted import Solved, Trained
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.rehearsal import RehearsalGraph
from rehearsal_torch.mechanisms.bayesian_regression import BayesianRegression
from rehearsal_torch.mechanisms.conjugate_regression import ConjugateRegression
from rehearsal_torch.mechanisms.evidence_ridge import EvidenceRidge
from rehearsal_torch.surrogates.hypotheses import hypotheses_of, shared
from rehearsal_torch.surrogates.linear_surrogate import Equation
from rehearsal_torch.surrogates.posterior_models import Parameters, PosteriorModels
from rehearsal_torch.surrogates.scenario_model import ScenarioModel

REGRESSIONS = {"conjugate": ConjugateRegression, "ridge": EvidenceRidge}


class StructuralPosterior(ScenarioModel):
    """Bayesian regressions for the equations of every hypothesis.

    Args:
        task: Who plays which part; plain data or a RehearsalTask.
        hypotheses: The graphs that may be true, over the task's variables: graphs, or {cliques, edges} each; empty or None for the task's own.
        weights: p(G) before the first round; None for equal ones.
        regression: "conjugate" (matrix-normal inverse-Wishart) or "ridge" (by evidence, as in the paper's experiments).
        forgetting: What a row counts for after one further row, in (0, 1]; 1 forgets nothing.
        initial: How many rows are the first ones; None for all before the first altered one.
        borrowed: For how many rows of its own the first rows stand in an equation of an altered part of a clique, together at most, in rows for
            each parameter of a member (its p slopes, intercept and noise).

    Raises:
        ValueError: if the weights do not go with the hypotheses, or a number or name is out of its range.
    """

    def __init__(
        self,
        task: RehearsalTask,
        hypotheses: Sequence[RehearsalGraph | Mapping[str, Any]] | None = None,
        weights: Sequence[float] | None = None,
        regression: str = "conjugate",
        forgetting: float = 1.0,
        initial: int | None = None,
        borrowed: float = 1.0,
    ) -> None:
        known = RehearsalTask.of(task)
        found = hypotheses_of(hypotheses, known)
        super().__init__(known, [each.graph for each in found])
        self.hypotheses = found
        prior = [1.0] * len(self.hypotheses) if weights is None else [float(each) for each in weights]
        if len(prior) != len(self.hypotheses) or min(prior) < 0 or not 0 < sum(prior) < float("inf"):
            raise ValueError(f"expected {len(self.hypotheses)} weights >= 0, not all 0; got {prior}")
        if regression not in REGRESSIONS:
            raise ValueError(f"unknown regression {regression!r}: choose one of {', '.join(REGRESSIONS)}")
        if initial is not None and initial < 3:
            raise ValueError(f"expected at least 3 rows to begin with; got {initial}")
        if borrowed <= 0:
            raise ValueError(f"expected borrowed > 0; got {borrowed}: an equation without any row has no law")
        self.initial, self.borrowed = initial, borrowed
        self.equations = shared(self.hypotheses)
        self.regressions = nn.ModuleList(REGRESSIONS[regression](len(each.parents), len(each.members), forgetting) for each in self.equations)
        self.register_buffer("prior", torch.tensor(prior, dtype=torch.float64) / sum(prior), persistent=False)
        self.prior: Tensor

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """Where the rows lie; every equation with all rows, and which of them it learns from.

        Raises:
            ValueError: if nothing can be learnt from the table, or it does not begin with rows in which nothing was altered.
        """
        self.task.check(table)
        place = {name: index for index, name in enumerate(table.names)}
        changed = table.altered.any(-1).nonzero()
        first = int(changed[0]) if len(changed) else len(table)
        first = first if self.initial is None else min(self.initial, first)
        if first < 3:
            raise ValueError(f"expected at least 3 rows before the first altered one; got {first}: begin with observations")
        yield self.overlap, self.overlap.examples(table)
        early = torch.arange(len(table), device=table.values.device) < first
        for equation, regression in zip(self.equations, self.regressions, strict=True):
            of_clique = table.altered[:, [place[name] for name in equation.clique]]
            wanted = of_clique.new_tensor([name in equation.altered for name in equation.clique])
            own = (of_clique == wanted).all(-1)
            lent = min(1.0, self.borrowed * (len(equation.parents) + 2) / first) if equation.altered else 1.0
            basis = early.to(torch.float64) * lent
            # Nothing was altered in the first rows, so that none of them is an altered clique's own.
            yield self._typed(regression), (table.columns(equation.parents), table.columns(equation.members), basis, own & ~early)

    def graph_log_weights(self) -> Tensor:
        """log p(G | D), (H,), normalised."""
        self.require_fitted()
        score = {each: regression.score for each, regression in zip(self.equations, map(self._typed, self.regressions), strict=True)}
        gained = torch.stack([torch.stack([score[each] for each in hypothesis.equations]).sum() for hypothesis in self.hypotheses])
        return torch.log_softmax(self.prior.log() + gained, 0)

    def graph_weights(self) -> Tensor:
        """p(G | D), (H,)."""
        return self.graph_log_weights().exp()

    def sampled(self, count: int, seed: int = 0) -> PosteriorModels:
        """K models; see `ScenarioModel.sampled`."""
        place = {each: index for index, each in enumerate(self.equations)}

        def draw(equation: Equation, length: int) -> Parameters:
            # A stream for each, so that it does not matter which alteration is asked about first.
            return self._typed(self.regressions[place[equation]]).draw(length, _stream(seed, 1 + place[equation]))

        return PosteriorModels(self.task, self.hypotheses, self.graph_weights(), count, draw, _stream(seed, 0))

    def _typed(self, regression: nn.Module) -> BayesianRegression:
        if not isinstance(regression, BayesianRegression):
            raise TypeError(f"expected a BayesianRegression; got {type(regression).__name__}")
        return regression


def _stream(seed: int, place: int) -> torch.Generator:
    return torch.Generator().manual_seed(int(np.random.SeedSequence((seed, place)).generate_state(1, np.uint64)[0] >> 1))
