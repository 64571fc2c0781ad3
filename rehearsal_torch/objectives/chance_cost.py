"""The cost of an alteration under a chance constraint.

Altering costs the more the further a value is moved from its reference z0, which is the present value where
the case states one, else what is usual,

    cost(z) = sum_i w_i (z_i - z0_i)^2,        to be minimised subject to P(Y in S | x, z) >= tau.

The constraint is replaced by a sufficient one: the ellipsoid around the mean that contains Y with probability
tau lies inside S = {y : M y <= d}, that is

    M B z <= d - M (A x + c0) - sqrt( chi2_|Y|^-1(tau) ) * |M_k R|,   R R' = C Sigma C',

face by face: a polytope of z, so that the cheapest action is a projection onto its intersection with the box.
Outside of it the value of an action is minus infinity, inside minus its cost, including the constant sum w_i
z0_i^2: sets of different variables are compared by their actual cost.

If tau is not given, it is the level of a grid that maximises the method's own mean success probability over
observed contexts, where contexts without a feasible action count as not altered: a level too low is satisfied
too easily, one too high is infeasible everywhere.

Source: Du et al. (2024), Eq. 6-9 and Prop. 3.3 (whose code solves without the box and clips, and leaves the
constant out); the choice of tau: Qin et al. (2025b), Sec. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from scipy.special import gammaincinv
from torch import Tensor

from rehearsal_torch.data.codings.class_actions import whole
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal
from rehearsal_torch.spaces.box import margin
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.spaces.projection import Projected, project
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


class ChanceCost(AlterationObjective):
    """Minus the cost of altering one set of variables, where the ellipsoid lies inside the region.

    Args:
        success: The success probability of the same alteration.
        usual: z0 of a case without present values, (k,), in the variables' units.
        reference: z0 of each case, (B, k); None takes the usual one for all.
    """

    takes = (LinearSurrogate,)

    # The search looks for the cheapest qualifying alteration, and for the most probable where none qualifies.
    enumerable = False

    def __init__(
        self,
        success: GaussianSuccess,
        weights: Tensor,
        usual: Tensor,
        tau: float,
        reference: Tensor | None = None,
    ) -> None:
        super().__init__(success.cases, success.names)
        self.success, self.tau = success, tau
        self.lower, self.upper = success.lower, success.upper
        self.weights, self.usual = weights, usual
        self.reference = usual.expand(len(success.cases), -1) if reference is None else reference

    @classmethod
    def for_sets(
        cls,
        surrogate: LinearSurrogate,
        cases: Sequence[RehearsalCase],
        level: float | None = None,
        weights: Mapping[str, float] | None = None,
        reference: Mapping[str, float] | None = None,
        interval_level: float = 0.95,
    ) -> list[Self]:
        """Minus the cost under a chance constraint, for each candidate set.

        Args:
            level: tau, 0 < tau < 1; None selects one from the observations.
            weights: Variable to w; 1 / variance for the others, so that a change by one standard deviation
                costs 1.
            reference: Variable to z0, whatever cases state; for the others, the present value of a case,
                or, where it states none, their mean without an alteration.
            interval_level: Coverage probability of the interval of the success probability.

        Raises:
            ValueError: if a level is out of range, or `check` refuses weights or references.
        """
        cls.check(surrogate, weights=weights, reference=reference)
        weights, reference = dict(weights or {}), dict(reference or {})
        if level is not None and not 0 < level < 1:
            raise ValueError(f"expected a level in (0, 1); got {level}")
        linear = surrogate.linear_model()
        mean, spread = linear.moments()
        place = {name: index for index, name in enumerate(linear.names)}
        made = []
        for success in GaussianSuccess.for_sets(surrogate, cases, interval_level):
            w = [weights.get(name, 1 / float(spread[place[name], place[name]])) for name in success.names]
            z = [reference.get(name, float(mean[place[name]])) for name in success.names]
            known = [
                [
                    reference.get(name, case.present.get(name, usual))
                    for name, usual in zip(success.names, z, strict=True)
                ]
                for case in cases
            ]
            made.append(
                cls(
                    success,
                    success.base.new_tensor(w),
                    success.base.new_tensor(z),
                    0.5 if level is None else float(level),
                    success.base.new_tensor(known).reshape(len(cases), len(z)),
                )
            )
        if level is None:
            chosen = best_level(surrogate, made)
            for one in made:
                one.tau = chosen
        return made

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """Checks that weights and references belong to variables that may be altered.

        Raises:
            ValueError: if they do not, a weight is not positive, or a variable of classes may be altered.
        """
        if not isinstance(surrogate, LinearSurrogate):
            return
        task = surrogate.task
        if classes := whole(task.box.names, task.codings):
            raise ValueError(
                f"{classes[0].name} has classes ({', '.join(classes[0].levels)}), and a change from one to "
                "another has no size that could be weighed: choose a method that looks for the largest "
                "probability, such as decision=outcome_regression or decision=cme"
            )
        weights, reference = (dict(settings.get(key) or {}) for key in ("weights", "reference"))
        known = surrogate.task.box.names
        if any(name not in known for name in (*weights, *reference)) or any(
            value <= 0 for value in weights.values()
        ):
            raise ValueError(
                f"expected positive weights and references of {list(known)}; got weights {weights} and "
                f"references {reference}"
            )

    def within(self, lower: Tensor, upper: Tensor, fixed: Mapping[str, float]) -> Self:
        """With the success probability in the same bounds."""
        inside = self.success.within(lower, upper, fixed)
        return super().within(lower, upper, fixed).changed(success=inside)

    def __call__(self, actions: Tensor) -> Tensor:
        """Minus the cost, or minus infinity where infeasible, (..., B, k) -> (..., B)."""
        normals, offsets = self.constraints()
        # Relative to the centre of the box: far from zero the offsets of the faces are large, and so would be
        # the tolerance for rounding.
        middle, tolerance = (self.lower + self.upper) / 2, margin(self.lower, self.upper, 1e-9)
        slack = offsets - middle @ normals.mT
        reach = (self.upper - middle) @ normals.abs().mT
        met = ((actions - middle) @ normals.mT <= slack + 1e-6 * (reach + slack.abs())).all(-1)
        inside = ((actions >= self.lower - tolerance) & (actions <= self.upper + tolerance)).all(-1)
        return torch.where(met & inside, -self.cost(actions), torch.full_like(actions[..., 0], -torch.inf))

    def cost(self, actions: Tensor) -> Tensor:
        """The cost of actions, (..., B, k) -> (..., B)."""
        return _cost(self.weights, actions, self.reference)

    def constraints(self) -> tuple[Tensor, Tensor]:
        """The faces of the chance constraint: normals (l, k), offsets (B, l)."""
        return _faces(self.success, self.success.base, self.tau)

    def cheapest(self) -> Projected:
        """The cheapest feasible actions, (B, k), and whether there are any."""
        return _cheapest(self, self.success.base, self.lower, self.upper, self.tau, self.reference)

    def at_level(self, level: float) -> Self:
        """See `AlterationObjective.at_level`; tau stays."""
        return self.changed(success=self.success.at_level(level))

    def starts(self, count: int) -> Tensor:
        """The cheapest actions in the box, feasible or not, then the starts of the success probability."""
        free = self.project(self.reference)
        return torch.cat([free.unsqueeze(0), self.success.starts(max(count - 1, 1))])[:count]

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: that of the success probability."""
        return self.success.contrast(first, second)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The assessment by the success probability. Trace: ``cost``, ``level`` (tau), ``qualifies``."""
        costs, qualifies = self.cost(actions).tolist(), self(actions).isfinite().tolist()
        text = f"the chance constraint cannot be met at level {self.tau:g}"
        unmet = () if all(qualifies) else (Finding("constraint", text),)
        return [
            replace(
                appraisal,
                trace=appraisal.trace | {"cost": cost, "level": self.tau, "qualifies": met},
                findings=appraisal.findings if met else (*appraisal.findings, *unmet),
            )
            for appraisal, cost, met in zip(self.success.appraise(actions), costs, qualifies, strict=True)
        ]


@torch.no_grad()
def best_level(
    surrogate: LinearSurrogate, sets: Sequence[ChanceCost], levels: Sequence[float] = LEVELS
) -> float:
    """The level of the largest mean success of the method over observed contexts; the first among equals."""
    contexts = surrogate.contexts.values
    baseline_response = surrogate.response(())
    region = surrogate.task.region
    nothing = GaussianSuccess(
        (), (), contexts[:0], region, sets[0].success.origin, baseline_response, None, None
    )
    alone = nothing.region_probability.log_probability(nothing.unaltered(contexts)).exp()
    count, cost = len(levels), alone.new_full((len(levels) * len(alone),), torch.inf)
    reached = alone.repeat(count)
    for one in sets:
        # The programs of all levels in one batch, level by level.
        base = one.success.unaltered(contexts).repeat(count, 1)
        box = surrogate.task.box.only(one.names)
        lower, upper = (side.to(base).expand(len(base), -1) for side in (box.lower, box.upper))
        each = base.new_tensor(levels).repeat_interleave(len(alone))
        found = _cheapest(one, base, lower, upper, each, one.usual.expand(len(base), -1))
        set_cost = _cost(one.weights, found.points, one.usual)
        better = found.feasible & (set_cost < cost)
        success = one.success.region_probability.log_probability(
            base + found.points @ one.success.effect.mT
        ).exp()
        cost, reached = torch.where(better, set_cost, cost), torch.where(better, success, reached)
    means = reached.reshape(count, -1).mean(-1).tolist()
    return levels[max(range(count), key=lambda index: means[index])]


def _faces(success: GaussianSuccess, base: Tensor, level: float | Tensor) -> tuple[Tensor, Tensor]:
    """The faces at one level, or at one for each row of `base`, in standard deviations along each."""
    region = success.region
    whitened = region.normals.to(base) @ success.root
    slack = region.offsets.to(base) - region.normals.to(base) @ success.origin
    if isinstance(level, Tensor):
        several, place = level.unique(return_inverse=True)
        radius = base.new_tensor([_radius(each, region) for each in several.tolist()])[place].unsqueeze(-1)
    else:
        radius = base.new_tensor(_radius(level, region))
    spread = whitened.norm(dim=-1)
    whitened = whitened / spread.unsqueeze(-1)
    return whitened @ success.effect, slack / spread - radius - base @ whitened.mT


def _radius(level: float, region: Polytope) -> float:
    # The quantile of chi^2; `scipy.stats` takes a hundred times as long for a number.
    return float(2 * gammaincinv(len(region.names) / 2, level)) ** 0.5


def _cost(weights: Tensor, actions: Tensor, reference: Tensor) -> Tensor:
    return (weights * (actions - reference).square()).sum(-1)


def _cheapest(
    one: ChanceCost, base: Tensor, lower: Tensor, upper: Tensor, level: float | Tensor, reference: Tensor
) -> Projected:
    normals, offsets = _faces(one.success, base, level)
    found = project(reference, one.weights, normals, offsets, box=(lower, upper))
    return Projected(torch.minimum(torch.maximum(found.points, lower), upper), found.feasible)
