"""The probability of success under a posterior of rehearsal models, and the information gained by acting.

An alteration z of one set of variables has two sides: the probability of success, E_{G, theta} P(Y in S | G,
theta, x, z), estimated by the share of desired scenarios, and the information about the model in the
resulting observation. Policies differ in how they use them: Qin et al. maximise the information where the
probability is at least tau; a policy that only aims at success now maximises the probability.

There are three samples, each with its own models and noise: one for the search, one that validates its
results, and one for the reported probability of success. A fourth, smaller one is for the information.

The information that a round provides is the mutual information between rehearsal model and new observation,

    I(G, Theta; V | D, x, z) = H(V | D, x, z) - H(V | G, Theta, D, x, z),
    V = (Z, Y) without the altered variables.

Given the model, V is normal with a covariance that depends on neither x nor z, so that the second entropy is
a constant of the set of altered variables, known in closed form. Only the first has to be estimated, from N
models (G_s, theta_s) with one row v_s(z) each:

    predictive   -(1/N) sum_s log sum_G p(G | D) p(v_s | G, D, x, z), the parameters of each graph integrated
                 out in closed form: unbiased, N log-densities for each graph;
    sampled      -(1/N) sum_s log (1/N) sum_j p(v_s | G_j, theta_j, x, z), a nested sample that includes the
                 model of v_s itself: biased downwards and never above log N, but needs no closed form;
    neighbours   the entropy of the N rows by nearest neighbours, as in the paper's Algorithm 4: converges
                 slowly in the dimension.

Rows of all z share models and noise (common random numbers), so that differences between alterations are not
due to chance.

Predictive density. Given a graph, the parameters of the equations are independent of each other a posteriori,
and each clique follows from its parents, so that

    log p(v | G, D, x, z)  =  sum over cliques  log p(v_c | v_pa(c), D),

each term in closed form (a multivariate t, or a normal distribution if the noise is taken as known): no
parameters are sampled. Among rows that differ only in the altered variables, only the cliques that the
alteration reaches have different densities.

Nearest-neighbour entropy. Of N draws in d dimensions, each in its own unit, with r_i the distance from draw i
to its k-th nearest neighbour,

    H = psi(N) - psi(k) + log V_d + (d / N) sum_i log r_i,       V_d = pi^(d/2) / Gamma(d/2 + 1).

Distances compare dimensions, so that draws are scaled to unit standard deviation first and the logarithms of
the scales added back. The estimate is consistent, but slow in d: its bias decreases like N^(-1/d).

Source: Qin et al. (2023), Eq. 5-6 and 9, Sec. 4.1 (the posterior factorises over cliques) to 4.3, App. C and
Alg. 4 (the nearest-neighbour estimate); the third sample is ours; Foster et al. (2020), Unified stochastic
gradient approach, Thm. 1 (the nested sample); Kozachenko and Leonenko (1987), and Singh et al. (2003) for k >
1; the closed forms are those of the regressions.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.estimators.bayesian_regression import BayesianRegression
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios, rowwise
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.structural.graph_posterior import GraphBelief, StructuralPosterior
from rehearsal_torch.surrogates.structural.linear_scm import Equation
from rehearsal_torch.surrogates.structural.model_samples import SampledModels, ScenarioModel


def nearest_neighbour_entropy(draws: Tensor, neighbours: int = 3) -> Tensor:
    """The k-nearest-neighbour estimate of the entropy of draws (..., N, d), in nats, (...), with 1 <= k < N
    (else a ValueError); minus infinity if a dimension does not vary.
    """
    count, width = draws.shape[-2:]
    if not 1 <= neighbours < count:
        raise ValueError(
            f"expected 1 <= neighbours < draws; got {neighbours} and {count}: increase the draws or decrease "
            "neighbours"
        )
    if not width:
        return draws.new_zeros(draws.shape[:-2])
    scale = draws.std(-2, keepdim=True)
    still = (scale == 0).any(-1).any(-1)
    scaled = draws / torch.where(scale > 0, scale, torch.ones_like(scale))
    distances = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist")
    # The nearest draw is the draw itself, at distance zero.
    reach = distances.kthvalue(neighbours + 1, dim=-1).values.clamp_min(1e-300)
    ball = width / 2 * math.log(math.pi) - math.lgamma(width / 2 + 1)
    ranks = torch.digamma(draws.new_tensor(float(count))) - torch.digamma(draws.new_tensor(float(neighbours)))
    found = ranks + ball + width * reach.log().mean(-1) + scale.clamp_min(1e-300).log().sum((-2, -1))
    return torch.where(still, -torch.inf, found)


class PredictiveDensity:
    """log p(v | G, D, x, z) of the variables that are neither context nor altered, for rows (..., d), all
    variables in the graph's order, that differ only in z.
    """

    def __init__(self, model: StructuralPosterior, altered: Sequence[str], rows: Tensor) -> None:
        unknown = [name for name in altered if name not in model.task.box.names]
        if unknown:
            raise ValueError(f"{unknown} may not be altered; actionable are {list(model.task.box.names)}")
        self.model, self.altered = model, tuple(altered)
        self._place = {name: index for index, name in enumerate(model.task.graph.names)}
        self._equations = [hypothesis.under(altered) for hypothesis in model.hypotheses]
        self._moving = {each for under in self._equations for each in _reached(under, altered)}
        self._still = {each: self._term(each, rows) for each in self._all() if each not in self._moving}

    def __call__(self, rows: Tensor) -> Tensor:
        """The log-density under each of H graphs, rows (*lead, ..., d) -> (*lead, ..., H), equal to those
        given at construction in all variables that the alteration does not reach.
        """
        terms = self._still | {each: self._term(each, rows) for each in self._all() if each in self._moving}
        found = [
            torch.stack([terms[each].expand(rows.shape[:-1]) for each in under]).sum(0)
            for under in self._equations
        ]
        return torch.stack(found, -1)

    def _all(self) -> list[Equation]:
        return list(dict.fromkeys(each for under in self._equations for each in under))

    def _term(self, equation: Equation, rows: Tensor) -> Tensor:
        regression = self.model.regressions[self.model.equations.index(equation)]
        if not isinstance(regression, BayesianRegression):
            raise TypeError(f"expected a BayesianRegression; got {type(regression).__name__}")
        above, own = ([self._place[name] for name in names] for names in (equation.parents, equation.members))
        return regression.log_predictive(rows[..., above], rows[..., own])


def _reached(equations: Sequence[Equation], altered: Sequence[str]) -> list[Equation]:
    """The equations that the altered variables reach, parents before children."""
    reached, found = set(altered), []
    for each in equations:
        if reached & set(each.parents):
            reached |= set(each.members)
            found.append(each)
    return found


Entropy = Literal["predictive", "sampled", "neighbours"]
ENTROPIES: tuple[Entropy, ...] = ("predictive", "sampled", "neighbours")


class Information:
    """I(G, Theta; V | D, x, z) for one set of altered variables in B cases, in nats, from N sampled models.

    Raises:
        ValueError: if the estimate of the entropy is unknown or the surrogate does not support it.
    """

    def __init__(
        self,
        surrogate: ScenarioModel,
        models: SampledModels,
        contexts: Tensor,
        names: Sequence[str],
        entropy: Entropy = "predictive",
    ) -> None:
        if entropy not in ENTROPIES:
            raise ValueError(f"expected one of {list(ENTROPIES)}; got {entropy!r}")
        self.models, self.names, self.entropy = models, tuple(names), entropy
        self.scenarios = models.scenarios(contexts, self.names).only(surrogate.task.graph.names)
        self.free = [
            place
            for place, name in enumerate(surrogate.task.graph.names)
            if name not in surrogate.task.context and name not in self.names
        ]
        self.known = models.entropy(self.names).mean()
        self.log_weights = surrogate.graph_weights().clamp_min(1e-300).log()
        self.densities: list[PredictiveDensity] = []
        if entropy == "predictive":
            if not isinstance(surrogate, StructuralPosterior):
                raise ValueError(
                    f"entropy=predictive needs a StructuralPosterior; got a {type(surrogate).__name__}: "
                    "choose entropy=sampled"
                )
            rows = self.scenarios.rows(contexts.new_zeros(len(contexts), len(self.names)))
            self.densities = [PredictiveDensity(surrogate, self.names, each) for each in rows]
            # A row's density under its own model depends only on its noise, not on x or z. Its mean replaces
            # the exact entropy as a control variate: its sampling error correlates with that of the other
            # term, so that the difference has a lower variance.
            self.known = -models.log_density(rows[0], self.names).diagonal(dim1=-2, dim2=-1).mean()

    def __call__(self, actions: Tensor) -> Tensor:
        """The information of actions, (..., B, k) -> (..., B)."""
        return torch.stack([self.at(index, actions[..., index, :]) for index in range(actions.shape[-2])], -1)

    @torch.no_grad()
    def at(self, index: int, actions: Tensor) -> Tensor:
        """The information of actions in one case, (..., k) -> (...)."""
        rows = self.scenarios.offset[index] + torch.einsum(
            "sdk,...k->...sd", self.scenarios.gain, actions.to(self.scenarios.gain)
        )
        if self.entropy == "neighbours":
            return nearest_neighbour_entropy(rows[..., self.free]) - self.known
        if self.entropy == "predictive":
            return -torch.logsumexp(self.densities[index](rows) + self.log_weights, -1).mean(-1) - self.known
        found = []
        # One action after the other: N x N densities each.
        for each in rows.reshape(-1, *rows.shape[-2:]):
            density = self.models.log_density(each, self.names)
            own = density.diagonal(dim1=-2, dim2=-1)
            found.append((own - torch.logsumexp(density, -1)).mean() + math.log(len(each)))
        return torch.stack(found).reshape(actions.shape[:-1])


# Stages of samples: those for the search and for its validation come first.
TEST, INFORMATION, STAGES = 2, 3, 8
# Stages of samples that are drawn for a certificate, after the decision.
MODELS, FRESH = STAGES - 2, STAGES - 1


class SuccessProbability(CountObjective):
    """The probability of success for one set of altered variables in B cases, from scenarios for the search,
    others that validate its results, and further ones for what is reported; `before` is that without an
    alteration, (B,), and `belief` the last by graph, where there are several.
    """

    takes = (ScenarioModel,)

    # A search may look for information among what is probable enough.
    enumerable = False

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        search_scenarios: Scenarios,
        validation_scenarios: Scenarios,
        test_scenarios: Scenarios,
        before: Tensor,
        information: Information,
        belief: GraphBelief | None = None,
    ) -> None:
        super().__init__(cases, names, search_scenarios, validation_scenarios)
        self.test_scenarios, self.before, self.information = self.counted(test_scenarios), before, information
        self.belief = belief

    @classmethod
    def for_sets(
        cls,
        surrogate: ScenarioModel,
        cases: Sequence[RehearsalCase],
        search_scenarios: int = 10000,
        validation_scenarios: int = 10000,
        test_scenarios: int = 1000,
        information_models: int = 300,
        entropy: Entropy = "predictive",
        seed: int = 0,
    ) -> list[Self]:
        """The probability of success for each candidate set of a task.

        Args:
            search_scenarios: Number of scenarios for the search.
            validation_scenarios: Number of other scenarios, which validate its results.
            test_scenarios: Number of further scenarios, for the reported probability.
            information_models: Number of models from which the information is estimated.
            entropy: The entropy estimate; see `Information`.
            seed: Seed of all of them.
        """
        counts = (search_scenarios, validation_scenarios, test_scenarios, information_models)
        wanted = "positive numbers of scenarios for search, validation and test, and of models"
        require(min(counts) > 0, wanted, numbers=counts)
        contexts = surrogate.task.given(cases)
        models = [surrogate.sampled(count, STAGES * seed + stage) for stage, count in enumerate(counts)]
        unaltered = scenarios_of(surrogate, models[TEST], contexts, ()).desired(
            contexts.new_empty(len(contexts), 0)
        )
        before, weights = unaltered.double().mean(0), surrogate.graph_weights()
        belief = GraphBelief(models[TEST].graphs, weights, unaltered) if len(weights) > 1 else None
        found = []
        for names in surrogate.task.candidates:
            search, other, test = (
                scenarios_of(surrogate, each, contexts, names) for each in models[:INFORMATION]
            )
            information = Information(surrogate, models[INFORMATION], contexts, names, entropy)
            found.append(cls(cases, names, mixed(search, seed), other, test, before, information, belief))
        return found

    def share_of(self, index: int, actions: Tensor, *, validating: bool = True) -> Tensor:
        """The share of desired scenarios in one case, (m, k) -> (m,), for validation or in the search."""
        part = (self.validation_scenarios if validating else self.search_scenarios).one(index)
        return part.share((actions - self.origin[index].to(actions)).unsqueeze(-2)).squeeze(-1)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability of success, and that without acting. Trace: ``graphs``, by which it is better."""
        desired = self.test_scenarios.desired(actions - self.origin.to(actions))
        by_graph: list[dict[str, Any]] = [{} for _ in self.cases]
        if self.belief is not None:
            by_graph = [{"graphs": each} for each in self.belief.judged(desired)]
        rows = zip(desired.double().mean(0).tolist(), self.before.tolist(), by_graph, strict=True)
        return [
            Appraisal(chance(estimated), chance(baseline), trace=trace, draws=len(self.test_scenarios.gains))
            for estimated, baseline, trace in rows
        ]


def scenarios_of(
    surrogate: ScenarioModel, models: SampledModels, contexts: Tensor, names: Sequence[str]
) -> Scenarios:
    """Scenarios of sampled models, for contexts (B, |X|)."""
    outcomes = models.scenarios(contexts, names).only(surrogate.task.outcomes)
    return rowwise(outcomes.offset.movedim(0, 1), outcomes.gain, surrogate.task.region)


def mixed(scenarios: Scenarios, seed: int) -> Scenarios:
    """The scenarios in random order: models come sorted by graph, and a program takes the first of them."""
    return scenarios.some(
        torch.randperm(len(scenarios.gains), generator=generator(seed)).to(scenarios.gains.device)
    )


def fresh(
    surrogate: ScenarioModel, cases: Sequence[RehearsalCase], names: Sequence[str], count: int, seed: int
) -> Scenarios:
    """Scenarios of an alteration, maybe of nothing, other than those of any `SuccessProbability`."""
    return scenarios_of(
        surrogate, surrogate.sampled(count, STAGES * seed + FRESH), surrogate.task.given(cases), names
    )
