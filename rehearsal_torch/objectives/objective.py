"""Objectives: the value of an action in a given decision context.

Given a surrogate and a case, an objective maps candidate actions to values. Searches depend on it alone.

An `AlterationObjective` is the value of altering one set of k variables, in B cases that are decided in one
batch: it maps actions (..., B, k) to values (..., B). A task that leaves open which variables to alter has
several sets with one objective each (`Candidates`).

Variables may have levels, the only values that they may be set to; of the indicators of a variable of classes
at most one is 1 (`codings.one_hot_actions`). Where all variables of a set have levels, every combination is
evaluated in one batch, and each case keeps the one with the largest `level_value` that the objective accepts
(or the largest, if it accepts none): a box that is this point. Else, and where a search does not look for the
largest value (`enumerable` is false), there is one box for every combination, and searches take the best box,
as they take the best set. So every search returns a level, and its objective appraises that level.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 4.2 (candidate alterations).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.codings.decision_texts import worded
from rehearsal_torch.data.codings.one_hot_actions import by_variable, combinations
from rehearsal_torch.data.decision import CHANCE, DIFFERENCE, Decision, Estimate, RehearsalCase
from rehearsal_torch.data.estimate import beside, copied
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.mean_gain import GainDraws
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.data.rehearsal_task import SEARCHES, RehearsalTask
from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.graphs.separation import reaches
from rehearsal_torch.objectives.net_value import Charge
from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

AT_ONCE = 64  # Actions that are evaluated in one batch


class Objective(ABC):
    """A function of k action coordinates, to be maximised; it has no parameters and is not trained.

    Attributes:
        kind: The kind of problem whose actions it evaluates (`Problem.kind`); None for any.
        takes: The classes of surrogates that it evaluates them under; empty for any.
    """

    kind: Kind | None = None
    takes: ClassVar[tuple[type[Surrogate], ...]] = ()

    @classmethod  # noqa: B027  accepts all by default
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """A ValueError for settings that do not fit a surrogate, before it is fitted; none by default."""

    @classmethod
    def for_cases(cls, surrogate: Any, cases: Sequence[Any], **settings: Any) -> Any:
        """The objective, or `Candidates`, of a batch of cases, with its other arguments as settings."""
        if len(cases) != 1:
            raise ValueError(
                f"{cls.__name__} is the objective of one case; got {len(cases)}: choose a search that "
                "decides for one case at a time"
            )
        make: Any = cls
        return make(surrogate, cases[0], **settings)

    @abstractmethod
    def __call__(self, actions: Tensor) -> Tensor:
        """The value of actions, (..., k) -> (...)."""

    @abstractmethod
    def starts(self, count: int) -> Tensor:
        """At most `count` promising candidates from which a search may start, (<= count, k)."""


T = TypeVar("T")


class Each(Sequence[T]):
    """A lazy sequence: each of `count` items is made by `make(index)` when it is first read."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._made: list[T | None] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[index] for index in range(len(self))[place]]
        if self._made[place] is None:
            self._made[place] = self._make(place)
        return self._made[place]


@dataclass(frozen=True)
class Appraisal:
    """A method's assessment of one action in one case."""

    estimate: Estimate | None  # The probability of desired outcomes; None if the method has no estimate
    baseline: Estimate | None  # The same without an alteration
    findings: tuple[Finding, ...] = ()  # What the user must know before acting
    refused: Finding | None = None  # Why the method cannot assess it; None if it can
    declined: Finding | None = None  # Why no action is better by the method's own rule; None if it is not
    trace: dict[str, Any] = field(default_factory=dict)  # Further trace entries (plain numbers and texts)
    draws: int | None = None  # How many independent draws the estimate is a share of, if it is one
    unsupported: Finding | None = None  # Why it may not be recommended although it can be assessed
    gain: Estimate | None = None  # The estimate minus the baseline, with an interval of its own
    gain_draws: GainDraws | None = None


def chance(
    point: float, lower: float | None = None, upper: float | None = None, level: float = 0.95
) -> Estimate | None:
    """A probability with its interval, if both ends are finite; None if the point is not."""
    if not math.isfinite(point):
        return None
    if lower is None or upper is None or not math.isfinite(lower - upper):
        return copied(_POINT, point=point)
    return copied(_INTERVAL, point=point, lower=min(lower, point), upper=max(upper, point), level=level)


# Templates that `chance` copies with other finite numbers.
_POINT, _INTERVAL = Estimate(0.5, CHANCE), Estimate(0.5, CHANCE, 0.5, 0.5, 0.95)


def difference(point: float, lower: float, upper: float, level: float) -> Estimate | None:
    """A difference of probabilities with its interval, within [-1, 1]; None if a number is not finite."""
    if not all(map(math.isfinite, (point, lower, upper))):
        return None
    point, least, most = (round(number, 6) for number in (point, max(lower, -1.0), min(upper, 1.0)))
    return Estimate(point, DIFFERENCE, min(least, point), max(most, point), level)


def normal_quantile(level: float) -> float:
    """z, half the central interval of the standard normal that holds a level in (0, 1), else a ValueError."""
    if not 0 < level < 1:
        raise ValueError(f"expected a level in (0, 1); got {level}: 0.95 asks for an interval of 95 %")
    return 1.959964 if level == 0.95 else NormalDist().inv_cdf((1 + level) / 2)


def gradient(values: Tensor, at: Tensor) -> Tensor:
    """The gradient of the sum of the values at actions; zero if the values do not depend on them at all."""
    if not values.requires_grad:
        return torch.zeros_like(at)
    (gradients,) = torch.autograd.grad(values.sum(), at)
    return gradients


def no_improvement(estimated: float, baseline: float) -> Finding:
    """The finding if no alteration improves on the baseline."""
    return Finding("no_gain", f"no alteration helps: {estimated:.3f} at best, {baseline:.3f} without one")


def worse_than_nothing(estimated: float, baseline: float) -> Finding:
    """The finding if the whole interval of an alteration lies below the baseline."""
    return Finding("no_gain", f"predicted worse than doing nothing ({beside(estimated, baseline)})")


def appraised(
    level: float, estimated: float, baseline: float, lower: float | None, upper: float | None, **more: Any
) -> Appraisal:
    """The appraisal by a probability and its interval, declined if the baseline is higher."""
    declined = no_improvement(estimated, baseline) if estimated < baseline else None
    return Appraisal(chance(estimated, lower, upper, level), chance(baseline), declined=declined, **more)


class AlterationObjective(Objective, ABC):
    """The value of altering some variables in B cases; a ValueError if one may not be set, or levels differ.

    Attributes:
        lower: Lower bounds of the actions in their units, (B, k), on that device.
        upper: Upper bounds, likewise.
        levels: The levels of those of the variables that have some, the same in all cases.
        fixed: Values at which variables with levels are held (see `boxes`).
        held: Variables that are held at the present values of each case (`Candidates.sets`).
        enumerable: Whether a set whose variables all have levels is decided by the largest `level_value`.
        of_success: Whether values follow from probabilities of success (`probability`), so that costs count.
        pools: Whether its estimates can be pooled over imputed tables (`objectives.imputation_success`).
        ranks_acceptable: Whether `sought` is higher for acceptable actions than for others.
        level: Coverage probability of its intervals, in (0, 1); None if it has none.
    """

    kind: Kind | None = "rehearse"
    enumerable: bool = True
    of_success: ClassVar[bool] = False
    pools: ClassVar[bool] = False
    ranks_acceptable: bool = False
    level: float | None = None

    def __init__(
        self, cases: Sequence[RehearsalCase], names: Sequence[str], device: torch.device | None = None
    ) -> None:
        self.cases, self.names = tuple(cases), tuple(names)
        distinct = list({id(case.feasible): case for case in self.cases}.values())
        for case in distinct:
            unsettable = [name for name in self.names if name not in case.feasible]
            if unsettable:
                raise ValueError(
                    f"{case.identity}: {unsettable} may not be set; feasible are {list(case.feasible)}"
                )
        owners = distinct if len(distinct) == 1 else self.cases
        bounds = [[[case.feasible[name][side] for name in self.names] for case in owners] for side in (0, 1)]
        limits = torch.tensor(bounds, dtype=torch.float64, device=device)
        size = len(self.cases), len(self.names)
        self.lower, self.upper = limits.reshape(2, len(owners), size[1]).expand(2, *size).contiguous()
        self.levels: Mapping[str, tuple[float, ...]] = {}
        self.fixed: Mapping[str, float] = {}
        self.held: tuple[str, ...] = ()
        for number, case in enumerate({id(case.levels): case for case in self.cases}.values()):
            allowed = {name: case.levels[name] for name in self.names if name in case.levels}
            if number and allowed != self.levels:
                raise ValueError(
                    f"{case.identity}: the levels {allowed} differ from those of {self.cases[0].identity}, "
                    f"{self.levels}: decide for cases with other levels one by one"
                )
            self.levels = allowed

    @classmethod
    def for_cases(cls, surrogate: Any, cases: Sequence[Any], **settings: Any) -> "Candidates[Self]":
        """One objective for each candidate set, over the B cases, with the settings of `for_sets`."""
        return Candidates(cases, cls.for_sets(surrogate, cases, **settings), surrogate)

    @classmethod
    def for_sets(
        cls, surrogate: Any, cases: Sequence[RehearsalCase], *given: Any, **settings: Any
    ) -> list[Self]:
        """One objective for each candidate set of the surrogate's task, in order; subclasses whose sets share
        work do it once here. The arguments besides surrogate and cases are the settings in a configuration.
        """
        make: Callable[..., Self] = cls
        return [make(surrogate, cases, names, *given, **settings) for names in surrogate.task.candidates]

    def starts(self, count: int) -> Tensor:
        """The centre of the box, then Sobol points, (count, B, k)."""
        unit = sobol(len(self.names)).draw(count, dtype=torch.float64).to(self.lower)
        unit[0] = 0.5
        return self.lower + unit.unsqueeze(1) * (self.upper - self.lower)

    def with_alterations(self, alterations: Mapping[int, Alteration | None]) -> Tensor:
        """Actions (B, k): the given alterations of its variables in some cases, anything in the others."""
        start = self.starts(1)[0].to(torch.float64)
        actions = start.expand(len(self.cases), len(self.names)).clone()
        for index, alteration in alterations.items():
            assert alteration is not None
            actions[index] = alteration.values.to(actions)
        return actions

    def project(self, actions: Tensor) -> Tensor:
        """The nearest feasible actions, (..., B, k) -> (..., B, k)."""
        return torch.minimum(torch.maximum(actions, self.lower.to(actions)), self.upper.to(actions))

    def within(self, lower: Tensor, upper: Tensor, fixed: Mapping[str, float]) -> Self:
        """The same objective with narrower bounds, (B, k) each, and variables held at `fixed` values."""
        return self.changed(lower=lower.to(self.lower), upper=upper.to(self.upper), levels={}, fixed=fixed)

    def parts(self, task: RehearsalTask | None) -> Iterator[Self]:
        """The objective, or, of a set that only holds present values, one for each set that it joins."""
        if task is None or self.held or self.names not in task.holding:
            yield self
            return
        for names in task.offered:
            held = tuple(name for name in self.names if name not in names)
            joined = {*names} < {*self.names} and {*held} <= {*task.left_alone(names, held)}
            if joined and any(all(map(case.holds, held)) for case in self.cases):
                yield self._holding(held)

    def _holding(self, held: Sequence[str]) -> Self:
        """The same with variables held at their present values, in cases that may be set to them."""
        lower, upper = self.lower.clone(), self.upper.clone()
        columns = [self.names.index(name) for name in held]
        for index, case in enumerate(self.cases):
            if all(map(case.holds, held)):
                at = lower.new_tensor([case.present[name] for name in held])
                lower[index, columns] = upper[index, columns] = at
        levels = self.levels
        if len(levels) < len(self.names):
            levels = {name: values for name, values in levels.items() if name not in held}
        return self.changed(lower=lower, upper=upper, levels=levels, held=tuple(held))

    def changed(self, **attributes: Any) -> Self:
        """A copy with other attributes."""
        duplicate = copy(self)
        vars(duplicate).update(attributes)
        return duplicate

    def label(self) -> str:
        """The altered variables, with the values of those that are held, as text."""
        labels, codings = list[str](), self.cases[0].codings
        for columns in by_variable(self.names, codings):
            levels = {name: self.fixed[name] for name in columns if name in self.fixed}
            texts = worded(levels, {coding.name: coding for coding in codings})
            labels += [
                f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}"
                for name, value in texts.items()
            ] or columns
        return "+".join(labels)

    def level_value(self, actions: Tensor) -> Tensor:
        """The value by which combinations of levels are compared; by default the comparison value."""
        return self.comparison_value(actions)

    def comparison_value(self, actions: Tensor) -> Tensor:
        """The value by which a search finally compares actions; by default the objective itself."""
        return self(actions)

    def probability(self, actions: Tensor) -> Tensor:
        """P(desired) to weigh against costs, (..., B, k) -> (..., B): the comparison value by default."""
        return self.comparison_value(actions)

    def compared_probability(self, actions: Tensor) -> Tensor:
        """The same, by which the best actions of sets are compared, (B, k) -> (B,); from draws of its own."""
        return self.probability(actions)

    @cached_property
    def charge(self) -> Charge | None:
        """Costs in units of a desired outcome's worth, if they count; a ValueError if not `of_success`."""
        charge = Charge.of(self.cases, self.names)
        if charge is not None and not self.of_success:
            raise ValueError(
                f"costs are weighed against the probability of a desired outcome; {type(self).__name__} is "
                "another value: leave worth out, so that costs are told and do not count"
            )
        return charge

    def sought(self, actions: Tensor) -> Tensor:
        """The maximised value, (..., B, k) -> (..., B): the objective itself; P - c / v if costs count."""
        return self._net(self, actions)

    def sought_at_last(self, actions: Tensor) -> Tensor:
        """The value by which the best actions are finally compared, likewise."""
        return self._net(self.comparison_value, actions)

    def _net(self, free: Callable[[Tensor], Tensor], actions: Tensor) -> Tensor:
        """P - c / v where costs count, else the `free` value."""
        charge = self.charge
        if charge is None:
            return free(actions)
        net = self.probability(actions) - charge(actions)
        counts = charge.counts.to(net.device)
        return net if bool(counts.all()) else torch.where(counts, net, free(actions))

    def at_level(self, level: float) -> Self | None:
        """The same with intervals of another level, in (0, 1) or a ValueError; None if it has none."""
        normal_quantile(level)
        return None if self.level is None else self.changed(level=level)

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:  # noqa: ARG002
        """Differences of two actions, (B, k) each, with intervals in which shared errors cancel; or None."""
        return None

    def contrast_draws(self, first: Tensor, second: Tensor) -> list[GainDraws] | None:  # noqa: ARG002
        """The same as draws that cases have in common; None by default."""
        return None

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether actions may be recommended at all, (..., B, k) -> (..., B) bool."""
        return torch.ones(actions.shape[:-1], dtype=torch.bool, device=actions.device)

    def frame(self) -> tuple[Tensor, Tensor]:
        """Location and scale > 0, (k,), of an ascent's coordinates z = (a - location) / scale."""
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
        """The same at points (..., B, k) in the coordinates of `frame`, in the points' precision."""
        location, scale = self.frame()
        values, gradients = self.value_and_gradient(location + scale * points.to(location))
        return values.to(points), (gradients * scale).to(points)

    def sought_with_gradient_in_frame(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Values and gradients of `sought`, likewise."""
        if self.charge is None:
            return self.value_and_gradient_in_frame(points)
        location, scale = self.frame()
        with torch.enable_grad():
            at = points.detach().requires_grad_(True)
            values = self.sought(location + scale * at.to(location)).to(at)
            gradients = gradient(values, at)
        counts = self.charge.counts.to(values.device)
        if bool(counts.all()):
            return values.detach(), gradients
        free_values, free_gradients = self.value_and_gradient_in_frame(points)
        values = torch.where(counts, values.detach(), free_values)
        return values, torch.where(counts.unsqueeze(-1), gradients, free_gradients)

    def boxes(self) -> Iterator[Self]:
        """The boxes that are searched for a set with levels, at most `SEARCHES`, else a ValueError."""
        if not self.levels:
            yield self
            return
        if self.enumerable and len(self.levels) == len(self.names):
            best = self.highest(self.every_combination())
            yield self.within(best, best, {})
            return
        count = len(combinations(self.levels, self.cases[0].codings))
        if count > SEARCHES:
            raise ValueError(
                f"{', '.join(self.names)}: {count} combinations of values; {type(self).__name__} is searched "
                f"for each by itself, at most {SEARCHES}: offer fewer values, or use a method that maximises "
                "the probability of success, such as decision=cme"
            )
        columns = [self.names.index(name) for name in self.levels]
        for combination in combinations(self.levels, self.cases[0].codings):
            lower, upper = self.lower.clone(), self.upper.clone()
            levels = self.lower.new_tensor(combination).expand(len(self.cases), -1)
            # Beyond the bounds of a case, the nearest ones within them.
            levels = torch.minimum(torch.maximum(levels, self.lower[:, columns]), self.upper[:, columns])
            lower[:, columns] = upper[:, columns] = levels
            yield self.within(lower, upper, dict(zip(self.levels, combination, strict=True)))

    def every_combination(self) -> Tensor:
        """All combinations of the levels of a set whose variables all have some, (c, k)."""
        names = list(self.levels)
        order = [names.index(name) for name in self.names]
        return self.lower.new_tensor(combinations(self.levels, self.cases[0].codings))[:, order]

    @torch.no_grad()
    def highest(self, actions: Tensor) -> Tensor:
        """The actions with the largest `level_value`, or net value where costs count, that are acceptable in
        each case, or the best if none is, (c, k) -> (B, k); the first one among equals.
        """
        cases = torch.arange(len(self.cases), device=actions.device)
        # A combination beyond the bounds of a case stands for the nearest one within them.
        actions = self.project(actions.unsqueeze(1).expand(-1, len(cases), -1))
        values = torch.cat([ranked(self._net(self.level_value, block)) for block in actions.split(AT_ONCE)])
        order = values.argsort(dim=0, descending=True, stable=True)
        best = actions[order[0], cases]
        decided = torch.zeros(order.shape[1], dtype=torch.bool, device=order.device)
        # From the best down, as acceptance may cost more than a value.
        for indices in order.split(AT_ONCE):
            candidates = actions[indices, cases]
            accepted = self.acceptable(candidates).to(decided.device)
            index = accepted.to(torch.long).argmax(0)
            newly_decided = accepted.any(0) & ~decided
            first_accepted = candidates[index, cases]
            best = torch.where(newly_decided.unsqueeze(-1), first_accepted, best)
            decided = decided | newly_decided
            if bool(decided.all()):
                break
        return best

    @abstractmethod
    def appraise(self, actions: Tensor) -> Sequence[Appraisal]:
        """The assessment of the action of each case, (B, k) -> B appraisals."""


T_co = TypeVar("T_co", bound=AlterationObjective, covariant=True)


class Candidates(Generic[T_co]):
    """One objective for each candidate set of variables, over B cases: `whole`, as given. Their values are
    comparable, and a search returns the best set for each case. The surrogate's graphs and observations
    determine which answers are refused or carry a warning; None skips these checks.
    """

    kind: Kind | None = "rehearse"

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        sets: Sequence[T_co],
        surrogate: RehearsalSurrogate | None = None,
    ) -> None:
        self.cases, self.surrogate = tuple(cases), surrogate
        self.whole: tuple[T_co, ...] = tuple(sets)

    @cached_property
    def sets(self) -> tuple[T_co, ...]:
        """The objectives that searches maximise: the `AlterationObjective.boxes` of those given, of which
        sets that hold present values (`RehearsalTask.holding`) are searched once for each set that they join
        with what it leaves alone, if a case may be held there.
        """
        task = None if self.surrogate is None else self.surrogate.task
        parts = (part for objective in self.whole for part in objective.parts(task))
        return tuple(box for part in parts for box in part.boxes())

    def linked(self, names: tuple[str, ...]) -> bool:
        """Whether setting variables can change an outcome by one of the surrogate's graphs, if known."""
        surrogate = self.surrogate
        return (
            surrogate is None
            or not set(names) <= set(surrogate.task.graph.names)
            or reaches(surrogate.overlap.graphs, names, surrogate.task.outcomes)
        )

    def no_path(self, names: tuple[str, ...]) -> Finding:
        """The finding for variables without a directed path to an outcome."""
        assert self.surrogate is not None
        task = self.surrogate.task
        variables = ", ".join(task.variables(names))
        return Finding(
            "no_path",
            f"the graph has no directed path from {variables} to {', '.join(task.outcomes)}: setting "
            f"{variables} changes no outcome; add the missing edge to the graph, or remove it from the "
            "variables that may be set",
        )

    def appraisals(self, decisions: Sequence[Decision]) -> list[Appraisal | None]:
        """The appraisal of each decision by the objective of its variables; None if it alters nothing."""
        appraisals: list[Appraisal | None] = [None] * len(decisions)
        for objective in self.whole:
            alterations = {
                index: decision.alteration
                for index, decision in enumerate(decisions)
                if decision.alteration is not None and decision.alteration.names == objective.names
            }
            if alterations:
                batch = objective.appraise(objective.with_alterations(alterations))
                for index in alterations:
                    appraisals[index] = batch[index]
        return appraisals


def class_of(objective: Callable[..., Any]) -> type[Objective] | None:
    """The class of the objectives that a factory builds, a class or a partial of one; None for a function."""
    target = objective.func if isinstance(objective, partial) else objective
    return target if isinstance(target, type) and issubclass(target, Objective) else None


def settings_of(objective: Callable[..., Any]) -> dict[str, Any]:
    """The settings with which a factory builds objectives: the keyword arguments of a partial."""
    return dict(objective.keywords) if isinstance(objective, partial) else {}


def objective_for(
    objective: Callable[..., Any], surrogate: Surrogate, cases: Sequence[Any], *, batch: bool = True
) -> Any:
    """The objective for some cases of a class, a partial, or a function of (surrogate, cases or case)."""
    objective_class = class_of(objective)
    if objective_class is not None:
        return objective_class.for_cases(surrogate, cases, **settings_of(objective))
    return objective(surrogate, cases if batch else cases[0])
