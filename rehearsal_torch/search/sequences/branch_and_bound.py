"""Branch and bound over change events, with a certified model of their joint gain.

The aim is the set E of at most k events (t, a), at most one per time step, with the largest return. A node is
a path on which some changes have been made, all before the node's open time steps; m more may follow. At a
node,

1. every single event is rolled out exactly; if m = 1, this closes the node;
2. a certified model bounds the gain of sets (`gain_bound`): gain(E) <= sum of D(e) + sum of W(e, f);
3. the sets that look best in the model are rolled out, which gives the incumbent;
4. events, then sets, whose bound does not exceed the incumbent are dropped (`branch_tree`). With fewer events
   the model is tighter, and is recomputed if that may help; if few sets remain, they are rolled out, best
   bound first;
5. otherwise the node branches on the first event of the remaining sets: each child is re-centred on its own
   path, where only the interaction of the changes still unknown has to be bounded, with those events that may
   follow the first one by the node's model.

Nodes are taken best bound first: an early end leaves a valid gap, the largest open bound minus the incumbent.

The model needs a reward that is linear in the states, and a trajectory that bounds its curvature. For other
rewards with a bound over boxes of states, such as step scores, for the return of an ensemble's worst member,
and for the closed form (`mechanisms.bent_transition`) where enumeration would take longer, another tree is
searched under the same limits (`step_tree`). If neither can be built, or the bound at the root is more than
`looseness` times the largest gain or loss observed, a small tree is enumerated, and A* (with Lipschitz
constants) or greedy changes search a larger one (`fallback`) within the remaining limits. The answer is the
better one of root and fallback, under the lower of their bounds.

Rounding: everything is computed in float64, and a bound counts as larger than the incumbent if it exceeds it
by more than 1e-9 times max(1, |observed return|). An optimum is proven up to this tolerance, and its gap is
then 0.

Source: the problem is Tsirtsis and Gomez-Rodriguez (2023), Eq. 9.
"""

from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.mechanisms.bent_transition import BentTrajectory
from rehearsal_torch.mechanisms.mechanism import CurvedTrajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import BoundedReward
from rehearsal_torch.search.search import Budget, Search, ended
from rehearsal_torch.search.sequences.astar import AStar, UnboundedError
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_tree import EventTree, Limits
from rehearsal_torch.search.sequences.decision_process import Effort, branching_factor, sequence_decision
from rehearsal_torch.search.sequences.exhaustive import Exhaustive, tree_size
from rehearsal_torch.search.sequences.step_tree import StepTree


@final
@dataclass(eq=False)
class BranchAndBound(Search[CounterfactualReturn]):
    """The optimal sequence, proven.

    Args:
        leaves: Maximum number of sets of one node that are rolled out rather than branched on.
        events: Maximum number of events at one node (memory grows with its square), else the fallback.
        pool: Maximum number of open nodes; the lowest bounds are dropped first, and the gap covers them.
        sets: For `step_tree`: maximum number of sets of time steps, else greedy changes with a loose gap.
        evaluations: For `step_tree`: maximum number of single steps F_t(x, a), the same on every machine.
        looseness: Maximum bound at the root, in multiples of the largest gain or loss, else the fallback.
        budget_s: See `Search`; a step is a node (the root is always completed), or one of the fallback.
        node_limit: Likewise, a limit on the number of expanded nodes.
        fallback: The search if the model has no usable bound; None for A*, under the same limits.
        enumerated: The largest tree that is enumerated in place of A*, or for the closed form, in nodes.
    """

    leaves: int = 20_000
    events: int = 4_000
    pool: int = 100_000
    looseness: float = 100.0
    budget_s: float | None = None
    node_limit: int | None = None
    fallback: Search[CounterfactualReturn] | None = None
    sets: int = 200_000
    evaluations: int | None = 50_000_000
    enumerated: int = 500_000

    def __post_init__(self) -> None:
        valid, expected = self.looseness >= 1, "numbers of at least 1"
        self.check_sizes("leaves", "events", "pool", "sets", "looseness", fits=valid, expected=expected)
        valid = self.evaluations is None or self.evaluations >= 1
        require(valid, "at least 1 evaluation, or None for no limit", evaluations=self.evaluations)

    @torch.no_grad()
    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns the optimal sequence, or the best found with its gap."""
        budget, effort = Budget(self.budget_s), Effort()
        limits = Limits(self.leaves, self.pool, self.looseness, budget, self.node_limit)
        if isinstance(objective.trajectory, BentTrajectory):
            stepwise = not self._enumerates(objective)
        else:
            stepwise = isinstance(objective.trajectory, CurvedTrajectory) and objective.gradient() is None
        if stepwise and isinstance(objective.reward, BoundedReward):
            step_tree = StepTree(objective, effort, limits, self.sets, self.evaluations)
            return _tree_decision(step_tree, step_tree.run(), root_bound=step_tree.root)
        reason = self._refusal(objective)
        if reason:
            return self._fall_back(objective, reason, budget, effort)
        tree = EventTree(objective, effort, limits)
        ending = tree.run()
        if tree.loose:
            return self._fall_back(objective, tree.loose, budget, effort, tree)
        return _tree_decision(tree, ending, root_bound=tree.observed + tree.root, recentred=tree.recentred)

    def _refusal(self, objective: CounterfactualReturn) -> str:
        """Why the model cannot be built; empty if it can."""
        gradient = objective.gradient()
        if gradient is None:
            return "the reward is not linear in the states"
        if not torch.isfinite(gradient).all():
            return (
                "the reward is not linear in the coordinates of the trajectory (a rewarded feature is on a "
                "log scale)"
            )
        if not isinstance(objective.trajectory, CurvedTrajectory):
            return f"{type(objective.trajectory).__name__} does not bound its curvature"
        count = int(objective.choices.sum())
        return f"{count} single changes are more than events={self.events}" if count > self.events else ""

    def _fall_back(
        self,
        objective: CounterfactualReturn,
        cause: str,
        budget: Budget,
        effort: Effort,
        tree: EventTree | None = None,
    ) -> Decision:
        """The fallback's decision and why it decides, or the tree's best sequence if that is better."""
        sequence = objective.observed if tree is None else tree.sequence
        search = self._limited_fallback(objective, budget, effort.expanded)
        try:
            decision = search.improve(objective, sequence) if isinstance(search, AStar) else search(objective)
        except UnboundedError as error:
            search = self._in_time(GreedyChanges(), budget)
            decision, cause = search(objective), f"{cause}; {error}"
        name, gap = decision.trace.get("search", type(search).__name__), decision.trace.get("gap")
        ended_by = Budget(search.budget_s).reason() if "stopped" in decision.trace else ""
        efforts = asdict(effort).items()
        effort_sums = {counter: decision.trace.get(counter, 0) + count for counter, count in efforts}
        entries: dict[str, object] = {"search": "branch_and_bound", "fallback": name, **effort_sums}
        entries["effective_branching_factor"] = branching_factor(effort_sums["expanded"], objective.horizon)
        if tree is not None:
            bound = min(torch.inf if gap is None else decision.value + gap, tree.observed + tree.bound)
            if tree.observed + tree.best > decision.value + tree.tolerance:
                text = "" if decision.reason is None else decision.reason.text
                facts: dict[str, Any] = {"search": name, "gap": None, "equal": tree.tolerance, "reason": text}
                decision = sequence_decision(objective, sequence, Effort(), budget, **facts)
            excess = bound - decision.value
            gap = None if bound == torch.inf else excess if excess > tree.tolerance else 0.0
            if tree.bound < torch.inf:
                root_bound = decision.trace.get("root_bound", torch.inf)
                entries["root_bound"] = min(root_bound, tree.observed + tree.bound)
        text = f"branch_and_bound fell back to {name}: {cause}"
        reason: Finding | None = Finding("no_gain" if decision.alteration is None else "note", text)
        if gap == 0.0 and isinstance(search, Exhaustive):
            reason = decision.reason  # proven nevertheless
        elif decision.reason is not None:
            reason = replace(decision.reason, text=f"{text}; {decision.reason.text}")
        trace = {**decision.trace, **entries, "gap": gap, "proven": gap == 0.0}
        trace |= ended(ended_by, gap) if ended_by else {}
        return replace(decision, trace=trace, reason=reason, seconds=budget.spent())

    def _limited_fallback(
        self, objective: CounterfactualReturn, budget: Budget, expanded: int
    ) -> Search[CounterfactualReturn]:
        default = Exhaustive() if self._enumerates(objective) else AStar()
        limited = self._in_time(self.fallback or default, budget)
        if self.node_limit is not None and isinstance(limited, AStar):
            limit = self.node_limit if limited.node_limit is None else limited.node_limit
            limited.node_limit = max(0, min(self.node_limit - expanded, limit))
        return limited

    def _enumerates(self, objective: CounterfactualReturn) -> bool:
        """Whether the tree is small enough to be enumerated."""
        unlimited = self.fallback is None and self.node_limit is None
        return unlimited and sum(tree_size(objective)) <= self.enumerated

    @staticmethod
    def _in_time(search: Search[CounterfactualReturn], budget: Budget) -> Search[CounterfactualReturn]:
        """A copy of a search with the remaining time, or less if its own budget is smaller."""
        limited = copy(search)
        if budget.limit_s is not None:
            limit = torch.inf if limited.budget_s is None else limited.budget_s
            limited.budget_s = min(budget.remaining(), limit)
        return limited


def _tree_decision(tree: EventTree | StepTree, stopped: str, **trace: Any) -> Decision:
    ending: dict[str, Any] = {"gap": tree.gap(), "equal": tree.tolerance, "reason": stopped}
    facts = {"search": "branch_and_bound", "fallback": None, **ending, **trace}
    facts |= {"rolled_out": tree.rolled_out, "tolerance": tree.tolerance}
    return sequence_decision(tree.objective, tree.sequence, tree.effort, tree.limits.budget, **facts)
