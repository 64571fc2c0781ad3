"""Search for the best action under the best plausible network, with perturbations as neural networks.

Actions (through a sigmoid, in unit coordinates) and perturbations' weights jointly maximise

    1/S sum_s r(x(a, u_s; eta)),

in R restarts as one tensor, by Adam on fixed draws; after a part of the steps only the best restarts go on.
Some restarts begin at the visited actions with the largest posterior mean and at its maximiser. Actions with
levels stay at those of their restart; after screening, the best restarts are also tried at other levels.

The perturbation of a node with p inputs is a small network with 4 p hidden units,

    eta_i(w) = 2 sigmoid(v' relu(W w + c) + d + b) - 1,

with a leading restart axis on every weight. The offset b is initialised with sigmoid(b) uniform, so that the
perturbations begin anywhere between pessimism and optimism.

Source: Sussex et al. (2023), Alg. 1 and App. B.2; the width, the activation and the initialisation of the
offset follow their released code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from rehearsal_torch.data.non_finite import best_of_all, ranked
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.objectives.upper_bounds import Optimism
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.trials.acquisition import Proposal, TrialSearch, recommend
from rehearsal_torch.seeding import round_seed, stream
from rehearsal_torch.spaces.candidate_region import CandidateRegion, MixedRegion

HIDDEN = 4
MARGIN = 1e-3
MOST_LEVELS = 20  # of an action, beyond which only adjacent ones are tried


class PerturbedNetworks(nn.Module):
    """Perturbations eta_i of some nodes, index to p, the number of inputs, for R restarts."""

    def __init__(self, inputs: dict[int, int], restarts: int, draws: torch.Generator) -> None:
        super().__init__()
        self.places = {node: index for index, node in enumerate(inputs)}
        self.weights = nn.ParameterList()
        for width in inputs.values():
            hidden, unit = HIDDEN * width, torch.rand(restarts, dtype=torch.float64, generator=draws)
            first_layer = ((restarts, hidden, width), width), ((restarts, hidden), width)
            second_layer = ((restarts, hidden), hidden), ((restarts,), hidden)
            weights = [_uniform(shape, inputs, draws) for shape, inputs in (*first_layer, *second_layer)]
            offset = (MARGIN + (1 - 2 * MARGIN) * unit).logit()
            self.weights.extend(nn.Parameter(weight) for weight in (*weights, offset))

    def perturbation(self, place: int, scaled: Tensor) -> Tensor:
        """The perturbation eta of a node in [-1, 1], (R, S, p) -> (R, S)."""
        start = 5 * self.places[place]
        inner, threshold, outer, shift, offset = (self.weights[start + index] for index in range(5))
        hidden = torch.relu(torch.einsum("rsp,rhp->rsh", scaled, inner) + threshold.unsqueeze(-2))
        logit = torch.einsum("rsh,rh->rs", hidden, outer) + (shift + offset).unsqueeze(-1)
        return 2 * torch.sigmoid(logit) - 1

    @torch.no_grad()
    def only(self, chosen: Tensor) -> None:
        """Keeps the given restarts, in the given order."""
        for index, weight in enumerate(self.weights):
            self.weights[index] = nn.Parameter(weight[chosen].clone())


def _uniform(shape: Sequence[int], width: int, draws: torch.Generator) -> Tensor:
    """Uniform in +-1/sqrt(width), the usual initialisation of a linear layer."""
    size = max(width, 1) ** -0.5
    return size * (2 * torch.rand(*shape, dtype=torch.float64, generator=draws) - 1)


CHUNK = 32_768  # Maximum number of restarts times draws that are evaluated in one tensor
EDGE = 1e-4
INSET = 1e-3  # Minimum distance of random starts from the boundary of the unit box


@final
@dataclass(eq=False)
class OptimisticNetworks(TrialSearch):
    """Joint ascent of actions and perturbations.

    Args:
        restarts: R, number of restarts.
        kept: Number of restarts that continue after screening.
        screening_steps: Steps after which restarts are compared.
        steps: Maximum number of steps.
        rate: Learning rate of Adam.
        evaluation_draws: Draws with which the best restart is selected at the end.
        incumbents: Number of restarts that begin at visited actions.
        seed: Together with the identity of the round, determines all random numbers.
        budget_s: See `Search`; a step is one step of the ascent.
    """

    restarts: int = 48
    kept: int = 8
    screening_steps: int = 30
    steps: int = 150
    rate: float = 0.02
    evaluation_draws: int = 2000
    incumbents: int = 10
    seed: int = 0
    budget_s: float | None = None

    def __post_init__(self) -> None:
        settings = {"screening_steps": self.screening_steps, "incumbents": self.incumbents}
        valid = 0 <= self.screening_steps <= self.steps and 0 <= self.incumbents < self.restarts
        expected = "positive numbers, screening_steps <= steps and incumbents < restarts"
        names = ("restarts", "kept", "steps", "evaluation_draws", "rate")
        self.check_sizes(*names, fits=valid, expected=expected, **settings)

    def propose(self, objective: CausalObjective, budget: Budget) -> Proposal:
        """The best action, under the perturbations that are best for it."""
        assert isinstance(objective, Optimism)
        identity = objective.case.identity
        seed, draws = round_seed(self.seed, identity), stream(self.seed, identity)
        recommended = recommend(objective, seed, budget=budget)
        region = objective.region()
        unit = torch.rand(self.restarts, len(region.lower), dtype=torch.float64, generator=draws)
        starts = region.into(INSET + (1 - 2 * INSET) * unit.to(region.lower))
        task = objective.network.task
        widths = {
            index: len(task.feature_names(node))
            for index, node in enumerate(task.nodes)
            if objective.perturbations[index] is None
        }
        networks = PerturbedNetworks(widths, self.restarts, draws).to(starts.device)
        incumbents = torch.cat([recommended.action.unsqueeze(0), objective.starts(self.incumbents)])
        incumbents = incumbents[: max(self.incumbents, 1)]
        starts[: len(incumbents)] = region.unit(incumbents)
        free, steps = self._ascend(objective, region, starts, networks, budget)
        actions = region.units(region.into(torch.sigmoid(free)))
        noise = objective.draw(self.evaluation_draws, seed + 7)
        values = _fresh_values(objective, actions, networks, noise)
        best = best_of_all(values)
        facts = {"search": "optimistic_networks", "restarts": self.restarts, "steps": steps}
        return Proposal(actions[best], float(values[best]), facts)

    def _ascend(
        self,
        objective: Optimism,
        region: CandidateRegion,
        starts: Tensor,
        networks: PerturbedNetworks,
        budget: Budget,
    ) -> tuple[Tensor, float]:
        """Adam with successive elimination: free coordinates (R', k) of the actions, and the step count."""
        free, steps = nn.Parameter(_logits(region, starts)), 0
        for max_steps in (self.screening_steps, self.steps - self.screening_steps):
            ascent = torch.optim.Adam([free, *networks.parameters()], lr=self.rate, maximize=True)
            for _ in range(max_steps):
                if budget.out():
                    break
                steps += 1
                ascent.zero_grad()
                _value(objective, region, free, networks, objective.noise).sum().backward()
                ascent.step()
                _project_onto_limits(region, free)
            if len(free) > self.kept:
                with torch.no_grad():
                    values = ranked(_value(objective, region, free, networks, objective.noise))
                    order = values.topk(self.kept).indices
                    free = nn.Parameter(free[order].clone())
                networks.only(order)
                if isinstance(region, MixedRegion):
                    free = self._try_levels(objective, region, free, networks)
        return free.detach(), float(steps)

    def _try_levels(
        self, objective: Optimism, region: MixedRegion, free: Tensor, networks: PerturbedNetworks
    ) -> nn.Parameter:
        """The best of the restarts and of those with one action at another level, as many as there were."""
        with torch.no_grad():
            points = region.at_levels(torch.sigmoid(free))
            moved, origins = region.neighbours(points, MOST_LEVELS)
            restarts = torch.cat([torch.arange(len(points), device=origins.device), origins])
            points = torch.cat([points, moved])
            networks.only(restarts)
            values = ranked(_value(objective, region, _logits(region, points), networks, objective.noise))
            order = values.topk(len(free)).indices
        networks.only(order)
        return nn.Parameter(_logits(region, points[order]))


def _value(
    objective: Optimism, region: CandidateRegion, free: Tensor, networks: PerturbedNetworks, noise: Tensor
) -> Tensor:
    return objective.optimistic(region.units(torch.sigmoid(free)), networks.perturbation, noise)


def _logits(region: CandidateRegion, points: Tensor) -> Tensor:
    """Free coordinates of (R, k) unit ones: away from the border, except at levels, which stay."""
    inner = points.clamp(EDGE, 1 - EDGE)
    if isinstance(region, MixedRegion):
        inner[:, region.places] = points[:, region.places]
    return inner.logit()


@torch.no_grad()
def _project_onto_limits(region: CandidateRegion, free: Tensor) -> None:
    """Projects actions back onto the linear limits, in place."""
    if region.limited:
        free.copy_(_logits(region, region.into(torch.sigmoid(free))))


@torch.no_grad()
def _fresh_values(objective: Optimism, actions: Tensor, networks: PerturbedNetworks, noise: Tensor) -> Tensor:
    """The value of every restart under fresh draws, (R, k) -> (R,); the draws are processed in chunks."""
    parts = noise.split(max(1, CHUNK // len(actions)))
    totals = [len(part) * objective.optimistic(actions, networks.perturbation, part) for part in parts]
    return torch.stack(totals).sum(0) / len(noise)
