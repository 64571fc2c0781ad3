"""Base classes of searches, their time budgets, the choice among candidate sets, and the no-action baseline.

Given an objective, a search returns a decision; it knows nothing of surrogates or data sets.

A `BatchSearch` decides for many cases at once: starts and cases share one tensor, and the decision for a case
does not depend on the cases in the same batch (up to the last bits of floating-point sums).

Every search takes `budget_s` and checks one `Budget` between its steps, which each search documents. Once the
time is up, it returns the best action found so far. The first step is always completed, so that there is an
answer; cases that are decided together share a budget.

Source: Du et al. (2026), Alg. 1 (phase 3), batched over contexts; algorithms with a valid answer at any time
are anytime algorithms (Dean and Boddy, 1988).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar, get_args, get_origin

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.estimate import Estimate, copied
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Candidates,
    Objective,
    class_of,
    settings_of,
)
from rehearsal_torch.search.cost_kinks import settled
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.surrogate import Surrogate


class Remaining(float):
    """The seconds left of a budget, for a search inside another; `whole` is the full budget."""

    whole: float


class Budget:
    """The time budget of one call, in seconds from construction on or None, and whether it `ran_out`."""

    def __init__(self, limit_s: float | None = None) -> None:
        self.limit_s, self.ran_out, self._began = limit_s, False, perf_counter()

    def spent(self) -> float:
        """Seconds since construction."""
        return perf_counter() - self._began

    def left(self) -> float:
        """Remaining seconds, at least 0; infinite without a limit."""
        return math.inf if self.limit_s is None else max(0.0, self.limit_s - self.spent())

    def remaining(self) -> Remaining:
        """The same for a search inside this one."""
        seconds = Remaining(self.left())
        seconds.whole = math.inf if self.limit_s is None else self.limit_s
        return seconds

    def out(self) -> bool:
        """Whether the time is up; to be called only while work remains, since it sets `ran_out`."""
        self.ran_out = self.ran_out or self.left() == 0
        return self.ran_out

    def reason(self) -> str:
        """A sentence that says that the budget ended the search."""
        return f"stopped after budget_s={self._full_limit_s():g}"

    def _full_limit_s(self) -> float | None:
        """The seconds of the outermost search."""
        return self.limit_s.whole if isinstance(self.limit_s, Remaining) else self.limit_s

    def facts(self, gap: float | None = None) -> dict[str, Any]:
        """Trace entries if the budget ended a search: ``stopped``, ``gap`` to the optimum, ``limit_s``."""
        return ended(self.reason(), gap) | {"limit_s": self._full_limit_s()} if self.ran_out else {}


def ended(reason: str, gap: float | None) -> dict[str, Any]:
    """Trace entries of a search that was ended early; see `Budget.facts`."""
    return {"stopped": reason if gap is not None else f"{reason}; no gap is known", "gap": gap}


UNLIMITED = Budget()


def checked_budget(budget_s: float | None) -> float | None:
    """The limit, None or a positive number, else a ValueError."""
    numeric = isinstance(budget_s, int | float) and not isinstance(budget_s, bool)
    if budget_s is not None and not (numeric and budget_s > 0):
        raise ValueError(
            f"expected a budget_s above 0, or None for no limit; got {budget_s}: it is the number of seconds "
            "after which a search returns the best action found so far"
        )
    return budget_s


Sought = TypeVar("Sought", bound=Objective | Candidates[Any], contravariant=True)
Candidate = TypeVar("Candidate")


class Search(ABC, Generic[Sought]):
    """Maximises an objective; settings out of range raise a ValueError that says what was expected.

    Attributes:
        kind: The kind of problem (`Problem.kind`) of its objectives, by default of `maximises`; None for any.
        declines: Whether the search may decline to act where its own estimate is against acting
            (`claims.abstention_rules`); if False, the decision carries a finding instead. Random baselines,
            presets that reproduce a publication and methods that learn online set it to False.
        weighs: Whether it maximises the probability of a desired outcome, which costs can be weighed against.
        pools: Whether it can decide by estimates that are pooled over imputed tables.
        draws: Whether it, or what it maximises, may draw from the global random states.
        budget_s: Seconds after which a call returns the best action so far (`Budget`); None for no limit.
    """

    kind: Kind | None = None
    declines: bool = True
    weighs: bool = True
    pools: bool = False
    draws: bool = True
    budget_s: float | None = None

    def __init__(self, budget_s: float | None = None) -> None:
        self.budget_s = checked_budget(budget_s)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        sought = cls.maximises()
        if sought is not None and "kind" not in vars(cls):
            cls.kind = sought.kind

    def check_sizes(
        self, *names: str, fits: bool = True, expected: str = "positive numbers", **others: object
    ) -> None:
        """A ValueError for settings that are not positive or do not fit together, and for such a budget."""
        sizes = {name: getattr(self, name) for name in names}
        require(min(sizes.values()) > 0 and fits, expected, **sizes, **others)
        checked_budget(self.budget_s)

    def check(self, surrogate: Surrogate, **settings: Any) -> None:
        """A ValueError, before fitting, for objectives that it cannot maximise; by default none."""

    @classmethod
    def maximises(cls) -> type[Objective] | None:
        """The objectives that its base class declares, as ``BatchSearch[Candidates[GaussianSuccess]]``."""
        bases = [base for owner in cls.__mro__ for base in owner.__dict__.get("__orig_bases__", ())]
        for sought in [argument for base in bases for argument in get_args(base)]:
            candidate = get_args(sought)[0] if get_origin(sought) is Candidates else sought
            if isinstance(candidate, type) and issubclass(candidate, Objective):
                return candidate
        return None

    @abstractmethod
    def __call__(self, objective: Sought) -> Decision:
        """Returns the best action found, with a trace of the search."""


class BatchSearch(Search[Sought]):
    """A search for B cases at once.

    Attributes:
        batch_size: Maximum number of cases per call.
    """

    batch_size: int = 256

    @abstractmethod
    def batch_search(self, objective: Sought) -> list[Decision]:
        """Returns one decision for each case of the objective, in order."""

    def __call__(self, objective: Sought) -> Decision:
        """Returns the decision for an objective with a single case."""
        (decision,) = self.batch_search(objective)
        return decision


def chosen(
    objective: Candidates[AlterationObjective],
    actions: Sequence[Tensor],
    values: Tensor,
    name: str,
    budget: Budget,
    facts: Sequence[dict[str, Any]] | None = None,
    declines: bool = True,
    accepted: Tensor | None = None,
) -> list[Decision]:
    """Selects the best candidate set for each case; where costs count, by the net values of actions after
    `search.cost_kinks`.

    Args:
        actions: The best actions of each set, (B, k) each; of the first sets only if the time ran out.
        values: Their values, (sets, B); the largest wins, the first one among equals, without dominated sets
            (`better_judged`). A case is refused if none of its values is finite.
        facts: Further trace entries of each case; a finding under ``refused`` withdraws the recommendation.
        accepted: Which actions the objective accepts, (sets, B) bool: these come first; None for all.

    Returns B decisions. Trace: ``search``, the name; ``altered``; the entries of the objective and of a
    budget that ended the search; `facts`.
    """
    all_sets = objective.sets
    actions, values, accepted = _settle_costs(all_sets, actions, values, accepted, budget)
    sets = all_sets[: len(actions)]
    any_linked = any(objective.linked(candidate.names) for candidate in all_sets)
    linked = [objective.linked(candidate.names) for candidate in sets]
    values = ranked(values)
    if declines and any(linked):
        values = values.masked_fill(~torch.tensor(linked, device=values.device).unsqueeze(-1), -math.inf)
    values = values.masked_fill(better_judged(objective, sets).to(values.device), -math.inf)
    if accepted is not None:
        accepted = accepted.to(values.device) & values.isfinite()
        values = values.masked_fill(accepted.any(0) & ~accepted, -math.inf)
    winner_index = values.argmax(0)
    winners, best_values = winner_index.tolist(), values.gather(0, winner_index.unsqueeze(0))[0].tolist()
    # Only sets that some case has chosen: an appraisal may cost as much as the search.
    appraisals = {winner: sets[winner].appraise(actions[winner]) for winner in sorted(set(winners))}
    settings = {
        winner: _settings(sets[winner], actions[winner], (winner_index == winner).cpu())
        for winner in appraisals
    }
    names = {winner: Alteration(sets[winner].names, actions[winner][0]) for winner in appraisals}
    template = Decision(None, 0.0, seconds=budget.spent() / max(len(objective.cases), 1))
    ending = budget.facts()
    decisions = []
    for index, winner in enumerate(winners):
        value, appraisal = best_values[index], appraisals[winner][index]
        action, finite = next(settings[winner])
        extra = facts[index] if facts else {}
        trace = {"search": name, "altered": list(sets[winner].names), **appraisal.trace, **extra, **ending}
        refused: Finding | None = trace.pop("refused", None) or appraisal.refused or appraisal.unsupported
        if value == -math.inf and refused is None:
            scope = " among those evaluated before the budget was spent" if budget.ran_out else ""
            refused = Finding("unqualified", f"no candidate alteration qualifies{scope}")
        if not finite:
            refused = refused or Finding("invalid", "the search found no finite alteration")
            action = torch.zeros_like(action)
        note = str(trace.pop("note", ""))
        # Copies need no validation: names and values fit, and are finite.
        decision = template.changed(
            alteration=copied(names[winner], values=action),
            value=value,
            estimate=appraisal.estimate,
            baseline=appraisal.baseline,
            gain=appraisal.gain,
            draws=appraisal.gain_draws,
            findings=tuple(appraisal.findings),
            reason=Finding("note", note) if note else None,
            trace=trace,
        )
        if declines and not any_linked:
            refused = objective.no_path(task_actions(objective))
        # With present values, the rules compare with these, not with usual values.
        declined = None if objective.cases[index].kept(sets[winner].names) else appraisal.declined
        if objection := refused or declined:
            decision = decision.withdrawn(objection)
        decisions.append(decision)
    return decisions


def _settle_costs(
    sets: Sequence[AlterationObjective],
    actions: Sequence[Tensor],
    values: Tensor,
    accepted: Tensor | None,
    budget: Budget,
) -> tuple[Sequence[Tensor], Tensor, Tensor | None]:
    """Actions, values and acceptance for `chosen`, settled in the cases in which costs count."""
    charges = [candidate.charge for candidate in sets[: len(actions)]]
    if not any(charges):
        return actions, values, accepted
    best, net_values = list(actions), list(values)
    allowed = list(torch.ones_like(values, dtype=torch.bool) if accepted is None else accepted)
    for row, (candidate, charge) in enumerate(zip(sets, charges, strict=False)):
        if charge is None:
            continue
        points, net = settled(candidate, charge, best[row], budget.out)
        counts = charge.counts.to(points.device)
        best[row] = torch.where(counts.unsqueeze(-1), points, best[row].to(points))
        net_values[row] = torch.where(counts, net, net_values[row].to(net))
        allowed[row] = torch.where(counts, candidate.acceptable(points).to(counts), allowed[row].to(counts))
    return best, torch.stack(net_values), torch.stack(allowed)


def better_judged(objective: Candidates[AlterationObjective], sets: Sequence[AlterationObjective]) -> Tensor:
    """Sets that another dominates, as it also holds what they leave at present values, and those that would
    hold what a case does not state, (sets, B) bool.
    """
    groups = {frozenset(candidate.names) for candidate in sets}
    worse = torch.zeros(len(sets), len(objective.cases), dtype=torch.bool)
    stated = [(index, case) for index, case in enumerate(objective.cases) if case.present]
    if objective.surrogate is None:
        return worse
    for row, candidate in enumerate(sets):
        if candidate.held:
            worse[row] = torch.tensor([not all(map(case.holds, candidate.held)) for case in objective.cases])
            continue
        for index, case in stated:
            unset = objective.surrogate.task.left_alone(candidate.names, case.present)
            union = frozenset((*candidate.names, *unset))
            worse[row, index] = bool(unset) and union in groups and all(map(case.holds, unset))
    return worse


def _settings(candidate: AlterationObjective, actions: Tensor, mask: Tensor) -> Iterator[tuple[Tensor, bool]]:
    """The values (k,) of each `chosen` case, and whether they are finite, from actions (B, k)."""
    values = actions.detach().to("cpu", torch.float64)[mask]
    if exact := {*candidate.fixed, *candidate.held}:
        # Exactly, without rounding: the values at which the bounds of each case meet.
        columns = [index for index, name in enumerate(candidate.names) if name in exact]
        values[:, columns] = candidate.lower.to(values.device)[mask.to(values.device)][:, columns]
    return zip(values.unbind(0), values.isfinite().all(-1).tolist(), strict=True)


def in_time(sets: Sequence[Candidate], budget: Budget) -> Iterator[Candidate]:
    """Yields candidate sets in order until the budget is spent; always yields the first one."""
    for index, candidate in enumerate(sets):
        if index and budget.out():
            return
        yield candidate


def check_worth(objective: Callable[..., Any], search: Search[Any], name: str = "this method") -> None:
    """A ValueError if a method does not maximise the probability of a desired outcome."""
    if isinstance(search, NoAction):
        return
    # The objective of several models has that of one of them among its settings.
    target = class_of(settings_of(objective).get("member", objective))
    if target is not None and issubclass(target, AlterationObjective) and target.of_success and search.weighs:
        return
    label = "an objective of its own" if target is None else target.__name__
    raise ValueError(
        "worth is weighed against costs by methods that maximise the probability of a desired outcome; "
        f"{name} ({label} with {type(search).__name__}) looks for something else: leave worth out, so that "
        "costs are told and do not count, or choose another method, such as outcome_regression, cme or "
        "care"
    )


def task_actions(objective: Candidates[AlterationObjective]) -> tuple[str, ...]:
    """All variables of the candidate sets."""
    return tuple(dict.fromkeys(name for candidate in objective.sets for name in candidate.names))


class NoAction(BatchSearch[Candidates[AlterationObjective]]):
    """Never acts: the baseline of all other methods; `budget_s` has no effect."""

    pools = True

    def batch_search(self, objective: Candidates[AlterationObjective]) -> list[Decision]:
        """Returns a no-action decision for each case, with the model's baseline."""
        budget, reason = Budget(self.budget_s), Finding("never_acts", "this method never acts")
        traces: list[dict[str, Any]] = [{"search": "none", "altered": []} for _ in objective.cases]
        baselines: list[Estimate | None] = [None] * len(traces)
        for candidate in objective.whole[:1]:
            baselines = [appraisal.baseline for appraisal in candidate.appraise(candidate.starts(1)[0])]
        seconds = budget.spent() / max(len(traces), 1)
        return [
            Decision(None, 0.0, baseline=baseline, reason=reason, trace=trace, seconds=seconds)
            for baseline, trace in zip(baselines, traces, strict=True)
        ]
