"""Bayesian model averaging over rehearsal graphs: their posterior, with linear Gaussian equations.

Hypotheses G_1, ..., G_H with prior weights each factorise the distribution given the context over cliques;
every clique, and every altered part of one, has a Bayesian regression of its own. Given the rows so far,

    p(theta | G, D)  =  prod over cliques p(W, b, Sigma | rows in which exactly that part was altered),
    log p(G | D)     =  log p(G) + sum_t log p(z_t, y_t | x_t, xi_t, G, D_<t)  + constant,

the sum over rounds t of the log predictive density given the rows before t: a row is never evidence for a
model that was fitted to it, and a hypothesis of negligible weight can recover.

The *first* rows, before any alteration, inform the parameters and not the graphs: Markov equivalent graphs
cannot be distinguished by them, and weights learnt from them (Eq. 7) would count them twice. The equation of
an altered part of a clique has no such rows; the association in the first rows substitutes for a few
(`prior_weight`) rows of its own. With forgetting below 1, older rows are down-weighted, for parameters and
graphs alike: the rehearsal model may change with time.

K models are divided into blocks, one for each graph, in proportion to its weight (systematic sampling).
Within a block the equations' parameters are sampled for all its models in one batch, and a scenario is
propagated from parents to children,

    offset_v = b + W' offset_pa + eps,        gain_v = W' gain_pa,

where altered variables start with offset 0 and gain 1, and the context with its values and gain 0.

The probability of success is an average over graphs, and may hide that a decision is wrong under probable
ones. With w_i the indicator of a desired outcome of scenario i when a is set, v_i when nothing is altered,
and G_i its graph, the gain under graph g is the mean of w_i - v_i over the scenarios with G_i = g.
`GraphBelief` estimates from these scenarios

    stand   sum of p(g | D) over the graphs with gain_g > 0
    worst   the smallest gain_g, its graph (index among the hypotheses), and p(g | D)
    judged  sum of p(g | D) over the graphs with at least `LEAST` scenarios, for which the standard error of a
            gain is at most 1 / sqrt(scenarios) = .22; only these are compared

Source: Qin et al. (2023), Sec. 2 (time-dependent models, Fig. 2d), Sec. 4.1-4.2 (Eq. 4, 6 and 7, and the
incremental update), Prop. 5 (proof), App. C (Algorithm 4, lines 1-5).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.estimators.bayesian_regression import (
    BayesianRegression,
    ConjugateRegression,
    EvidenceRidge,
)
from rehearsal_torch.estimators.gp_kernel import inverse_root
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.seeding import paired_generator
from rehearsal_torch.surrogates.structural.lack_of_fit import LackOfFit
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.linear_scm import Equation, holding, rows_before_alteration
from rehearsal_torch.surrogates.structural.model_samples import (
    AffineScenarios,
    Hypothesis,
    SampledModels,
    ScenarioModel,
    hypothesis_of,
    shared,
)
from rehearsal_torch.surrogates.surrogate import Fits, Modules


@dataclass(frozen=True)
class EquationDraws:
    """n samples of v = b + W' pa + L eps, eps ~ N(0, I): W (n, p, c), b (n, c), L (n, c, c)."""

    weights: Tensor
    intercept: Tensor
    root: Tensor

    @classmethod
    def of(cls, weights: Tensor, intercept: Tensor, covariance: Tensor) -> "EquationDraws":
        """Samples with their noise covariances, (n, c, c)."""
        root = covariance.sqrt() if covariance.shape[-1] == 1 else torch.linalg.cholesky(covariance)
        return cls(weights, intercept, root)

    def part(self, begin: int, end: int) -> "EquationDraws":
        """The samples begin ... end - 1."""
        return EquationDraws(self.weights[begin:end], self.intercept[begin:end], self.root[begin:end])


Draw = Callable[[Equation, int], EquationDraws]


class PosteriorModels(SampledModels):
    """K models, sampled on first use, from H graphs with weights (H,): `draw` samples the parameters of an
    equation, the same at every call, and `stream`, on the CPU, graphs and noise.
    """

    def __init__(
        self,
        task: RehearsalTask,
        hypotheses: Sequence[Hypothesis],
        weights: Tensor,
        count: int,
        draw: Draw,
        stream: torch.Generator,
    ) -> None:
        if count < 1:
            raise ValueError(f"expected at least 1 model; got {count}")
        self.task, self.hypotheses, self.count, self._draw = task, tuple(hypotheses), count, draw
        shift = torch.rand(1, dtype=torch.float64, generator=stream)
        quantiles = (torch.arange(count, dtype=torch.float64) + shift) / count
        shares = weights.cpu().cumsum(0)
        graph_indices = torch.searchsorted(shares / shares[-1], quantiles).clamp_max(len(weights) - 1)
        self._graphs = graph_indices.to(weights.device)
        lengths = torch.bincount(graph_indices, minlength=len(weights)).tolist()
        ends = list(accumulate(lengths))
        # Models are sorted by graph: index and span of each graph's block.
        blocks = enumerate(zip(ends, lengths, strict=True))
        self.blocks = [(index, slice(end - length, end)) for index, (end, length) in blocks if length]
        noise = torch.randn(len(task.graph.names), count, dtype=torch.float64, generator=stream)
        self._noise = noise.to(weights.device)
        self._place = {name: index for index, name in enumerate(task.graph.names)}
        # An equation is sampled once for all graphs that contain it: its draws for each of their blocks.
        self._spans: dict[Equation, dict[int, tuple[int, int]]] = {}
        for index, span in self.blocks:
            for equation in self.hypotheses[index].equations:
                spans = self._spans.setdefault(equation, {})
                begin = max((end for _, end in spans.values()), default=0)
                spans[index] = begin, begin + span.stop - span.start
        self._drawn: dict[Equation, EquationDraws] = {}

    @property
    def graphs(self) -> Tensor:
        """(K,), ascending."""
        return self._graphs

    def scenarios(self, contexts: Tensor, altered: Sequence[str]) -> AffineScenarios:
        """Propagates from parents to children, block by block."""
        names, observed = self.task.graph.names, contexts.to(self._noise)
        # Variables first: each variable's scenarios are contiguous.
        offset = self._noise.new_zeros(len(names), len(observed), self.count)
        gain = self._noise.new_zeros(len(names), len(altered), self.count)
        for column, name in enumerate(self.task.context):
            offset[self._place[name]] = observed[:, column, None]
        for column, name in enumerate(altered):
            gain[self._place[name], column] = 1.0
        # By block: graphs differ in the variables that an alteration affects.
        affected_by_block = {span.start: set(altered) for _, span in self.blocks}
        for span, equation, draws, parents, members in self._equations_by_block(altered):
            affected = affected_by_block[span.start]
            noise = self._noise[members, span]
            for row, variable in enumerate(members):
                value = offset[variable, :, span]
                value += draws.intercept[:, row]
                for column, parent in enumerate(parents):
                    value.addcmul_(draws.weights[:, column, row], offset[parent, :, span])
                for column in range(row + 1):
                    value.addcmul_(draws.root[:, row, column], noise[column])
                for column, parent in enumerate(parents):
                    if equation.parents[column] in affected:
                        gain[variable, :, span] += draws.weights[:, column, row] * gain[parent, :, span]
            if affected & set(equation.parents):
                affected |= set(equation.members)
        return AffineScenarios(names, tuple(altered), offset.permute(1, 2, 0), gain.permute(2, 0, 1))

    def responses(self, altered: Sequence[str]) -> AffineResponse:
        """The outcomes of each model, affine in context, altered variables and standard normal noise."""
        index_of, n_context, n_variables = self._place, len(self.task.context), len(self.task.graph.names)
        n_inputs = n_context + len(altered)
        # Columns: context, altered variables, noise of every variable, constant.
        coefficients = self._noise.new_zeros(n_variables, n_inputs + n_variables + 1, self.count)
        for column, name in enumerate((*self.task.context, *altered)):
            coefficients[index_of[name], column] = 1.0
        for span, _, draws, parents, members in self._equations_by_block(altered):
            parent_rows = coefficients[parents, :, span]
            for row, member in enumerate(members):
                value = coefficients[member, :, span]
                value += torch.einsum("pcn,np->cn", parent_rows, draws.weights[:, :, row])
                value[-1] += draws.intercept[:, row]
                for column in range(row + 1):
                    value[n_inputs + members[column]] += draws.root[:, row, column]
        outcomes = coefficients[[index_of[name] for name in self.task.outcomes]].permute(2, 0, 1)
        context, action, noise, constant = outcomes.split([n_context, len(altered), n_variables, 1], -1)
        return AffineResponse(context, action, constant.squeeze(-1), noise, noise @ noise.mT)

    def log_density(self, rows: Tensor, altered: Sequence[str]) -> Tensor:
        """From the whitened residuals of every equation."""
        rows = rows.to(self._noise)
        density = rows.new_zeros(*rows.shape[:-1], self.count)
        for span, _, draws, parents, members in self._equations_by_block(altered):
            inverse = inverse_root(draws.root)
            # Whitened residuals are L^-1 (v - b - W' pa): one product for all rows and models.
            constant_gain = inverse @ draws.intercept.unsqueeze(-1)
            gains = torch.cat([inverse, -inverse @ draws.weights.mT, -constant_gain], -1)
            columns = torch.cat([rows[..., members], rows[..., parents], torch.ones_like(rows[..., :1])], -1)
            log_det = inverse.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            block_density = density[..., span]
            block_density += log_det - len(members) / 2 * math.log(2 * math.pi)
            for row in range(len(members)):
                block_density -= 0.5 * (columns @ gains[:, row].mT).square()
        return density

    def entropy(self, altered: Sequence[str]) -> Tensor:
        """The sum over equations."""
        entropy = self._noise.new_zeros(self.count)
        for span, _, draws, _, members in self._equations_by_block(altered):
            log_det = draws.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            entropy[span] += log_det + len(members) / 2 * math.log(2 * math.pi * math.e)
        return entropy

    def equation_draws(self, index: int, equation: Equation) -> EquationDraws:
        """The parameters of an equation in the models of the hypothesis with the given index."""
        spans = self._spans[equation]
        if equation not in self._drawn:
            self._drawn[equation] = self._draw(equation, max(end for _, end in spans.values()))
        return self._drawn[equation].part(*spans[index])

    def _equations_by_block(
        self, altered: Sequence[str]
    ) -> Iterator[tuple[slice, Equation, EquationDraws, list[int], list[int]]]:
        """For each block, parents first: models, equation, draws, and indices of parents and members."""
        for index, span in self.blocks:
            for equation in holding(self.hypotheses[index].equations, altered, self.task.box):
                parents, members = (
                    [self._place[name] for name in names] for names in (equation.parents, equation.members)
                )
                yield span, equation, self.equation_draws(index, equation), parents, members


DRAWN = 32  # models whose predictions without an action are compared with the rows
REGRESSIONS = {"conjugate": ConjugateRegression, "ridge": EvidenceRidge}


class StructuralPosterior(ScenarioModel):
    """Bayesian regressions for the equations of every hypothesis. ValueError for weights that do not match
    the hypotheses, and numbers or names out of range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        hypotheses: Candidate graphs of the task's variables, or {cliques, edges} each; empty for the task's.
        weights: p(G) before the first round; None for equal weights.
        regression: "conjugate" (matrix-normal inverse-Wishart) or "ridge" (by evidence, as in the paper).
        forgetting: Factor of a row's weight per further row, in (0, 1]; 1 forgets nothing.
        initial: Number of first rows; None for all before the first altered one.
        prior_weight: Upper bound on the total weight of the first rows in an equation of an altered part of a
            clique, in rows per parameter of a member (its p coefficients, intercept and noise).
    """

    has_responses = True

    def __init__(
        self,
        task: RehearsalTask,
        hypotheses: Sequence[RehearsalGraph | Mapping[str, Any]] | None = None,
        weights: Sequence[float] | None = None,
        regression: str = "conjugate",
        forgetting: float = 1.0,
        initial: int | None = None,
        prior_weight: float = 1.0,
    ) -> None:
        checked_task = RehearsalTask.of(task)
        candidates = tuple(hypothesis_of(graph, checked_task) for graph in hypotheses or [checked_task.graph])
        super().__init__(checked_task, [hypothesis.graph for hypothesis in candidates])
        self.hypotheses = candidates
        prior = [1.0] * len(self.hypotheses) if weights is None else [float(weight) for weight in weights]
        if len(prior) != len(self.hypotheses) or min(prior) < 0 or not 0 < sum(prior) < float("inf"):
            raise ValueError(f"expected {len(self.hypotheses)} weights >= 0, not all 0; got {prior}")
        if regression not in REGRESSIONS:
            raise ValueError(f"unknown regression {regression!r}: choose one of {', '.join(REGRESSIONS)}")
        if initial is not None and initial < 3:
            raise ValueError(f"expected at least 3 rows to begin with; got {initial}")
        if prior_weight <= 0:
            expected = f"expected prior_weight > 0; got {prior_weight}"
            raise ValueError(f"{expected}: an equation without any row cannot be estimated")
        self.initial, self.prior_weight = initial, prior_weight
        self.equations = shared(self.hypotheses)
        self.lack_of_fit = LackOfFit(checked_task, self.equations, self.overlap.graphs)
        self.regressions = Modules[BayesianRegression](
            REGRESSIONS[regression](*equation.widths, forgetting) for equation in self.equations
        )
        self.register_buffer("prior", torch.tensor(prior, dtype=torch.float64) / sum(prior), persistent=False)
        self.prior: Tensor

    def parts(self, table: Table) -> Fits:
        """The overlap, the lack of fit, and every equation with all rows, their weights and a mask."""
        self.task.check(table)
        column_of = {name: index for index, name in enumerate(table.names)}
        first = rows_before_alteration(table.altered, self.initial)
        yield self.overlap, self.overlap.examples(table)
        yield self.lack_of_fit, self.lack_of_fit.examples(table, first)
        is_first = torch.arange(len(table), device=table.values.device) < first
        for equation, regression in zip(self.equations, self.regressions, strict=True):
            altered = table.altered[:, [column_of[name] for name in equation.clique]]
            pattern = altered.new_tensor([name in equation.altered for name in equation.clique])
            exact = (altered == pattern).all(-1)
            most = self.prior_weight * (len(equation.parents) + 2) / first if equation.altered else 1.0
            first_weights = is_first.to(torch.float64) * min(1.0, most)
            # The first rows are unaltered, so that none of them belongs to an altered part.
            rows = table.columns(equation.parents), table.columns(equation.members)
            yield regression, (*rows, first_weights, exact & ~is_first)

    def misfit(self) -> Finding | None:
        """The lack of fit of the equations on the first rows."""
        return self.lack_of_fit.finding(self.task.region, lambda: self.responses((), DRAWN))

    def graph_log_weights(self) -> Tensor:
        """log p(G | D), (H,), normalised."""
        self.require_fitted()
        score = dict(zip(self.equations, (part.score for part in self.regressions), strict=True))
        scores = [[score[equation] for equation in hypothesis.equations] for hypothesis in self.hypotheses]
        evidence = torch.stack([torch.stack(terms).sum() for terms in scores])
        return torch.log_softmax(self.prior.log() + evidence, 0)

    def graph_weights(self) -> Tensor:
        """p(G | D), (H,)."""
        return self.graph_log_weights().exp()

    def sampled(self, count: int, seed: int = 0) -> PosteriorModels:
        """K models; see `ScenarioModel.sampled`."""
        index_of = {equation: index for index, equation in enumerate(self.equations)}

        def draw(equation: Equation, length: int) -> EquationDraws:
            # One generator per equation: samples do not depend on the order of queries.
            stream = paired_generator(seed, 1 + index_of[equation])
            return EquationDraws.of(*self.regressions[index_of[equation]].draw(length, stream))

        return PosteriorModels(
            self.task, self.hypotheses, self.graph_weights(), count, draw, paired_generator(seed, 0)
        )

    def responses(self, altered: Sequence[str], count: int, seed: int = 0) -> AffineResponse:
        """Those of sampled models."""
        return self.sampled(count, seed).responses(altered)


LEAST = 20


@dataclass(frozen=True)
class GraphBelief:
    """The graph of each scenario, (K,), weights p(G | D), (H,), and success without alteration, (K, B)."""

    graphs: Tensor
    weights: Tensor
    unaltered: Tensor

    def judged(self, desired: Tensor) -> list[dict[str, Any]]:
        """For B cases, given desired scenarios (K, B): ``stand``, ``worst``, ``worst_graph``,
        ``worst_weight``, ``judged`` and ``graphs``, the number of hypotheses; the last two alone if no graph
        has enough scenarios.
        """
        weights = self.weights.to(torch.float64)
        member = torch.nn.functional.one_hot(self.graphs, len(weights)).to(torch.float64)
        counts = member.sum(0)
        difference = desired.to(torch.float64) - self.unaltered.to(torch.float64)
        gains = (member.mT @ difference) / counts.clamp_min(1.0).unsqueeze(-1)
        sufficient = counts >= LEAST
        judged = float(weights[sufficient].sum())
        common: dict[str, Any] = {"judged": round(judged, 6), "graphs": len(weights)}
        if not bool(sufficient.any()):
            return [dict(common) for _ in range(desired.shape[1])]
        stand = weights @ ((gains > 0) & sufficient.unsqueeze(-1)).to(torch.float64)
        worst, graph = gains.masked_fill(~sufficient.unsqueeze(-1), torch.inf).min(0)
        rows = zip(stand.tolist(), worst.tolist(), graph.tolist(), strict=True)
        return [
            {
                "stand": round(probability, 6),
                "worst": round(gain, 6),
                "worst_graph": graph,
                "worst_weight": round(float(weights[graph]), 6),
                **common,
            }
            for probability, gain, graph in rows
        ]
