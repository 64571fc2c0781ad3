"""Scenario counts: the share of sampled scenarios with a desired outcome.

In scenario i the outcomes are affine in the alteration, Y_i = a_i + B_i z, so that they are desired where the
rows of G_i z <= h_i hold, G_i = M B_i, h_i = d - M a_i. The value of z is the share of desired scenarios: a
step function of z, and an estimate of P(Y in S | D, x, z). A sweep (one variable) or a mixed-integer program
finds its maximum.

Alterations are measured from an origin, z = a - origin: zero, or, if the box lies far from zero relative to
its width, a corner of it, so that differences within the box keep their precision.

The scenarios come from a known graph with sampled parameters (`ScenarioCount`), or from a posterior over
graphs (`success_probability`). With a known graph, a scenario is a draw of the linear Gaussian parameters
from their posterior, with a draw of the noise,

    Y_i = A_i x + c_i + e_i + B_i z,       e_i ~ N(0, C_i Sigma_i C_i'),

so that a_i = A_i x + c_i + e_i. A separate sample of scenarios compares the candidate sets. The probability
reported for the result is the mean over a third sample of parameters, given which it is exact; the interval
holds the central quantiles of this sample.

Source: Qin et al. (2023), Sec. 4.1-4.2 (samples of the rehearsal model), Prop. 5, Eq. 6 and Eq. 9.
"""

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.gaussian_success import chances, covariance_root, inside
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, appraised, difference
from rehearsal_torch.seeding import spaced_generator
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate

TINY = 1e-9
# Numbers up to this factor from 1 count as of the order of one, boxes within so many widths as at zero.
ORDINARY = 1e3
# Maximum effect of rounding on an action, relative to its size.
ROUNDED = 4 * torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class Scenarios:
    """n scenarios for B cases; desired where gains @ z <= slack."""

    gains: Tensor  # G, (n, l, k)
    slack: Tensor  # h, (n, B, l)
    unit: Tensor | float = 1.0  # Scale of the slacks, (l,): a face is violated by more than `TINY` times this

    def desired(self, actions: Tensor) -> Tensor:
        """Whether each scenario is desired, (..., B, k) -> (..., n, B)."""
        shifts = torch.einsum("slk,...bk->...sbl", self.gains, actions.to(self.gains))
        return (shifts <= self.slack + TINY * (self.unit + self.slack.abs())).all(-1)

    def share(self, actions: Tensor) -> Tensor:
        """The share of desired scenarios, (..., B, k) -> (..., B)."""
        return self.desired(actions).double().mean(-2)

    def first(self, count: int) -> "Scenarios":
        """The first `count` scenarios."""
        return replace(self, gains=self.gains[:count], slack=self.slack[:count])

    def some(self, which: Tensor) -> "Scenarios":
        """The scenarios with the given indices, (m,)."""
        return replace(self, gains=self.gains[which], slack=self.slack[which])

    def one(self, index: int) -> "Scenarios":
        """The scenarios of one case."""
        return replace(self, slack=self.slack[:, [index]])

    def defined(self) -> Tensor:
        """Whether all numbers of a scenario are finite, (n, B)."""
        return self.slack.isfinite().all(-1) & self.gains.isfinite().all((-2, -1)).unsqueeze(-1)

    def relative_to(self, origin: Tensor, lower: Tensor, upper: Tensor) -> "Scenarios":
        """The same for alterations measured from an origin, in boxes, (B, k) each; undefined is undesired."""
        defined = self.defined()
        scenarios = self if bool(defined.all()) else self._without(defined)
        slack, typical_gain = scenarios.slack, scenarios.gains.abs().median(0).values
        size = slack.new_zeros(slack.shape[-1])
        if bool(origin.any()):
            slack = slack - torch.einsum("slk,bk->sbl", scenarios.gains, origin)
            # Rounding moves an action by more than TINY of its box where the box lies very far from zero.
            size = typical_gain @ torch.maximum(lower.abs(), upper.abs()).amax(0)
        unit = _face_scale(slack, typical_gain @ (upper - lower).amax(0))
        return Scenarios(scenarios.gains, slack, unit + ROUNDED / TINY * size)

    def _without(self, defined: Tensor) -> "Scenarios":
        """The scenarios, with undefined ones replaced by constraints that no action satisfies."""
        gains = self.gains.where(self.gains.isfinite().all((-2, -1))[:, None, None], 0.0)
        return replace(self, gains=gains, slack=self.slack.where(defined.unsqueeze(-1), -torch.inf))


def _face_scale(slack: Tensor, reach: Tensor | float = 0.0) -> Tensor:
    """The scale of each face, of slacks (n, B, l) and of what actions move, (l,): 1 where it is ordinary."""
    # Medians, since a few scenarios may be extreme.
    size = slack.abs().flatten(0, 1).median(0).values.nan_to_num(0.0, 0.0) + reach
    ordinary = (size * ORDINARY >= 1) & (size <= ORDINARY)
    return torch.where(ordinary, torch.ones_like(size), size)


def origin_of(lower: Tensor, upper: Tensor) -> Tensor:
    """The origin of alterations in boxes, (B, k): zero, or the nearest corner beyond `ORDINARY` widths."""
    nearest = torch.minimum(torch.maximum(torch.zeros_like(lower), lower), upper)
    return torch.where(nearest.abs() > ORDINARY * (upper - lower), nearest, torch.zeros_like(nearest))


def rowwise(outcomes: Tensor, slopes: Tensor, region: Polytope) -> Scenarios:
    """Scenarios of affine outcomes, (n, B, |Y|) at z = 0, with slopes (n, |Y|, k); faces have unit length."""
    length = region.normals.norm(dim=-1)
    normals = (region.normals / length.unsqueeze(-1)).to(outcomes)
    slack = (region.offsets / length).to(outcomes) - outcomes @ normals.mT
    return Scenarios(normals @ slopes, slack, _face_scale(slack))


class CountObjective(AlterationObjective, ABC):
    """The share of desired scenarios, for one set of altered variables in B cases. The scenarios of the
    search and of the validation are of alterations measured from `origin`, (B, k), in the actions' units.
    """

    of_success = True

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        search_scenarios: Scenarios,
        validation_scenarios: Scenarios,
    ) -> None:
        super().__init__(cases, names, search_scenarios.gains.device)
        self.origin = origin_of(self.lower, self.upper)
        # Without a single defined scenario the share is undefined.
        defined = search_scenarios.defined().any(0) & validation_scenarios.defined().any(0)
        self.undefined_mask = torch.zeros_like(self.lower[:, 0]).where(defined, torch.nan)
        self.search_scenarios = self.counted(search_scenarios)
        self.validation_scenarios = self.counted(validation_scenarios)

    def counted(self, scenarios: Scenarios) -> Scenarios:
        """Converts scenarios of actions in their units to alterations measured from the origin."""
        box = (self.origin, self.lower, self.upper)
        return scenarios.relative_to(*(side.to(scenarios.gains) for side in box))

    def __call__(self, actions: Tensor) -> Tensor:
        """The share of desired search scenarios, (..., B, k) -> (..., B)."""
        return self.search_scenarios.share(actions - self.origin.to(actions)) + self.undefined_mask

    def compared_probability(self, actions: Tensor) -> Tensor:
        """The share of desired validation scenarios, unseen by the search, (..., B, k) -> (..., B)."""
        return self.validation_scenarios.share(actions - self.origin.to(actions)) + self.undefined_mask


def scenarios_of(
    response: AffineResponse, contexts: Tensor, region: Polytope, stream: torch.Generator
) -> Scenarios:
    """One scenario for each of n sets of parameters, with its own noise, which all cases share."""
    root = covariance_root(response.covariance)
    noise = root @ torch.randn(*root.shape[:-1], 1, dtype=torch.float64, generator=stream).to(root)
    return rowwise(response.base(contexts) + noise.squeeze(-1).unsqueeze(-2), response.action, region)


class ScenarioCount(CountObjective):
    """The share of desired scenarios under a known graph; the test scenarios are sets of parameters."""

    takes = (LinearSurrogate,)
    level: float

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        search_scenarios: Scenarios,
        validation_scenarios: Scenarios,
        test_scenarios: AffineResponse,
        contexts: Tensor,
        region: Polytope,
        before: Tensor,
        level: float = 0.95,
    ) -> None:
        super().__init__(cases, names, search_scenarios, validation_scenarios)
        self.test_scenarios, self.contexts, self.region = test_scenarios, contexts, region
        self.before, self.level = before, level

    @classmethod
    def for_sets(
        cls,
        surrogate: LinearSurrogate,
        cases: Sequence[RehearsalCase],
        search_scenarios: int = 4000,
        validation_scenarios: int = 1800,
        test_scenarios: int = 200,
        seed: int = 0,
        level: float = 0.95,
    ) -> list[Self]:
        """The share of desired scenarios for each candidate set; a ValueError for too few draws.

        Args:
            search_scenarios: Number of scenarios for the search.
            validation_scenarios: Number of other scenarios, which compare sets.
            test_scenarios: Number of further sets of parameters, for the reported probability.
            seed: Seed of the noise.
            level: Coverage probability of the interval.
        """
        counts = (search_scenarios, validation_scenarios, test_scenarios)
        expected = "positive numbers of scenarios for search, validation and test"
        require(min(counts) > 0, expected, numbers=counts)
        require(0 < level < 1, "a level in (0, 1)", level=level)
        task = surrogate.task
        contexts = task.given(cases).to(surrogate.contexts.values.device)
        before, by_set = contexts.new_zeros(len(contexts)), []
        sets = ((), *task.candidates)
        for names, linear_models in zip(sets, surrogate.linear_models_of(sets), strict=True):
            draws = 0 if linear_models is None else len(linear_models.intercept)
            if linear_models is None or draws < sum(counts):
                raise ValueError(
                    f"expected {sum(counts)} draws of the parameters; the surrogate provides {draws}: raise "
                    "its `draws` or request fewer scenarios"
                )
            response = linear_models.response(task.context, task.outcomes)
            spans = [slice(*ends) for ends in pairwise(accumulate(counts, initial=0))]
            parts = vars(response).values()
            samples = [AffineResponse(*(part[span] for part in parts)) for span in spans]
            if not names:
                nothing = contexts.new_empty(len(contexts), 0)
                before = success(samples[2], task.region, contexts, nothing).mean(0)
                continue
            stream = spaced_generator(seed, 17)
            search, check = (scenarios_of(sample, contexts, task.region, stream) for sample in samples[:2])
            by_set.append(cls(cases, names, search, check, samples[2], contexts, task.region, before, level))
        return by_set

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None]:
        """See `AlterationObjective.contrast`: by the same sets of parameters for both."""
        rows = self._mean_and_interval(self._success_draws(first) - self._success_draws(second))
        return [difference(*row, self.level) for row in zip(*rows, strict=True)]

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability of success with its interval, and that without an alteration."""
        estimated, low, high = self._mean_and_interval(self._success_draws(actions))
        rows = zip(estimated, self.before.tolist(), low, high, strict=True)
        return [appraised(self.level, *row) for row in rows]

    def _success_draws(self, actions: Tensor) -> Tensor:
        """P under every set of parameters, (sets, B)."""
        return success(self.test_scenarios, self.region, self.contexts, actions)

    def _mean_and_interval(self, by_draw: Tensor) -> tuple[list[float], list[float], list[float]]:
        """The mean of draws, (sets, B), and the ends of its interval."""
        ends = [round((1 - self.level) / 2, 12), round((1 + self.level) / 2, 12)]
        low, high = torch.quantile(by_draw, by_draw.new_tensor(ends), dim=0)
        return by_draw.mean(0).tolist(), low.tolist(), high.tolist()


def success(response: AffineResponse, region: Polytope, contexts: Tensor, actions: Tensor) -> Tensor:
    """P(Y in S | x, z) under every set of parameters: contexts (B, |X|), actions (B, k) -> (sets, B)."""
    middle = response.covariance.mean(0)
    origin = inside(region, middle).to(contexts)
    return chances(response, region, origin, covariance_root(middle), contexts, actions)
