"""Alternatives: what altering this or that set of variables is worth, for many situations at once.

One objective speaks of one set of k variables, in B situations that were decided together: it maps actions (..., B, k)
to values (..., B). A task that leaves open which variables to alter has several sets; their values are comparable, and
a search answers with the best set for each situation.

Every rehearsal method is such an objective: the kernel value, the Gaussian success probability, the cost under a
chance constraint, the distance to the region's centre, the count of sampled models.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 4.2 (candidate alterations).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rehearsal_torch.data.situation import Foresight
from rehearsal_torch.objectives.objective import Objective


class AlterationObjective(Objective, ABC):
    """What actions of one set of variables are worth in B situations.

    Args:
        situations: The B situations.
        names: The k variables that are altered.

    Raises:
        ValueError: if a situation does not allow one of the variables to be set.
    """

    def __init__(self, situations: Sequence[Foresight], names: Sequence[str]) -> None:
        super().__init__()
        self.situations, self.names = tuple(situations), tuple(names)
        for situation in self.situations:
            closed = [name for name in self.names if name not in situation.feasible]
            if closed:
                raise ValueError(f"{situation.identity}: {closed} may not be set; feasible are {list(situation.feasible)}")
        bounds = [[situation.feasible[name] for name in self.names] for situation in self.situations]
        limits = torch.tensor(bounds, dtype=torch.float64).reshape(len(self.situations), len(self.names), 2)
        self.register_buffer("lower", limits[..., 0].clone(), persistent=False)
        self.register_buffer("upper", limits[..., 1].clone(), persistent=False)
        self.lower: Tensor
        self.upper: Tensor

    def project(self, actions: Tensor) -> Tensor:
        """The nearest feasible actions, (..., B, k) -> (..., B, k)."""
        return torch.minimum(torch.maximum(actions, self.lower.to(actions)), self.upper.to(actions))

    def judged(self, actions: Tensor) -> Tensor:
        """What actions are compared by in the end, (..., B, k) -> (..., B): their value, unless an objective is more cautious."""
        return self(actions)

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether actions may be recommended at all, (..., B, k) -> (..., B) bool."""
        return torch.ones(actions.shape[:-1], dtype=torch.bool, device=actions.device)

    def step(self) -> Tensor:
        """A first step length of an ascent, (k,): a twentieth of the box."""
        return 0.05 * (self.upper - self.lower).amax(0)

    def value_and_slope(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Values (..., B) and gradients (..., B, k) at actions (..., B, k)."""
        with torch.enable_grad():
            at = actions.detach().requires_grad_(True)
            values = self(at)
            (slope,) = torch.autograd.grad(values.sum(), at)
        return values.detach(), slope

    @abstractmethod
    def evidence(self, actions: Tensor) -> list[dict[str, Any]]:
        """For each situation, plain facts about its action, (B, k) -> B dictionaries.

        Every method says ``probability``, its own estimate that the outcomes become desired, and ``before``, the same with nothing altered; ``lower``
        and ``upper`` where it has an interval for ``probability``; ``warnings``, a list of sentences, where there is something to warn of; and ``refused``,
        a sentence, where it takes the recommendation back.
        """


class Alternatives(nn.Module, ABC):
    """The sets of variables that may be altered in B situations, an objective each.

    Args:
        situations: The B situations.
        sets: An objective for each candidate set, over the same situations.
    """

    def __init__(self, situations: Sequence[Foresight], sets: Sequence[AlterationObjective]) -> None:
        super().__init__()
        self.situations = tuple(situations)
        self.sets = nn.ModuleList(sets)

    def objectives(self) -> list[AlterationObjective]:
        """The objectives, typed."""
        return [one for one in self.sets if isinstance(one, AlterationObjective)]
