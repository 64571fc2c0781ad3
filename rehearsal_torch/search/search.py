"""Base classes of searches, their time budgets, the choice among candidate sets, and the no-action baseline.

Given an objective, a search returns a decision; it knows nothing of surrogates or data sets.

A `BatchSearch` answers for many cases at once: starts and cases share one tensor, and the answer for a case
does not depend on the cases in the same batch (up to the last bits of floating-point sums).

Every search takes `budget_s` and asks one `Budget` between its steps whether the time is up. If so, it
returns the best action found so far, so that a call never lasts longer than the budget and one step. Each
search documents what its step is. The first step is always completed, so that there is an answer; cases that
are decided together share a budget.

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

from rehearsal_torch.data.decision import Decision, RehearsalCase
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
    """The seconds left of a budget, for a search inside another; `whole` is what was asked for."""

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
        return f"stopped after budget_s={self._asked():g}"

    def _asked(self) -> float | None:
        """The seconds that were asked for, of the whole search."""
        return self.limit_s.whole if isinstance(self.limit_s, Remaining) else self.limit_s

    def facts(self, gap: float | None = None) -> dict[str, Any]:
        """Trace entries of a search that the budget ended; empty otherwise: ``stopped``, a sentence, ``gap``,
        how far the optimum may lie above the answer (None if not known), and the budget, ``limit_s``.
        """
        return ended(self.reason(), gap) | {"limit_s": self._asked()} if self.ran_out else {}


def ended(reason: str, gap: float | None) -> dict[str, Any]:
    """Trace entries of a search that was ended early; see `Budget.facts`."""
    return {"stopped": reason if gap is not None else f"{reason}; no gap is known", "gap": gap}


UNLIMITED = Budget()


def checked_budget(budget_s: float | None) -> float | None:
    """Returns the limit if it is valid: None or a positive number, else a ValueError."""
    number = isinstance(budget_s, int | float) and not isinstance(budget_s, bool)
    if budget_s is not None and not (number and budget_s > 0):
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
        kind: The kind of problem whose objectives it maximises (`Problem.kind`), that of `maximises` unless a
            class says otherwise; None for any.
        declines: Whether the search may decline to act where its own estimate is against acting
            (`claims.abstention_rules`); if False, the decision carries a finding instead. Random baselines,
            presets that reproduce a publication and methods that learn online set it to False.
        weighs: Whether it looks for the largest probability of a desired outcome, so that it can be weighed
            against costs (`objectives.net_value`).
        pools: Whether it can decide by estimates that are pooled over imputed tables.
        draws: Whether it, or what it maximises, may draw from the global random states.
        budget_s: Time limit of a call in seconds, after which the best action found so far is returned
            (`Budget`); None for no limit.
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
        """Refuses settings that are not positive or do not fit together, and such a budget: a ValueError."""
        sizes = {name: getattr(self, name) for name in names}
        require(min(sizes.values()) > 0 and fits, expected, **sizes, **others)
        checked_budget(self.budget_s)

    def check(self, surrogate: Surrogate, **settings: Any) -> None:
        """Refuses the objectives that a surrogate and settings (the objective's other arguments) amount to,
        before anything is fitted, by a ValueError that says what to do; accepts all by default.
        """

    @classmethod
    def maximises(cls) -> type[Objective] | None:
        """The objectives that it maximises, as its base class declares them: ``GaussianSuccess`` of a
        ``BatchSearch[Candidates[GaussianSuccess]]``; None where none are declared.
        """
        bases = [base for each in cls.__mro__ for base in each.__dict__.get("__orig_bases__", ())]
        for sought in [each for base in bases for each in get_args(base)]:
            found = get_args(sought)[0] if get_origin(sought) is Candidates else sought
            if isinstance(found, type) and issubclass(found, Objective):
                return found
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
    """Selects the best candidate set for each case; where costs count, of the actions that are settled on
    what may be kept (`search.cost_kinks`), by their net values.

    Args:
        actions: The best actions of each set, (B, k) each; only of the first sets if the time ran out before
            the others were searched.
        values: (sets, B), their values; the largest wins, the first one among equals, without those that
            another set judges better (`better_judged`). A case is refused if none of its values is finite.
        facts: Further trace entries, one dictionary per case; a finding under ``refused`` withdraws the
            recommendation.
        accepted: Which of the actions the objective accepts, (sets, B) bool: these come before others; None
            for all.

    Returns:
        B decisions. Trace: ``search``, which is the name, ``altered``, the entries of the objective, `facts`,
        and those of a budget that ended the search.
    """
    every = objective.sets
    actions, values, accepted = _with_costs(every, actions, values, accepted, budget)
    sets, connected = every[: len(actions)], any(objective.linked(one.names) for one in every)
    reaching = [objective.linked(one.names) for one in sets]
    values = ranked(values)
    if declines and any(reaching):
        values = values.masked_fill(~torch.tensor(reaching, device=values.device).unsqueeze(-1), -math.inf)
    dominated = better_judged(objective, sets).to(values.device)
    values = values.masked_fill(dominated, -math.inf)
    if accepted is not None:
        accepted = accepted.to(values.device) & values.isfinite()
        values = values.masked_fill(accepted.any(0) & ~accepted, -math.inf)
    places = values.argmax(0)
    best, reached = places.tolist(), values.gather(0, places.unsqueeze(0))[0].tolist()
    # Only sets that some case has chosen: an appraisal may cost as much as the search.
    appraisals = {which: sets[which].appraise(actions[which]) for which in sorted(set(best))}
    settings = {
        which: _settings(sets[which], actions[which], (places == which).cpu()) for which in appraisals
    }
    names = {which: Alteration(sets[which].names, actions[which][0]) for which in appraisals}
    blank, limits = Decision(None, 0.0, seconds=budget.spent() / max(len(objective.cases), 1)), budget.facts()
    decisions = []
    for index, which in enumerate(best):
        value, found, (where, finite) = reached[index], appraisals[which][index], next(settings[which])
        further = facts[index] if facts else {}
        trace = {"search": name, "altered": list(sets[which].names), **found.trace, **further, **limits}
        refused: Finding | None = trace.pop("refused", None) or found.refused or found.unsupported
        if value == -math.inf and refused is None:
            when = " among those evaluated before the budget was spent" if budget.ran_out else ""
            refused = Finding("unqualified", f"no candidate alteration qualifies{when}")
        if not finite:
            refused = refused or Finding("invalid", "the search found no finite alteration")
            where = torch.zeros_like(where)
        note = str(trace.pop("note", ""))
        # Copies, since names and values are known to fit, and to be finite.
        decision = blank.changed(
            alteration=copied(names[which], values=where),
            value=value,
            estimate=found.estimate,
            baseline=found.baseline,
            gain=found.gain,
            draws=found.gain_draws,
            findings=tuple(found.findings),
            reason=Finding("note", note) if note else None,
            trace=trace,
        )
        if declines and not connected:
            refused = objective.no_path(task_actions(objective))
        # With present values, the rules compare with these, not with what is usual.
        worse = None if objective.cases[index].kept(sets[which].names) else found.declined
        if against := refused or worse:
            decision = decision.withdrawn(against)
        decisions.append(decision)
    return decisions


def _with_costs(
    sets: Sequence[AlterationObjective],
    actions: Sequence[Tensor],
    values: Tensor,
    accepted: Tensor | None,
    budget: Budget,
) -> tuple[Sequence[Tensor], Tensor, Tensor | None]:
    """The arguments of `chosen`, settled in the cases in which costs count."""
    charges = [one.charge for one in sets[: len(actions)]]
    if not any(charges):
        return actions, values, accepted
    best, compared = list(actions), list(values)
    allowed = list(torch.ones_like(values, dtype=torch.bool) if accepted is None else accepted)
    for place, (one, charge) in enumerate(zip(sets, charges, strict=False)):
        if charge is None:
            continue
        where, net = settled(one, charge, best[place], budget.out)
        counts = charge.counts.to(where.device)
        best[place] = torch.where(counts.unsqueeze(-1), where, best[place].to(where))
        compared[place] = torch.where(counts, net, compared[place].to(net))
        allowed[place] = torch.where(counts, one.acceptable(where).to(counts), allowed[place].to(counts))
    return best, torch.stack(compared), torch.stack(allowed)


def better_judged(objective: Candidates[AlterationObjective], sets: Sequence[AlterationObjective]) -> Tensor:
    """Which sets another one judges better in a case, (sets, B) bool: one that also holds what the first
    leaves at known present values, within their bounds. What is not set is assumed to take what is usual for
    such a case.
    """
    offered = {frozenset(one.names) for one in sets}
    found = torch.zeros(len(sets), len(objective.cases), dtype=torch.bool)
    stated = [(index, case) for index, case in enumerate(objective.cases) if case.present]
    if objective.surrogate is None:
        return found
    for place, one in enumerate(sets):
        for index, case in stated:
            left = objective.surrogate.task.left_alone(one.names, case.present)
            both = frozenset((*one.names, *left))
            found[place, index] = bool(left) and both in offered and all(_holds(case, name) for name in left)
    return found


def _holds(case: RehearsalCase, name: str) -> bool:
    """Whether a variable may be left at its present value."""
    lower, upper = case.feasible[name]
    value, levels = case.present[name], case.levels.get(name)
    return lower <= value <= upper and (levels is None or value in levels)


def _settings(one: AlterationObjective, actions: Tensor, chosen: Tensor) -> Iterator[tuple[Tensor, bool]]:
    """The values to set in each case of those chosen, (k,), and whether they are finite: actions (B, k)."""
    found = actions.detach().to("cpu", torch.float64)[chosen]
    if one.fixed:
        # Not a digit beside the level.
        held = [place for place, name in enumerate(one.names) if name in one.fixed]
        found[:, held] = found.new_tensor([one.fixed[one.names[place]] for place in held])
    return zip(found.unbind(0), found.isfinite().all(-1).tolist(), strict=True)


def in_time(sets: Sequence[Candidate], budget: Budget) -> Iterator[Candidate]:
    """Yields candidate sets in order until the budget is spent; always yields the first one."""
    for place, one in enumerate(sets):
        if place and budget.out():
            return
        yield one


def check_worth(objective: Callable[..., Any], search: Search[Any], name: str = "this method") -> None:
    """Refuses methods that cannot weigh costs against the worth of a desired outcome.

    Raises:
        ValueError: if the objective's values are no probabilities of a desired outcome, or the search looks
            for something else.
    """
    if isinstance(search, NoAction):
        return
    # The objective of several models has that of one of them among its settings.
    made = class_of(settings_of(objective).get("member", objective))
    if made is not None and issubclass(made, AlterationObjective) and made.of_success and search.weighs:
        return
    label = "an objective of its own" if made is None else made.__name__
    raise ValueError(
        "worth is weighed against costs by methods that maximise the probability of a desired outcome; "
        f"{name} ({label} with {type(search).__name__}) looks for something else: leave worth out, so that "
        "costs are told and do not count, or choose another method, such as outcome_regression, cme or "
        "care"
    )


def task_actions(objective: Candidates[AlterationObjective]) -> tuple[str, ...]:
    """All variables of the candidate sets."""
    return tuple(dict.fromkeys(name for one in objective.sets for name in one.names))


class NoAction(BatchSearch[Candidates[AlterationObjective]]):
    """Never acts: the baseline that all other methods are compared with.

    Args:
        budget_s: See `Search`; has no effect.
    """

    pools = True

    def batch_search(self, objective: Candidates[AlterationObjective]) -> list[Decision]:
        """Returns a no-action decision for each case, with what the model expects without an action."""
        budget, reason = Budget(self.budget_s), Finding("never_acts", "this method never acts")
        traces: list[dict[str, Any]] = [{"search": "none", "altered": []} for _ in objective.cases]
        idle: list[Estimate | None] = [None] * len(traces)
        for first in objective.whole[:1]:
            idle = [each.baseline for each in first.appraise(first.starts(1)[0])]
        seconds = budget.spent() / max(len(traces), 1)
        return [
            Decision(None, 0.0, baseline=baseline, reason=reason, trace=trace, seconds=seconds)
            for baseline, trace in zip(idle, traces, strict=True)
        ]
