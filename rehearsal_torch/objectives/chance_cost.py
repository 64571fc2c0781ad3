"""The cost of an alteration under a chance constraint.

The cost grows with the distance of a value from its reference z0, the present value where the case states
one, else the usual value,

    cost(z) = sum_i w_i (z_i - z0_i)^2,        to be minimised subject to P(Y in S | x, z) >= tau.

The constraint is replaced by a sufficient one: the ellipsoid around the mean that contains Y with probability
tau lies inside S = {y : M y <= d}, that is

    M B z <= d - M (A x + c0) - sqrt( chi2_|Y|^-1(tau) ) * |M_k R|,   R R' = C Sigma C',

face by face: a polytope of z, so that the cheapest action is a projection onto its intersection with the box.
The value of an action is minus infinity outside and minus its cost inside, including the constant sum
w_i z0_i^2: sets of different variables are compared by their actual cost.

If tau is not given, it is the level of a grid that maximises the method's own mean success probability over
observed contexts, where contexts without a feasible action count as not altered: a level too low is satisfied
too easily, one too high is infeasible everywhere.

Source: Du et al. (2024), Eq. 6-9 and Prop. 3.3 (whose code solves without the box and clips, and leaves the
constant out); the choice of tau: Qin et al. (2025b), Sec. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import torch
from scipy.special import gammaincinv
from torch import Tensor

from rehearsal_torch.data.codings.one_hot_actions import classes_in
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess, SuccessModel, success_models
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Each
from rehearsal_torch.spaces.box import Box, margin
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
        """Minus the cost under a chance constraint for each candidate set; a ValueError for invalid settings.

        Args:
            level: tau, 0 < tau < 1; None selects one from the observations.
            weights: Variable to w; 1 / variance for the others: a change by one deviation costs 1.
            reference: Variable to z0; else a case's present value, or the mean without an alteration.
            interval_level: Coverage probability of the interval of the success probability.
        """
        cls.check(surrogate, weights=weights, reference=reference)
        weights, reference = dict(weights or {}), dict(reference or {})
        if level is not None and not 0 < level < 1:
            raise ValueError(f"expected a level in (0, 1); got {level}")
        task = surrogate.task
        key = (level, *sorted(weights.items()), "at", *sorted(reference.items()))
        prices, tau, *_ = surrogate.kept(
            ("cost", task.candidates, task.context, id(task.box), id(task.region), key),
            partial(_prices, surrogate, level, weights, reference),
        )
        objectives = []
        successes = GaussianSuccess.for_sets(surrogate, cases, interval_level)
        for success, (w, z) in zip(successes, prices, strict=True):
            unreferenced = [name for name in success.names if name not in reference]
            present_values = None
            if any(name in case.present for case in cases for name in unreferenced):
                usual = dict(zip(success.names, z.tolist(), strict=True))
                rows = [[{**usual, **case.present, **reference}[name] for name in usual] for case in cases]
                present_values = z.new_tensor(rows)
            objectives.append(cls(success, w, z, tau, present_values))
        return objectives

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """A ValueError for invalid weights or references, or variables of classes."""
        if not isinstance(surrogate, LinearSurrogate):
            return
        task = surrogate.task
        if classes := classes_in(task.box.names, task.codings):
            raise ValueError(
                f"{classes[0].name} has classes ({', '.join(classes[0].levels)}), and a change from one to "
                "another has no size that could be weighed: choose a method that looks for the largest "
                "probability, such as decision=outcome_regression or decision=cme"
            )
        weights, reference = (dict(settings.get(key) or {}) for key in ("weights", "reference"))
        actionable = surrogate.task.box.names
        unknown = {*weights, *reference} - set(actionable)
        if unknown or any(value <= 0 for value in weights.values()):
            raise ValueError(
                f"expected positive weights and references of {list(actionable)}; got weights {weights} and "
                f"references {reference}"
            )

    def within(self, lower: Tensor, upper: Tensor, fixed: Mapping[str, float]) -> Self:
        """With the success probability in the same bounds."""
        inside = self.success.within(lower, upper, fixed)
        return super().within(lower, upper, fixed).changed(success=inside)

    def __call__(self, actions: Tensor) -> Tensor:
        """Minus the cost, or minus infinity where infeasible, (..., B, k) -> (..., B)."""
        normals, offsets = self.constraints()
        # Relative to the centre of the box: far from zero the offsets, and the tolerances, would be large.
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
        return _faces(self.success.model, self.success.base, self.tau)

    def cheapest(self) -> Projected:
        """The cheapest feasible actions, (B, k), and whether there are any."""
        box = self.lower, self.upper
        return _cheapest(self.success.model, self.weights, self.success.base, *box, self.tau, self.reference)

    def at_level(self, level: float) -> Self:
        """See `AlterationObjective.at_level`; tau stays."""
        return self.changed(success=self.success.at_level(level))

    def starts(self, count: int) -> Tensor:
        """The cheapest actions in the box, feasible or not, then the starts of the success probability."""
        cheapest = self.project(self.reference)
        return torch.cat([cheapest.unsqueeze(0), self.success.starts(max(count - 1, 1))])[:count]

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: that of the success probability."""
        return self.success.contrast(first, second)

    def appraise(self, actions: Tensor) -> Sequence[Appraisal]:
        """The assessment by the success probability. Trace: ``cost``, ``level`` (tau), ``qualifies``."""
        costs, qualifies = self.cost(actions).tolist(), self(actions).isfinite().tolist()
        text = f"the chance constraint cannot be met at level {self.tau:g}"
        unmet = () if all(qualifies) else (Finding("constraint", text),)
        successes = self.success.appraise(actions)

        def appraisal(index: int) -> Appraisal:
            estimate, met = successes[index], qualifies[index]
            trace = estimate.trace | {"cost": costs[index], "level": self.tau, "qualifies": met}
            findings = estimate.findings if met else (*estimate.findings, *unmet)
            return replace(estimate, trace=trace, findings=findings)

        return Each(len(costs), appraisal)


Price = tuple[Tensor, Tensor]


def _prices(
    surrogate: LinearSurrogate,
    level: float | None,
    weights: Mapping[str, float],
    reference: Mapping[str, float],
) -> tuple[list[Price], float, Box, Polytope]:
    """The weights and usual values (k,) of each set, tau, the box and the region, which all cases share."""
    task, linear = surrogate.task, surrogate.linear_model()
    mean, spread = linear.moments()
    variance = spread.diagonal().tolist()
    column = {name: index for index, name in enumerate(linear.names)}
    prices = []
    for names in task.candidates:
        w = [weights.get(name, 1 / variance[column[name]]) for name in names]
        z = [reference.get(name, float(mean[column[name]])) for name in names]
        prices.append((mean.new_tensor(w), mean.new_tensor(z)))
    tau = best_level(surrogate, prices) if level is None else float(level)
    return prices, tau, task.box, task.region


@torch.no_grad()
def best_level(surrogate: LinearSurrogate, prices: Sequence[Price]) -> float:
    """The level with the largest mean success over observed contexts, the first among equals."""
    contexts, task = surrogate.contexts.values, surrogate.task
    nothing, *models = success_models(surrogate)

    def success_at(model: SuccessModel, points: Tensor, sides: Sequence[Tensor]) -> Tensor:
        """P at whitened means, (n, |Y|) -> (n,)."""
        form = model.region_probability(partial(model.farthest, contexts, *sides))
        return form.log_probability(points).exp()

    none = contexts.new_zeros(1, 0)
    alone = success_at(nothing, nothing.base(contexts), (none, none))
    count, cost = len(LEVELS), alone.new_full((len(LEVELS) * len(alone),), torch.inf)
    successes = alone.repeat(count)
    for names, model, (w, usual) in zip(task.candidates, models, prices, strict=True):
        # The programs of all levels in one batch, level by level.
        base = model.base(contexts).repeat(count, 1)
        box = task.box.only(names)
        lower, upper = (side.to(base).expand(len(base), -1) for side in (box.lower, box.upper))
        levels = base.new_tensor(LEVELS).repeat_interleave(len(alone))
        projected = _cheapest(model, w, base, lower, upper, levels, usual.expand(len(base), -1))
        set_cost = _cost(w, projected.points, usual)
        better = projected.feasible & (set_cost < cost)
        success = success_at(model, base + projected.points @ model.effect.mT, (lower[:1], upper[:1]))
        cost, successes = torch.where(better, set_cost, cost), torch.where(better, success, successes)
    means = successes.reshape(count, -1).mean(-1).tolist()
    return LEVELS[max(range(count), key=lambda index: means[index])]


def _faces(success: SuccessModel, base: Tensor, level: float | Tensor) -> tuple[Tensor, Tensor]:
    """The faces at one level, or at one for each row of `base`, in standard deviations along each."""
    region = success.region
    whitened, slack = success.faces
    if isinstance(level, Tensor):
        distinct, index = level.unique(return_inverse=True)
        radius = base.new_tensor([_radius(value, region) for value in distinct.tolist()])[index].unsqueeze(-1)
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
    success: SuccessModel,
    weights: Tensor,
    base: Tensor,
    lower: Tensor,
    upper: Tensor,
    level: float | Tensor,
    reference: Tensor,
) -> Projected:
    normals, offsets = _faces(success, base, level)
    projected = project(reference, weights, normals, offsets, box=(lower, upper))
    return Projected(torch.minimum(torch.maximum(projected.points, lower), upper), projected.feasible)
