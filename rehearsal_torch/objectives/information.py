"""The information that a round provides: the mutual information between rehearsal model and new observation.

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

Source: Qin et al. (2023), Eq. 9, Sec. 4.1 (the posterior factorises over cliques), App. C and Alg. 4 (the
nearest-neighbour estimate); Foster et al. (2020), Unified stochastic gradient approach, Thm. 1 (the nested
sample); Kozachenko and Leonenko (1987), and Singh et al. (2003) for k > 1; the closed forms are those of the
regressions.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.estimators.bayesian_regression import BayesianRegression
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.surrogates.structural.linear_scm import Equation
from rehearsal_torch.surrogates.structural.sampled_models import SampledModels, ScenarioModel


def nearest_neighbour_entropy(draws: Tensor, neighbours: int = 3) -> Tensor:
    """The k-nearest-neighbour estimate of the entropy of draws (..., N, d), in nats, (...); minus infinity if
    a dimension does not vary.

    Raises:
        ValueError: if there are not more draws than neighbours, or k < 1.
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
    """log p(v | G, D, x, z) of the variables that are neither context nor altered, for rows that differ only
    in z.

    Args:
        rows: (..., d), all variables in the order of the task's graph, for some z.

    Raises:
        ValueError: if a variable may not be altered.
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
        """The log-density under each of H graphs, rows (*lead, ..., d) -> (*lead, ..., H); the rows must
        equal those given at construction in all variables that the alteration does not reach.
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
    """I(G, Theta; V | D, x, z) for one set of altered variables in B cases, in nats.

    Args:
        models: N models sampled from it.
        contexts: (B, |X|).
        names: The k altered variables.
        entropy: The estimate of H(V | D, x, z).

    Raises:
        ValueError: if the estimate is unknown or the surrogate does not support it.
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
