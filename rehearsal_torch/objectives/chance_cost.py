"""The cost of an alteration under a chance constraint.

Altering costs the more the further a value is moved from its reference z0,

    cost(z) = sum_i w_i (z_i - z0_i)^2,        sought: the least cost with P(Y in S | x, z) >= tau.

The constraint is replaced by a sufficient one: the ellipsoid around the mean that holds Y with probability
tau lies inside S = {y : M y <= d}, that is

    M B z <= d - M (A x + c0) - sqrt( chi2_|Y|^-1(tau) ) * |M_k R|,   R R' = C Sigma C',

face by face: a polytope of z, so that the cheapest action is a projection onto it and onto the box at once.
Outside of it an action is worth minus infinity, inside minus its cost, the constant sum w_i z0_i^2 included:
sets of different variables are compared by what they really cost.

Where tau is left open, it is the level of a grid at which the method's own mean success over contexts that
were observed is largest, counting contexts without a qualifying action as left alone: a level too low is
content with little, one too high qualifies nowhere.

Source: Du et al. (2024), Eq. 6-9 and Prop. 3.3 (whose code solves without the box and clips, and leaves the
constant out); the choice of tau: Qin et al. (2025b), Sec. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from scipy.stats import chi2
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.gaussian_success import SuccessObjective, success_objectives
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal
from rehearsal_torch.spaces.box import margin
from rehearsal_torch.spaces.projection import Projected, project
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


class ChanceCost(AlterationObjective):
    """Minus the cost of altering one set of variables, where the ellipsoid lies inside the region.

    Args:
        success: What the same alteration is worth by its probability.
        weights: w, (k,).
        reference: z0, (k,), in the variables' units.
        level: tau.
    """

    def __init__(self, success: SuccessObjective, weights: Tensor, reference: Tensor, level: float) -> None:
        super().__init__(success.cases, success.names)
        self.success, self.level = success, level
        self.register_buffer("weights", weights, persistent=False)
        self.register_buffer("reference", reference, persistent=False)
        self.weights: Tensor
        self.reference: Tensor

    def forward(self, actions: Tensor) -> Tensor:
        """(..., B, k) -> (..., B)."""
        normals, offsets = self.constraints()
        # From the middle of the box: far from zero the faces' offsets are large, and so would be what
        # rounding is allowed.
        middle, slack = (self.lower + self.upper) / 2, margin(self.lower, self.upper, 1e-9)
        room = offsets - middle @ normals.mT
        met = ((actions - middle) @ normals.mT <= room + 1e-6 * (1 + room.abs())).all(-1)
        inside = ((actions >= self.lower - slack) & (actions <= self.upper + slack)).all(-1)
        return torch.where(met & inside, -self.cost(actions), torch.full_like(actions[..., 0], -torch.inf))

    def cost(self, actions: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        return (self.weights * (actions - self.reference).square()).sum(-1)

    def constraints(self) -> tuple[Tensor, Tensor]:
        """The chance constraint's faces: normals (l, k), offsets (B, l)."""
        return _faces(self.success, self.success.base, self.level)

    def cheapest(self) -> Projected:
        """The cheapest actions that qualify, (B, k), and whether there are any."""
        return _cheapest(self, self.success.base, self.lower, self.upper, self.level)

    def starts(self, count: int) -> Tensor:
        """The actions that cost least whatever comes of them, then those of the success probability."""
        free = self.project(self.reference.expand(len(self.cases), -1))
        return torch.cat([free.unsqueeze(0), self.success.starts(max(count - 1, 1))])[:count]

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """What the success probability says. Trace: ``cost``, ``level`` (asked for), ``qualifies`` (whether
        it is met).
        """
        costs, qualifies = self.cost(actions).tolist(), self(actions).isfinite().tolist()
        unmet = f"the chance constraint cannot be met at level {self.level:g}"
        return [
            replace(
                appraisal,
                trace=appraisal.trace | {"cost": cost, "level": self.level, "qualifies": met},
                warnings=appraisal.warnings if met else (*appraisal.warnings, unmet),
            )
            for appraisal, cost, met in zip(self.success.appraise(actions), costs, qualifies, strict=True)
        ]


class ChanceCosts(Candidates[ChanceCost]):
    """Minus the cost under a chance constraint, for every candidate set.

    Args:
        surrogate: A fitted linear surrogate.
        cases: The B situations.
        level: tau, 0 < tau < 1; None chooses one from the observations.
        weights: Variable to w; the others weigh 1 / variance, so that a move by one standard deviation costs
            1.
        reference: Variable to z0; the others refer to their mean, unaltered.

    Raises:
        ValueError: if the level is out of range, a weight is not positive, or a cost is given for a variable
            that cannot be altered.
    """

    def __init__(
        self,
        surrogate: LinearSurrogate,
        cases: Sequence[RehearsalCase],
        level: float | None = None,
        weights: Mapping[str, float] | None = None,
        reference: Mapping[str, float] | None = None,
    ) -> None:
        self.check(surrogate, weights=weights, reference=reference)
        weights, reference = dict(weights or {}), dict(reference or {})
        if level is not None and not 0 < level < 1:
            raise ValueError(f"expected a level in (0, 1); got {level}")
        linear = surrogate.linear_model()
        mean, spread = linear.moments()
        place = {name: index for index, name in enumerate(linear.names)}
        made = []
        for success in success_objectives(surrogate, cases):
            w = [weights.get(name, 1 / float(spread[place[name], place[name]])) for name in success.names]
            z = [reference.get(name, float(mean[place[name]])) for name in success.names]
            made.append(
                ChanceCost(
                    success,
                    success.base.new_tensor(w),
                    success.base.new_tensor(z),
                    0.5 if level is None else float(level),
                )
            )
        super().__init__(cases, made, surrogate)
        if level is None:
            chosen = best_level(surrogate, made)
            for one in made:
                one.level = chosen

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """Whether weights and references are of variables that may be altered.

        Raises:
            ValueError: if they are not, or a weight is not positive.
        """
        if not isinstance(surrogate, LinearSurrogate):
            return
        weights, reference = (dict(settings.get(key) or {}) for key in ("weights", "reference"))
        known = surrogate.task.box.names
        if any(name not in known for name in (*weights, *reference)) or any(
            value <= 0 for value in weights.values()
        ):
            raise ValueError(
                f"expected positive weights and references of {list(known)}; got weights {weights} and "
                f"references {reference}"
            )


@torch.no_grad()
def best_level(
    surrogate: LinearSurrogate, sets: Sequence[ChanceCost], levels: Sequence[float] = LEVELS
) -> float:
    """The level at which the method's own mean success over observed contexts is largest; the first of
    equals.

    Args:
        surrogate: The fitted surrogate, which keeps contexts that were observed.
        sets: An objective for each candidate set, in any situations; their boxes' hull is taken.
        levels: The grid.
    """
    contexts = surrogate.contexts.values
    baseline_response = surrogate.response(())
    region = surrogate.task.region
    nothing = SuccessObjective(
        (), (), contexts[:0], region, sets[0].success.origin, baseline_response, None, None
    )
    alone = nothing.region_probability.log_probability(_centres(nothing, contexts)).exp()
    means = []
    for level in levels:
        cost, reached = torch.full_like(alone, torch.inf), alone.clone()
        for one in sets:
            base = _centres(one.success, contexts)
            box = surrogate.task.box.only(one.names)
            lower, upper = (side.to(base).expand(len(base), -1) for side in (box.lower, box.upper))
            found = _cheapest(one, base, lower, upper, level)
            own = one.cost(found.points)
            better = found.feasible & (own < cost)
            success = one.success.region_probability.log_probability(
                base + found.points @ one.success.effect.mT
            ).exp()
            cost, reached = torch.where(better, own, cost), torch.where(better, success, reached)
        means.append(float(reached.mean()))
    return levels[max(range(len(levels)), key=lambda index: means[index])]


def _centres(success: SuccessObjective, contexts: Tensor) -> Tensor:
    """Whitened means with nothing added for the action, (B, |Y|)."""
    return torch.linalg.solve_triangular(
        success.root, (success.response.base(contexts) - success.origin).mT, upper=False
    ).mT


def _faces(success: SuccessObjective, base: Tensor, level: float) -> tuple[Tensor, Tensor]:
    region = success.region
    whitened = region.normals.to(base) @ success.root
    room = region.offsets.to(base) - region.normals.to(base) @ success.origin
    radius = float(chi2.ppf(level, len(region.names))) ** 0.5
    return whitened @ success.effect, room - radius * whitened.norm(dim=-1) - base @ whitened.mT


def _cheapest(one: ChanceCost, base: Tensor, lower: Tensor, upper: Tensor, level: float) -> Projected:
    normals, offsets = _faces(one.success, base, level)
    eye = torch.eye(len(one.names), dtype=base.dtype, device=base.device)
    rows = torch.cat([normals, eye, -eye])
    found = project(
        one.reference.expand(len(base), -1), one.weights, rows, torch.cat([offsets, upper, -lower], -1)
    )
    return Projected(torch.minimum(torch.maximum(found.points, lower), upper), found.feasible)
