"""What a round would teach: the mutual information between the rehearsal model and what is seen after the alteration.

    I(G, Theta; V | D, x, z) = H(V | D, x, z) - H(V | G, Theta, D, x, z),        V = (Z, Y) without what is altered.

Given the model, V is normal with a covariance that depends on neither x nor z, so that the second entropy is a constant of the set of
altered variables, known in closed form. Only the first needs an estimate, from N models (G_s, theta_s) with a row v_s(z) each:

    predictive   -(1/N) sum_s log sum_G p(G | D) p(v_s | G, D, x, z), the parameters of each graph integrated out in closed form:
                 unbiased, N log-densities for each graph;
    sampled      -(1/N) sum_s log (1/N) sum_j p(v_s | G_j, theta_j, x, z), a nested sample that holds v_s's own model: biased downwards and
                 never above log N, but asks for no closed form;
    neighbours   the entropy of the N rows by their nearest neighbours, as in the paper's Algorithm 4: slow in the dimension.

Rows of all z share the models and their noise: differences between alterations are not chance.

Source: Qin et al. (2023), Eq. 9, App. C and Alg. 4; for the nested sample Foster et al. (2020), Unified stochastic gradient approach, Thm. 1.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from rehearsal_torch.objectives.nearest_neighbour_entropy import nearest_neighbour_entropy
from rehearsal_torch.surrogates.predictive_density import PredictiveDensity
from rehearsal_torch.surrogates.scenario_model import SampledModels, ScenarioModel
from rehearsal_torch.surrogates.structural_posterior import StructuralPosterior

Entropy = Literal["predictive", "sampled", "neighbours"]
ENTROPIES: tuple[Entropy, ...] = ("predictive", "sampled", "neighbours")


class Information(nn.Module):
    """I(G, Theta; V | D, x, z) for one set of altered variables in B situations, in nats.

    Args:
        surrogate: A fitted posterior.
        models: N models sampled from it.
        contexts: (B, |X|).
        names: The k altered variables.
        entropy: How H(V | D, x, z) is estimated.

    Raises:
        ValueError: if there is no such estimate, or the surrogate does not offer it.
    """

    def __init__(self, surrogate: ScenarioModel, models: SampledModels, contexts: Tensor, names: Sequence[str], entropy: Entropy = "predictive") -> None:
        super().__init__()
        if entropy not in ENTROPIES:
            raise ValueError(f"expected one of {list(ENTROPIES)}; got {entropy!r}")
        self.models, self.names, self.entropy = models, tuple(names), entropy
        self.scenarios = models.scenarios(contexts, self.names).only(surrogate.task.graph.names)
        self.free = [place for place, name in enumerate(surrogate.task.graph.names) if name not in surrogate.task.context and name not in self.names]
        self.known = models.entropy(self.names).mean()
        self.log_weights = surrogate.graph_weights().clamp_min(1e-300).log()
        self.densities: list[PredictiveDensity] = []
        if entropy == "predictive":
            if not isinstance(surrogate, StructuralPosterior):
                raise ValueError(f"entropy=predictive needs a StructuralPosterior; got a {type(surrogate).__name__}: choose entropy=sampled")
            rows = self.scenarios.rows(contexts.new_zeros(len(contexts), len(self.names)))
            self.densities = [PredictiveDensity(surrogate, self.names, each) for each in rows]
            # A row's density under its own model depends on its noise alone, not on x or z. Its mean stands in for the entropy: it strays with the
            # rows as the other term does, so that their difference strays less.
            self.known = -models.log_density(rows[0], self.names).diagonal(dim1=-2, dim2=-1).mean()

    def forward(self, actions: Tensor) -> Tensor:
        """(..., B, k) -> (..., B)."""
        return torch.stack([self.at(index, actions[..., index, :]) for index in range(actions.shape[-2])], -1)

    @torch.no_grad()
    def at(self, index: int, actions: Tensor) -> Tensor:
        """In one of the situations, (..., k) -> (...)."""
        rows = self.scenarios.offset[index] + torch.einsum("sdk,...k->...sd", self.scenarios.slope, actions.to(self.scenarios.slope))
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
