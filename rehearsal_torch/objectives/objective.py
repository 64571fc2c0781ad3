"""Objectives: what an action is worth, here and now.

Given a surrogate and a situation, an objective maps candidate actions to values. Searches know objectives
alone.

Alterations: what altering one set of k variables is worth, in B situations that were decided together. The
objective maps actions (..., B, k) to values (..., B). A task that leaves open which variables to alter has
several sets, an objective each (see `candidates`).

Every rehearsal method is such an objective: the kernel value, the Gaussian success probability, the cost
under a chance constraint, the distance to the region's centre, the count of sampled models.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 4.2 (candidate alterations).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.question import Kind
from rehearsal_torch.surrogates.surrogate import Surrogate


class Objective(nn.Module, ABC):
    """A function of k action coordinates, to be made large.

    Attributes:
        kind: The kind of problem whose actions it values (`Problem.kind`); None for any.
    """

    kind: Kind | None = None

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """Refuses settings that do not go with a surrogate, before it is fitted; by default none are refused.

        Args:
            surrogate: Fitted or not.
            settings: What the objective will be made with, besides surrogate and situation.

        Raises:
            ValueError: naming the setting, what was expected, and what was given.
        """

    @abstractmethod
    def forward(self, actions: Tensor) -> Tensor:
        """(..., k) -> (...)."""

    @abstractmethod
    def starts(self, count: int) -> Tensor:
        """At most `count` candidates worth looking at first, (<= count, k)."""

    def trajectory_record(self, decision: Decision) -> dict[str, Any]:  # noqa: ARG002
        """What a decision means step by step, as plain data; empty where there are no steps."""
        return {}


CHANCE = "probability of a desired outcome"


@dataclass(frozen=True)
class Appraisal:
    """What a method says of one action in one situation.

    Attributes:
        estimate: The probability that the outcomes become desired; None where the method has no number.
        baseline: The same with nothing altered.
        warnings: What the reader must know before acting, a sentence each.
        refused: Why the method takes the recommendation back because it cannot judge it; empty where it
            stands.
        declined: Why doing nothing is better by the method's own rule; empty where it is not.
        trace: Further plain numbers and texts.
    """

    estimate: Estimate | None
    baseline: Estimate | None
    warnings: tuple[str, ...] = ()
    refused: str = ""
    declined: str = ""
    trace: dict[str, Any] = field(default_factory=dict)


def chance(
    point: float, lower: float | None = None, upper: float | None = None, level: float = 0.95
) -> Estimate | None:
    """A probability with its interval; None where the point is no finite number, no interval where an end is
    none.
    """
    if not math.isfinite(point):
        return None
    if lower is None or upper is None or not (math.isfinite(lower) and math.isfinite(upper)):
        return Estimate(point, CHANCE)
    return Estimate(point, CHANCE, min(lower, point), max(upper, point), level)


def gradient(values: Tensor, at: Tensor) -> Tensor:
    """The gradient of the values' sum at actions; zero where values do not depend on them at all, as where no
    path leads from action to outcome.
    """
    if not values.requires_grad:
        return torch.zeros_like(at)
    (found,) = torch.autograd.grad(values.sum(), at)
    return found


def no_help(estimated: float, baseline: float) -> str:
    """What is said where no alteration helps."""
    return f"no alteration helps: {estimated:.3f} at best, {baseline:.3f} with nothing altered"


class AlterationObjective(Objective, ABC):
    """What actions of one set of variables are worth in B situations.

    Args:
        cases: The B situations.
        names: The k variables that are altered.

    Raises:
        ValueError: if a situation does not allow one of the variables to be set.
    """

    kind: Kind | None = "rehearse"

    def __init__(self, cases: Sequence[RehearsalCase], names: Sequence[str]) -> None:
        super().__init__()
        self.cases, self.names = tuple(cases), tuple(names)
        for case in self.cases:
            closed = [name for name in self.names if name not in case.feasible]
            if closed:
                raise ValueError(
                    f"{case.identity}: {closed} may not be set; feasible are {list(case.feasible)}"
                )
        bounds = [[case.feasible[name] for name in self.names] for case in self.cases]
        limits = torch.tensor(bounds, dtype=torch.float64).reshape(len(self.cases), len(self.names), 2)
        self.register_buffer("lower", limits[..., 0].clone(), persistent=False)
        self.register_buffer("upper", limits[..., 1].clone(), persistent=False)
        self.lower: Tensor
        self.upper: Tensor

    def project(self, actions: Tensor) -> Tensor:
        """The nearest feasible actions, (..., B, k) -> (..., B, k)."""
        return torch.minimum(torch.maximum(actions, self.lower.to(actions)), self.upper.to(actions))

    def comparison_value(self, actions: Tensor) -> Tensor:
        """What actions are compared by in the end, (..., B, k) -> (..., B): their value, unless an objective
        is more cautious.
        """
        return self(actions)

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether actions may be recommended at all, (..., B, k) -> (..., B) bool."""
        return torch.ones(actions.shape[:-1], dtype=torch.bool, device=actions.device)

    def frame(self) -> tuple[Tensor, Tensor]:
        """Location and scale of the coordinates z = (a - location) / scale in which an ascent works, (k,)
        each, in the actions' units.

        The middle of the box and half its width, unless an objective knows better; a scale is positive.
        """
        lower, upper = self.lower.amin(0), self.upper.amax(0)
        half = 0.5 * (self.upper - self.lower).amax(0)
        return (lower + upper) / 2, torch.where(half > 0, half, torch.ones_like(half))

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Values (..., B) and gradients (..., B, k) at actions (..., B, k)."""
        with torch.enable_grad():
            at = actions.detach().requires_grad_(True)
            values = self(at)
            gradients = gradient(values, at)
        return values.detach(), gradients

    def value_and_gradient_in_frame(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Values (..., B) and gradients (..., B, k) at points (..., B, k) in the coordinates of `frame`, in
        the points' precision.
        """
        location, scale = self.frame()
        values, gradients = self.value_and_gradient(location + scale * points.to(location))
        return values.to(points), (gradients * scale).to(points)

    @abstractmethod
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """For each situation, what the method claims of its action: (B, k) -> B appraisals."""
