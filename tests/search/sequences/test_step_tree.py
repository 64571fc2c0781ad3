import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.search.sequences import step_tree
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.branch_tree import Limits
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.sequences.group_bounds import GroupBounds
from rehearsal_torch.search.sequences.step_tree import StepTree
from tests.toys.curved_episodes import curved_episode
from tests.toys.scored_episodes import scored_episode, weighed_episode


def checked(objective):
    """The search's decision, after comparing it with enumeration."""
    decision, truth = BranchAndBound()(objective), Exhaustive()(objective)
    assert decision.trace["search"] == "branch_and_bound"
    assert decision.trace["fallback"] is None
    assert decision.trace["proven"]
    assert decision.trace["gap"] == 0.0
    assert decision.value == pytest.approx(truth.value, abs=1e-9)
    assert decision.trace["root_bound"] >= truth.value - 1e-9
    assert (objective.sequence(decision) != objective.observed).sum() <= objective.changes
    return decision


INSTANCES = dict(
    seed=st.integers(0, 100_000),
    horizon=st.integers(2, 6),
    changes=st.integers(0, 3),
    levels=st.integers(2, 4),
    members=st.sampled_from([1, 1, 2, 3]),
    effects=st.sampled_from(["sparse", "dense"]),
    dosed=st.booleans(),
    spread=st.sampled_from([0.3, 3.0]),
    use=st.sampled_from(["mean", "worst"]),
    fixed=st.sets(st.integers(0, 5), max_size=2).map(lambda steps: tuple(sorted(steps))),
)


@pytest.mark.bench
@settings(max_examples=40, deadline=None, derandomize=True)
@given(**INSTANCES)
def test_the_result_is_that_of_enumeration_on_many_instances(**drawn):
    checked(scored_episode(**drawn))


@pytest.mark.slow
def test_some_instances_need_more_than_greedy_changes_and_more_than_the_root():
    better = deeper = 0
    for seed in range(12):
        objective = scored_episode(seed, 6, 3, 4)
        decision = checked(objective)
        better += decision.value > GreedyChanges()(objective).value
        deeper += decision.trace["rolled_out"] > 0
    assert better
    assert deeper


def tree(objective, nodes=None, evaluations=None, sets=1000, pool=1000, budget_s=None):
    limits = Limits(1, pool, 1.0, Budget(budget_s), nodes)
    return StepTree(objective, Effort(), limits, sets, evaluations)


def test_some_early_ends_prove_nothing():
    gaps = [BranchAndBound(sets=1)(scored_episode(seed, 6, 3, 4)) for seed in range(4)]
    unproven = [decision for decision in gaps if not decision.trace["proven"]]
    assert unproven
    for decision in unproven:
        assert "25 sets of time steps are more than sets=1" in decision.reason.text
        assert decision.trace["gap"] > 0


def test_paths_that_are_no_numbers_are_no_answer_and_no_obstacle():
    """An action that leads to no number loses, and does not hide the others."""
    objective = scored_episode(4, 5, 2)
    trajectory, action = objective.trajectory, int(objective.candidate_actions(1)[0])
    trajectory.shifts[1, action] = trajectory._across[1, 0].unflatten(0, (3, 3))[action] = torch.nan
    assert objective(torch.tensor([*objective.observed[:1], action, *objective.observed[2:]])).isnan()
    checked(objective)


def test_an_early_end_leaves_a_gap_that_holds_for_the_worst_member():
    objective = scored_episode(3, 6, 3, 4, members=2, use="worst")
    decision, truth = BranchAndBound(evaluations=1)(objective), Exhaustive()(objective)
    assert decision.value + decision.trace["gap"] >= truth.value - 1e-9


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch):
    """A tree without greedy changes before it."""
    monkeypatch.setattr(step_tree, "greedy_sequence", lambda process: process.objective.observed)

    def made(objective, nodes=None, evaluations=None, sets=1000, pool=1000, budget=UNLIMITED):
        return StepTree(objective, Effort(), Limits(1, pool, 1.0, budget, nodes), sets, evaluations)

    return made


class Looks(Budget):
    """A budget that ends after some looks at the clock."""

    def __init__(self, looks: int) -> None:
        super().__init__(7.0)
        self.looks = looks

    def left(self) -> float:
        self.looks -= 1
        return 1.0 if self.looks >= 0 else 0.0


EPISODES = {
    "one change": lambda: curved_episode(1, 5, 1, 2, 4, 0.5),
    "two changes": lambda: curved_episode(2, 5, 2, 2, 3, 0.5),
    "three changes": lambda: curved_episode(3, 5, 3, 2, 3, 1.0),
    "scores of doses": lambda: scored_episode(3, 5, 3, 3, dosed=True, fixed=(1,)),
    "the worst member": lambda: weighed_episode(1, members=3, horizon=5, changes=3),
    "doses, the worst member": lambda: scored_episode(2, 4, 2, 3, members=2, dosed=True, use="worst"),
}


@pytest.mark.parametrize("numbers", [1, step_tree.NUMBERS])
@pytest.mark.parametrize("name", EPISODES)
def test_the_tree_finds_the_optimum_in_pieces_of_any_size(
    alone, name: str, numbers: int, monkeypatch
) -> None:
    monkeypatch.setattr(step_tree, "NUMBERS", numbers)
    monkeypatch.setattr(step_tree, "ROOT", 3)
    objective = EPISODES[name]()
    truth, tree = Exhaustive()(objective), alone(objective)
    assert truth.value > objective.outcome() + 1e-6
    assert tree.run() == ""
    assert tree.best == pytest.approx(truth.value, abs=1e-9)
    assert float(objective(tree.sequence)) == pytest.approx(tree.best, abs=1e-9)
    assert int((tree.sequence != objective.observed).sum()) <= objective.changes
    assert tree.root >= truth.value - 1e-9
    assert (tree.gap(), tree.bound) == (0.0, tree.best)


@pytest.mark.parametrize("seed", range(3))
def test_single_changes_are_rolled_out_step_by_step_by_descending_bounds(alone, seed: int) -> None:
    objective = curved_episode(seed, 6, 1, 2, 3, 0.5)
    tree = alone(objective)
    tree.run()
    bounds = GroupBounds(objective, objective.trajectory, CounterfactualProcess(objective, Effort()), 1)
    rows, steps = torch.zeros(5, dtype=torch.long), torch.arange(5).unsqueeze(1)
    found = bounds.of(bounds.observed, rows, steps)
    best, expanded, evaluations = objective.outcome(), 0, 0
    for step in found.argsort(descending=True).tolist():
        if float(found[step]) <= best + tree.tolerance:
            break
        for action in objective.candidate_actions(step).tolist():
            changed = objective.observed.clone()
            changed[step] = action
            best = max(best, float(objective(changed)))
        expanded, evaluations = expanded + 1, evaluations + 2 * (5 - step)
    assert tree.root == float(found.max())
    assert tree.best == pytest.approx(best, abs=1e-9)
    assert expanded > 0
    # Tables of the observed path: its five steps under three actions each.
    assert tree.effort == Effort(expanded, 2 * expanded, evaluations + 15)
    assert tree.rolled_out == 2 * expanded


def test_every_limit_may_be_met_and_ends_the_search_before_the_next_block(alone) -> None:
    objective = curved_episode(3, 4, 2, 2, 3, 1.0)
    whole = alone(objective)
    assert whole.run() == ""
    assert whole.effort.expanded > 2
    stopped = alone(objective, nodes=whole.effort.expanded - 1)
    assert stopped.run() == f"stopped after node_limit={whole.effort.expanded - 1} expanded nodes"
    assert stopped.best + stopped.gap() >= whole.best - 1e-9
    assert alone(objective, nodes=whole.effort.expanded).run() == ""
    none = alone(objective, evaluations=1)
    assert none.run() == "stopped after evaluations=1 single steps of the model"
    assert (none.effort.expanded, none.best) == (0, objective.outcome())
    planted = none.effort.network_evaluations
    for evaluations, begun in ((planted, False), (planted + 1, True)):
        some = alone(objective, evaluations=evaluations)
        some.run()
        assert (some.effort.expanded > 0) == begun
    # Three steps and three pairs.
    full, over = alone(objective, sets=6), alone(objective, sets=5)
    assert full.run() == ""
    assert over.run() == "its 6 sets of time steps are more than sets=5"
    assert over.gap() == over.bound - over.best > 0
    assert over.bound == over.bounds.anywhere() == over.root


@pytest.mark.parametrize("looks", range(4))
def test_time_ends_the_planting_or_the_search(alone, looks: int) -> None:
    """One look for the sets of each size, then one for each block."""
    tree = alone(curved_episode(3, 4, 2, 2, 3, 1.0), budget=Looks(looks))
    assert tree.run() == "stopped after budget_s=7"
    assert (tree.effort.expanded > 0) == (looks > 2)
    assert (tree.bound == tree.bounds.anywhere()) == (looks < 2)
    assert tree.gap() > 0


def test_a_pool_gives_up_the_lowest_bounds_and_no_others(alone) -> None:
    objective = curved_episode(3, 4, 2, 2, 3, 1.0)
    truth = Exhaustive()(objective).value
    for pool in range(1, 7):
        tree = alone(objective, pool=pool)
        said = tree.run()
        if not said:
            break
        assert said == f"gave up nodes beyond pool={pool}"
        assert tree.gap() > 0
        assert tree.best + tree.gap() >= truth - 1e-9
    assert pool > 1
    assert tree.best == pytest.approx(truth, abs=1e-9)
    for pool in (1, 5, 6, 7):
        tree = alone(objective, pool=pool, nodes=0)
        assert tree.run() == "stopped after node_limit=0 expanded nodes"
        bounds = tree.bounds
        sets = [torch.tensor([[0], [1], [2]]), torch.tensor([[0, 1], [0, 2], [1, 2]])]
        found = torch.cat([bounds.of(bounds.observed, torch.zeros(3).long(), each) for each in sets])
        assert float(found.min()) > tree.best
        left = torch.cat([groups.bounds for *_, groups in tree._heap])
        assert left.sort().values.tolist() == found.sort().values[-pool:].tolist()
        assert tree.bound == float(found.max())


def test_nothing_is_looked_for_where_nothing_is_open(alone) -> None:
    for objective in (curved_episode(1, 5, 0), scored_episode(1, 3, 2, fixed=(0, 1, 2))):
        tree = alone(objective)
        assert (tree.run(), tree.gap(), tree.bound) == ("", 0.0, objective.outcome())
        assert (tree.root, tree.rolled_out) == (objective.outcome(), 0)
        assert tree.effort.expanded == tree.effort.generated == 0
        assert torch.equal(tree.sequence, objective.observed)


def test_changes_without_effect_are_not_taken(alone) -> None:
    objective = weighed_episode(1, members=2, horizon=4, changes=2, spread=0.0)
    tree = alone(objective)
    assert tree.run() == ""
    assert torch.equal(tree.sequence, objective.observed)
    assert (tree.best, tree.gap()) == (objective.outcome(), 0.0)
