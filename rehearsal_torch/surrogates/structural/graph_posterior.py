"""The posterior over rehearsal graphs and linear Gaussian equations, and models sampled from it.

Hypotheses G_1, ..., G_H with prior weights each factorise the distribution given the context over cliques;
every clique, and every altered part of one, has a Bayesian regression of its own. Given the rows so far,

    p(theta | G, D)  =  prod over cliques p(W, b, Sigma | rows in which exactly that part was altered),
    log p(G | D)     =  log p(G) + sum_t log p(z_t, y_t | x_t, xi_t, G, D_<t)  + constant,

the sum over rounds t of the log predictive density given the rows before t: a row is never evidence for a
model that has been fitted to it. The sums are of logarithms, so that a hypothesis of negligible weight can
recover.

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

A decision can be right on average over graphs and wrong under each that is true with a sizeable probability:
the probability of success, which is such an average, does not show it. With w_i the indicator of a desired
outcome of scenario i when a is set, v_i when nothing is altered, and G_i its graph, the gain under graph g is
the mean of w_i - v_i over the scenarios with G_i = g. `GraphBelief` records, as estimates from these
scenarios,

    stand   sum of p(g | D) over the graphs with gain_g > 0
    worst   the smallest gain_g, its graph (index among the hypotheses), and p(g | D)
    judged  sum of p(g | D) over the graphs with at least `LEAST` scenarios; only these are compared, since
            the standard error of a gain is up to 1 / sqrt(scenarios) = .22 there and more below

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
    """n samples of the parameters of an equation, v = b + W' pa + L eps with eps ~ N(0, I): W (n, p, c), b
    (n, c) and L (n, c, c), the Cholesky factor of the noise covariance.
    """

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
    """K models, sampled on first use, from H graphs with their equations and weights (H,): `draw` samples the
    parameters of an equation, the same at every call, and the generator, on the CPU, graphs and noise.
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
        positions = (
            torch.arange(count, dtype=torch.float64) + torch.rand(1, dtype=torch.float64, generator=stream)
        ) / count
        shares = weights.cpu().cumsum(0)
        chosen = torch.searchsorted(shares / shares[-1], positions).clamp_max(len(weights) - 1)
        self._graphs = chosen.to(weights.device)
        lengths = torch.bincount(chosen, minlength=len(weights)).tolist()
        ends = list(accumulate(lengths))
        # The graph of each block of models, which are sorted by graph.
        self.blocks = [
            (index, slice(end - length, end))
            for index, (end, length) in enumerate(zip(ends, lengths, strict=True))
            if length
        ]
        self._noise = torch.randn(len(task.graph.names), count, dtype=torch.float64, generator=stream).to(
            weights.device
        )
        self._place = {name: index for index, name in enumerate(task.graph.names)}
        # An equation is sampled once, for the models of all graphs that contain it, block after block.
        self._homes: dict[Equation, dict[int, tuple[int, int]]] = {}
        for index, span in self.blocks:
            for equation in self.hypotheses[index].equations:
                home = self._homes.setdefault(equation, {})
                begin = max((last for _, last in home.values()), default=0)
                home[index] = begin, begin + span.stop - span.start
        self._drawn: dict[Equation, EquationDraws] = {}

    @property
    def graphs(self) -> Tensor:
        """(K,), ascending."""
        return self._graphs

    def scenarios(self, contexts: Tensor, altered: Sequence[str]) -> AffineScenarios:
        """From parents to children, block by block."""
        names, seen = self.task.graph.names, contexts.to(self._noise)
        # Variables first: each variable's scenarios are contiguous.
        offset = self._noise.new_zeros(len(names), len(seen), self.count)
        gain = self._noise.new_zeros(len(names), len(altered), self.count)
        for column, name in enumerate(self.task.context):
            offset[self._place[name]] = seen[:, column, None]
        for column, name in enumerate(altered):
            gain[self._place[name], column] = 1.0
        # By block, since a variable that one graph moves may stand still in another.
        reached = {span.start: set(altered) for _, span in self.blocks}
        for span, equation, drawn, above, members in self._holding(altered):
            moved = reached[span.start]
            noise = self._noise[members, span]
            for row, variable in enumerate(members):
                value = offset[variable, :, span]
                value += drawn.intercept[:, row]
                for column, up in enumerate(above):
                    value.addcmul_(drawn.weights[:, column, row], offset[up, :, span])
                for column in range(row + 1):
                    value.addcmul_(drawn.root[:, row, column], noise[column])
                for column, up in enumerate(above):
                    if equation.parents[column] in moved:
                        gain[variable, :, span] += drawn.weights[:, column, row] * gain[up, :, span]
            if moved & set(equation.parents):
                moved |= set(equation.members)
        return AffineScenarios(names, tuple(altered), offset.permute(1, 2, 0), gain.permute(2, 0, 1))

    def responses(self, altered: Sequence[str]) -> AffineResponse:
        """The outcomes of each model as a function of context, altered variables and standard normal noise:
        the recursion of `scenarios`, with the coefficients of all of them instead of one sample of the noise.
        """
        index_of, seen, size = self._place, len(self.task.context), len(self.task.graph.names)
        free = seen + len(altered)
        # Columns: context, altered variables, noise of every variable, constant.
        whole = self._noise.new_zeros(size, free + size + 1, self.count)
        for column, name in enumerate((*self.task.context, *altered)):
            whole[index_of[name], column] = 1.0
        for span, _, drawn, above, members in self._holding(altered):
            known = whole[above, :, span]
            for row, to in enumerate(members):
                value = whole[to, :, span]
                value += torch.einsum("pcn,np->cn", known, drawn.weights[:, :, row])
                value[-1] += drawn.intercept[:, row]
                for column in range(row + 1):
                    value[free + members[column]] += drawn.root[:, row, column]
        outcomes = whole[[index_of[name] for name in self.task.outcomes]].permute(2, 0, 1)
        noise = outcomes[..., free:-1]
        return AffineResponse(
            outcomes[..., :seen], outcomes[..., seen:free], outcomes[..., -1], noise, noise @ noise.mT
        )

    def log_density(self, rows: Tensor, altered: Sequence[str]) -> Tensor:
        """By whitened residuals of every equation."""
        rows = rows.to(self._noise)
        density = rows.new_zeros(*rows.shape[:-1], self.count)
        for span, _, drawn, above, members in self._holding(altered):
            inverse = inverse_root(drawn.root)
            # Whitened residuals are L^-1 (v - b - W' pa): one product for all rows and models.
            constant_gain = inverse @ drawn.intercept.unsqueeze(-1)
            gains = torch.cat([inverse, -inverse @ drawn.weights.mT, -constant_gain], -1)
            columns = torch.cat([rows[..., members], rows[..., above], torch.ones_like(rows[..., :1])], -1)
            level = inverse.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            part = density[..., span]
            part += level - len(members) / 2 * math.log(2 * math.pi)
            for row in range(len(members)):
                part -= 0.5 * (columns @ gains[:, row].mT).square()
        return density

    def entropy(self, altered: Sequence[str]) -> Tensor:
        """The sum over equations."""
        entropy = self._noise.new_zeros(self.count)
        for span, _, drawn, _, members in self._holding(altered):
            level = drawn.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            entropy[span] += level + len(members) / 2 * math.log(2 * math.pi * math.e)
        return entropy

    def equation_draws(self, index: int, equation: Equation) -> EquationDraws:
        """The parameters of an equation in the models of the hypothesis with the given index."""
        home = self._homes[equation]
        if equation not in self._drawn:
            self._drawn[equation] = self._draw(equation, max(last for _, last in home.values()))
        return self._drawn[equation].part(*home[index])

    def _holding(
        self, altered: Sequence[str]
    ) -> Iterator[tuple[slice, Equation, EquationDraws, list[int], list[int]]]:
        """Block by block, and parents before children: the block's models, an equation that holds when
        variables are set, its draws, and the places of its parents and members.
        """
        for index, span in self.blocks:
            for equation in holding(self.hypotheses[index].equations, altered, self.task.box):
                above, members = (
                    [self._place[name] for name in names] for names in (equation.parents, equation.members)
                )
                yield span, equation, self.equation_draws(index, equation), above, members


DRAWN = 32  # Models whose claim without an action is compared with the rows.
REGRESSIONS = {"conjugate": ConjugateRegression, "ridge": EvidenceRidge}


class StructuralPosterior(ScenarioModel):
    """Bayesian regressions for the equations of every hypothesis. ValueError if the weights do not match the
    hypotheses, or a number or name is out of range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        hypotheses: The candidate graphs, over the task's variables: graphs, or {cliques, edges} each; empty
            or None for the task's own.
        weights: p(G) before the first round; None for equal weights.
        regression: "conjugate" (matrix-normal inverse-Wishart) or "ridge" (by evidence, as in the paper's
            experiments).
        forgetting: Factor by which a row's weight is multiplied per further row, in (0, 1]; 1 forgets
            nothing.
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
        known = RehearsalTask.of(task)
        graphs = tuple(hypothesis_of(graph, known) for graph in hypotheses or [known.graph])
        super().__init__(known, [each.graph for each in graphs])
        self.hypotheses = graphs
        prior = [1.0] * len(self.hypotheses) if weights is None else [float(each) for each in weights]
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
        self.lack_of_fit = LackOfFit(known, self.equations, self.overlap.graphs)
        self.regressions = Modules[BayesianRegression](
            REGRESSIONS[regression](len(each.parents), len(each.members), forgetting)
            for each in self.equations
        )
        self.register_buffer("prior", torch.tensor(prior, dtype=torch.float64) / sum(prior), persistent=False)
        self.prior: Tensor

    def parts(self, table: Table) -> Fits:
        """The overlap; every equation with all rows, and which it is fitted to; ValueError as of a fit."""
        self.task.check(table)
        column = {name: index for index, name in enumerate(table.names)}
        first = rows_before_alteration(table.altered, self.initial)
        yield self.overlap, self.overlap.examples(table)
        yield self.lack_of_fit, self.lack_of_fit.examples(table, first)
        early = torch.arange(len(table), device=table.values.device) < first
        for equation, regression in zip(self.equations, self.regressions, strict=True):
            of_clique = table.altered[:, [column[name] for name in equation.clique]]
            wanted = of_clique.new_tensor([name in equation.altered for name in equation.clique])
            exact = (of_clique == wanted).all(-1)
            share = (
                min(1.0, self.prior_weight * (len(equation.parents) + 2) / first) if equation.altered else 1.0
            )
            basis = early.to(torch.float64) * share
            # The first rows are unaltered, so that none of them belongs to an altered part.
            rows = table.columns(equation.parents), table.columns(equation.members)
            yield regression, (*rows, basis, exact & ~early)

    def misfit(self) -> Finding | None:
        """What the first rows refute of the equations."""
        return self.lack_of_fit.finding(self.task.region, lambda: self.responses((), DRAWN))

    def graph_log_weights(self) -> Tensor:
        """log p(G | D), (H,), normalised."""
        self.require_fitted()
        score = {
            equation: regression.score
            for equation, regression in zip(self.equations, self.regressions, strict=True)
        }
        scores = [[score[equation] for equation in hypothesis.equations] for hypothesis in self.hypotheses]
        evidence = torch.stack([torch.stack(of_hypothesis).sum() for of_hypothesis in scores])
        return torch.log_softmax(self.prior.log() + evidence, 0)

    def graph_weights(self) -> Tensor:
        """p(G | D), (H,)."""
        return self.graph_log_weights().exp()

    def sampled(self, count: int, seed: int = 0) -> PosteriorModels:
        """K models; see `ScenarioModel.sampled`."""
        index_of = {each: index for index, each in enumerate(self.equations)}

        def draw(equation: Equation, length: int) -> EquationDraws:
            # One generator per equation, so that samples do not depend on the order of queries.
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
        """What becomes of a decision under each graph, for B cases, given whether each scenario is desired
        after it, (K, B): for each ``stand``, ``worst``, ``worst_graph``, ``worst_weight``, ``judged`` and
        ``graphs``, the number of hypotheses; nothing but ``judged`` and ``graphs`` if no graph has enough
        scenarios.
        """
        weights = self.weights.to(torch.float64)
        member = torch.nn.functional.one_hot(self.graphs, len(weights)).to(torch.float64)
        counts = member.sum(0)
        difference = desired.to(torch.float64) - self.unaltered.to(torch.float64)
        gains = (member.mT @ difference) / counts.clamp_min(1.0).unsqueeze(-1)
        enough = counts >= LEAST
        judged = float(weights[enough].sum())
        known: dict[str, Any] = {"judged": round(judged, 6), "graphs": len(weights)}
        if not bool(enough.any()):
            return [dict(known) for _ in range(desired.shape[1])]
        stand = weights @ ((gains > 0) & enough.unsqueeze(-1)).to(torch.float64)
        worst, which = gains.masked_fill(~enough.unsqueeze(-1), torch.inf).min(0)
        rows = zip(stand.tolist(), worst.tolist(), which.tolist(), strict=True)
        return [
            {
                "stand": round(share, 6),
                "worst": round(gain, 6),
                "worst_graph": graph,
                "worst_weight": round(float(weights[graph]), 6),
                **known,
            }
            for share, gain, graph in rows
        ]
