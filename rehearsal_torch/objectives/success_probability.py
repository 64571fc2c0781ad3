"""The probability of success under a posterior of rehearsal models, and the information gained by acting.

An alteration z of one set of variables has a probability of success, E_{G, theta} P(Y in S | G, theta, x, z),
estimated by the share of desired scenarios, and yields information about the model. Qin et al. maximise the
information where that probability is at least tau; a policy that only aims at success maximises it.

Three samples, each with its own models and noise, serve the search, its validation, and the reported
probability of success; a fourth, smaller one serves the information.

The information that a round provides is the mutual information between rehearsal model and new observation,

    I(G, Theta; V | D, x, z) = H(V | D, x, z) - H(V | G, Theta, D, x, z),
    V = (Z, Y) without the altered variables.

Given the model, V is normal with a covariance that depends on neither x nor z, so that the second entropy is
a constant of the set of altered variables, known in closed form. Only the first has to be estimated, from N
models (G_s, theta_s) with one row v_s(z) each:

    predictive   -(1/N) sum_s log sum_G p(G | D) p(v_s | G, D, x, z), the parameters of each graph integrated
                 out in closed form: unbiased, N log-densities for each graph;
    sampled      -(1/N) sum_s log (1/N) sum_j p(v_s | G_j, theta_j, x, z), a nested sample that includes the
                 model of v_s itself: biased downwards and never above log N, but needs no closed form.

The paper's Algorithm 4 estimates it by nearest neighbours, which converges slowly in the dimension.

Rows of all z share models and noise (common random numbers).

Predictive density. Given a graph, the parameters of the equations are independent of each other a posteriori,
and each clique follows from its parents, so that

    log p(v | G, D, x, z)  =  sum over cliques  log p(v_c | v_pa(c), D),

each term in closed form (a multivariate t, or a normal distribution if the noise is taken as known). Among
rows that differ only in the altered variables, only the cliques that the alteration reaches differ.

Source: Qin et al. (2023), Eq. 5-6 and 9, Sec. 4.1 (the posterior factorises over cliques) to 4.3 and App. C;
Foster et al. (2020), Unified stochastic gradient approach, Thm. 1 (the nested sample).
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


class PredictiveDensity:
    """log p(v | G, D, x, z) of rows (..., d), in the graph's order, that differ only in the altered z."""

    def __init__(self, model: StructuralPosterior, altered: Sequence[str], rows: Tensor) -> None:
        unknown = [name for name in altered if name not in model.task.box.names]
        if unknown:
            raise ValueError(f"{unknown} may not be altered; actionable are {list(model.task.box.names)}")
        self.model, self.altered = model, tuple(altered)
        self._place = {name: index for index, name in enumerate(model.task.graph.names)}
        self._equations = [hypothesis.under(altered) for hypothesis in model.hypotheses]
        self._moving = {clique for cliques in self._equations for clique in _reached(cliques, altered)}
        still = {clique for cliques in self._equations for clique in cliques} - self._moving
        self._still = {clique: self._log_term(clique, rows) for clique in still}

    def __call__(self, rows: Tensor) -> Tensor:
        """The log-density under H graphs, (*lead, ..., d) -> (*lead, ..., H), of rows that differ in z."""
        terms = self._still | {clique: self._log_term(clique, rows) for clique in self._moving}
        densities = [
            torch.stack([terms[clique].expand(rows.shape[:-1]) for clique in cliques]).sum(0)
            for cliques in self._equations
        ]
        return torch.stack(densities, -1)

    def _log_term(self, clique: Equation, rows: Tensor) -> Tensor:
        regression = self.model.regressions[self.model.equations.index(clique)]
        if not isinstance(regression, BayesianRegression):
            raise TypeError(f"expected a BayesianRegression; got {type(regression).__name__}")
        parents, own = ([self._place[name] for name in names] for names in (clique.parents, clique.members))
        return regression.log_predictive(rows[..., parents], rows[..., own])


def _reached(cliques: Sequence[Equation], altered: Sequence[str]) -> list[Equation]:
    """The cliques, as equations, that the altered variables reach, parents before children."""
    variables, reached_cliques = set(altered), []
    for clique in cliques:
        if variables & set(clique.parents):
            variables |= set(clique.members)
            reached_cliques.append(clique)
    return reached_cliques


Entropy = Literal["predictive", "sampled"]
ENTROPIES: tuple[Entropy, ...] = ("predictive", "sampled")


class Information:
    """I(G, Theta; V | D, x, z) for one set of altered variables in B cases, in nats, from N sampled models; a
    ValueError if the estimate of the entropy is unknown or the surrogate does not support it.
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
            self.densities = [PredictiveDensity(surrogate, self.names, case_rows) for case_rows in rows]
            # The mean density of rows under their own models, which depends on their noise alone, replaces
            # the exact entropy as a control variate: its error correlates with that of the other term.
            self.known = -models.log_density(rows[0], self.names).diagonal(dim1=-2, dim2=-1).mean()

    def __call__(self, actions: Tensor) -> Tensor:
        """The information of actions, (..., B, k) -> (..., B)."""
        return torch.stack([self.at(index, actions[..., index, :]) for index in range(actions.shape[-2])], -1)

    @torch.no_grad()
    def at(self, index: int, actions: Tensor) -> Tensor:
        """The information of actions in one case, (..., k) -> (...)."""
        gain = self.scenarios.gain
        rows = self.scenarios.offset[index] + torch.einsum("sdk,...k->...sd", gain, actions.to(gain))
        if self.entropy == "predictive":
            return -torch.logsumexp(self.densities[index](rows) + self.log_weights, -1).mean(-1) - self.known
        entropies = []
        # In turn, since each action has N x N densities.
        for draws in rows.reshape(-1, *rows.shape[-2:]):
            density = self.models.log_density(draws, self.names)
            log_own = density.diagonal(dim1=-2, dim2=-1)
            entropies.append((log_own - torch.logsumexp(density, -1)).mean() + math.log(len(draws)))
        return torch.stack(entropies).reshape(actions.shape[:-1])


# Stages of samples: those for the search and for its validation come first.
TEST, INFORMATION, STAGES = 2, 3, 8
# Stages of samples that are drawn for a certificate, after the decision.
MODELS, FRESH = STAGES - 2, STAGES - 1


class SuccessProbability(CountObjective):
    """The probability of success for one set of altered variables in B cases, from scenarios for the search,
    its validation and the report; `before` is that without an alteration, (B,), and `belief` the same by
    graph, where there are several.
    """

    takes = (ScenarioModel,)

    enumerable = False  # A search may look for information among actions that are probable enough

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
        expected = "positive numbers of scenarios for search, validation and test, and of models"
        require(min(counts) > 0, expected, numbers=counts)
        contexts = surrogate.task.given(cases)
        models = [surrogate.sampled(count, STAGES * seed + stage) for stage, count in enumerate(counts)]
        nothing = contexts.new_empty(len(contexts), 0)
        unaltered = scenarios_of(surrogate, models[TEST], contexts, ()).desired(nothing)
        before, weights = unaltered.double().mean(0), surrogate.graph_weights()
        belief = GraphBelief(models[TEST].graphs, weights, unaltered) if len(weights) > 1 else None
        by_set = []
        for names in surrogate.task.candidates:
            search, check, test = (
                scenarios_of(surrogate, sample, contexts, names) for sample in models[:INFORMATION]
            )
            information = Information(surrogate, models[INFORMATION], contexts, names, entropy)
            by_set.append(cls(cases, names, mixed(search, seed), check, test, before, information, belief))
        return by_set

    def share_of(self, index: int, actions: Tensor, *, validating: bool = True) -> Tensor:
        """The share of desired scenarios in one case, (m, k) -> (m,), for validation or in the search."""
        scenarios = (self.validation_scenarios if validating else self.search_scenarios).one(index)
        return scenarios.share((actions - self.origin[index].to(actions)).unsqueeze(-2)).squeeze(-1)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability of success, and that without acting. Trace: ``graphs``, by which it is better."""
        desired = self.test_scenarios.desired(actions - self.origin.to(actions))
        by_graph: list[dict[str, Any]] = [{} for _ in self.cases]
        if self.belief is not None:
            by_graph = [{"graphs": judgement} for judgement in self.belief.judged(desired)]
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
    order = torch.randperm(len(scenarios.gains), generator=generator(seed))
    return scenarios.some(order.to(scenarios.gains.device))


def fresh(
    surrogate: ScenarioModel, cases: Sequence[RehearsalCase], names: Sequence[str], count: int, seed: int
) -> Scenarios:
    """Scenarios of an alteration, maybe of nothing, other than those of any `SuccessProbability`."""
    models = surrogate.sampled(count, STAGES * seed + FRESH)
    return scenarios_of(surrogate, models, surrogate.task.given(cases), names)
