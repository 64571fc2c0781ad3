from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import UNLIMITED, Budget
from rehearsal_torch.search.sequences import step_tree
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.branch_tree import Limits
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.sequences.step_tree import (
    GroupBounds,
    Intervals,
    StepTree,
    enclosed,
    expansions,
    nowhere,
)
from tests.toys.bent_episodes import bent_episode
from tests.toys.curved_boxes import Equations
from tests.toys.curved_episodes import curved_episode
from tests.toys.scored_episodes import scored_as, scored_curve, scored_episode, weighed_episode


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
    trajectory.shifts[1, action] = trajectory._effects[1, 0].unflatten(0, (3, 3))[action] = torch.nan
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


def best_of(objective: CounterfactualReturn, times: tuple[int, ...]) -> float:
    """The largest return of all sequences that change exactly the given steps, one by one."""
    others = [objective.candidate_actions(time).tolist() for time in times]
    sequences = objective.observed.repeat(len(list(product(*others))), 1)
    sequences[:, list(times)] = torch.tensor(list(product(*others)))
    return float(objective(sequences).max())


def compare(objective: CounterfactualReturn) -> list[tuple[float, float]]:
    """Bound and truth of every set of time steps, and of any changes."""
    process = CounterfactualProcess(objective, Effort())
    bounds = GroupBounds(objective, objective.trajectory, process, objective.changes)
    open_, found = objective.open.tolist(), []
    for size in range(1, min(objective.changes, len(open_)) + 1):
        times = list(combinations(open_, size))
        rows = torch.zeros(len(times), dtype=torch.long)
        made = objective.joined(bounds.of(bounds.observed, rows, torch.tensor(times))).tolist()
        found += list(zip(made, (best_of(objective, one) for one in times), strict=True))
    most = max((truth for _, truth in found), default=objective.outcome())
    assert bounds.anywhere() >= max(most, objective.outcome())
    return found


@pytest.mark.parametrize("use", ["mean", "worst"])
def test_bounds_of_ensembles_hold_for_the_mean_and_for_the_worst_member(use):
    for seed in range(3):
        for bound, truth in compare(scored_episode(seed, 5, 2, 3, members=3, use=use)):
            assert bound >= truth - 1e-9


@pytest.mark.parametrize("bent", [0.0, 0.25, 1.0])
def test_the_bounds_hold_for_known_curved_equations(bent):
    for bound, truth in compare(scored_curve(1, 4, 3, bent)):
        assert bound >= truth - 1e-9


def test_most_bounds_of_nearly_linear_models_are_the_truth():
    found = [pair for seed in range(2) for pair in compare(scored_episode(seed, 5, 2, 2, spread=0.3))]
    assert sum(bound <= truth + 1e-9 for bound, truth in found) > 0.5 * len(found)


def test_groups_may_begin_on_any_path():
    """The bound of a group on a changed path holds for the sequences that contain that change."""
    objective = scored_episode(2, 6, 3, 3)
    process = CounterfactualProcess(objective, Effort())
    bounds = GroupBounds(objective, objective.trajectory, process, 3)
    start = objective.trajectory.states[:1]
    others = process.others[0]
    paths = bounds.roll(process.branch(start, 0)[0], 1)
    gathered = float(process.rewards(start, 0))
    times = list(combinations((1, 2, 3, 4), 2))
    for place, action in enumerate(others.tolist()):
        rows = torch.full((len(times),), place)
        made = bounds.of(paths, rows, torch.tensor(times)) + gathered
        for bound, pair in zip(made.tolist(), times, strict=True):
            chosen = [objective.candidate_actions(time).tolist() for time in pair]
            sequences = objective.observed.repeat(len(list(product(*chosen))), 1)
            sequences[:, 0], sequences[:, list(pair)] = action, torch.tensor(list(product(*chosen)))
            assert bound >= float(objective(sequences).max()) - 1e-9


def bounds_of(objective: CounterfactualReturn) -> GroupBounds:
    process = CounterfactualProcess(objective, Effort())
    return GroupBounds(objective, objective.trajectory, process, objective.changes)


def bound_by_equations(
    objective: CounterfactualReturn, path: torch.Tensor, start: int, times: tuple
) -> float:
    """The bound of one group, step by step: rewards fall with each variable, and so are largest at the lower
    ends; `path` has the states from `start` on."""
    equations, states = Equations(objective, objective.choices), objective.trajectory.states
    total, lower = 0.0, torch.zeros_like(states[0])
    upper = lower
    for time in range(start, objective.horizon):
        here = path[time - start]
        total += float(objective.rewards((here + lower).unsqueeze(0)))
        if time == objective.horizon - 1:
            break
        far = float((here - states[time]).norm())
        if time in times:
            lower, upper = equations.next(
                time, lower, upper, far, equations.effects(time, here).aminmax(dim=0)
            )
        elif time > times[0]:
            lower, upper = equations.next(time, lower, upper, far)
    return total


@pytest.mark.parametrize(("seed", "bent"), [(1, 0.3), (2, 0.0)])
def test_a_bound_is_the_sum_of_the_best_rewards_in_the_boxes_of_its_path(seed, bent, monkeypatch):
    objective = curved_episode(seed, 5, 2, 2, 3, bent)
    choices = objective.choices.clone()
    choices[2, int(choices[2].nonzero()[0])] = choices[0, int(choices[0].nonzero()[0])] = False
    objective.__dict__["choices"] = choices
    bounds, made = bounds_of(objective), objective.trajectory
    first = made.branch(made.states[:1], 0)[0]
    for start, states in ((0, made.states[:1]), (1, first)):
        paths = bounds.roll(states, start)
        groups = [
            (row, times)
            for times in [*combinations(range(start, 4), 2), (3, 3), (start, start)]
            for row in range(len(states))
        ]
        rows, times = torch.tensor([row for row, _ in groups]), torch.tensor([each for _, each in groups])
        found = bounds.of(paths, rows, times)
        wanted = [bound_by_equations(objective, paths.states[row], start, each) for row, each in groups]
        assert found.tolist() == pytest.approx(wanted, abs=1e-8)
        alone = [float(bounds.of(paths, rows[[place]], times[[place]])) for place in range(len(groups))]
        assert alone == pytest.approx(wanted, abs=1e-8)
        monkeypatch.setattr(step_tree, "BOXES", 3)
        assert bounds.of(paths, rows, times).tolist() == pytest.approx(wanted, abs=1e-8)
        monkeypatch.undo()
    boxes = zip(Equations(objective, choices).boxes(2), made.states, strict=True)
    best = sum(float(objective.rewards((state + lower).unsqueeze(0))) for (lower, _), state in boxes)
    assert bounds.anywhere() == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("members", [1, 2])
def test_doses_without_effect_on_states_are_bounded_by_the_truth(members):
    """Each step is then by itself: the best of the allowed doses where the group changes."""
    for seed in range(2):
        objective = scored_episode(seed, 4, 2, 4, members, dosed=True, spread=0.0, fixed=(1,))
        for bound, truth in compare(objective):
            assert bound == pytest.approx(truth, abs=1e-9)


def boxed(objective):
    process = CounterfactualProcess(objective, Effort())
    return GroupBounds(objective, objective.trajectory, process, objective.changes)


def changed(objective, count, generator):
    """Random sequences with at most k changes, (count, H)."""
    sequences = objective.observed.repeat(count, 1)
    for row in sequences:
        times = objective.open[torch.randperm(len(objective.open), generator=generator)]
        for time in times[: objective.changes].tolist():
            others = objective.candidate_actions(time)
            row[time] = others[int(torch.randint(len(others), (1,), generator=generator))]
    return sequences


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 100_000),
    changes=st.integers(0, 4),
    members=st.sampled_from([1, 2]),
    effects=st.sampled_from(["sparse", "dense"]),
    spread=st.sampled_from([0.3, 3.0, 30.0]),
)
def test_no_changes_leave_the_boxes(seed, changes, members, effects, spread):
    objective = scored_episode(seed, 6, changes, 3, members, effects, spread=spread)
    found = boxed(objective)
    states = objective.replay(changed(objective, 60, torch.Generator().manual_seed(seed)))
    for time, box in enumerate(found.boxes):
        lower, upper = box.ends(objective.trajectory.states[time : time + 1])
        assert not ((states[:, time] < lower - 1e-12) | (states[:, time] > upper + 1e-12)).any()


@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 100_000), bent=st.sampled_from([0.0, 0.25, 1.0]), size=st.floats(0.01, 1.0))
def test_a_step_encloses_the_images_of_random_points(seed, bent, size):
    """Around paths off the observed one, for points that some k changes reach: within the ball."""
    objective = scored_curve(seed, 4, 3, bent)
    found, trajectory = boxed(objective), objective.trajectory
    generator = torch.Generator().manual_seed(seed)
    reach, time = found.boxes[2], 2
    inside = (2 * torch.rand(50, 3, generator=generator, dtype=torch.float64) - 1) * reach.radius[0, 0]
    centre = trajectory.states[time] + reach.centre[0, 0]
    path = centre + inside[:1]
    moved = path + size * (centre + inside - path)
    ends = (moved - path).aminmax(dim=0)
    before = enclosed(ends.min[None], ends.max[None], 1)
    kept, others = trajectory.observed[time], objective.candidate_actions(time)
    after = trajectory.step(path, time, kept)
    lower, upper = found.steps[time].kept(before, path, after).ends(after)
    images = trajectory.step(moved, time, kept)
    assert bool(((lower <= images) & (images <= upper)).all())
    effects = trajectory.branch(path, time, others)[0] - after
    hull = enclosed(effects.amin(0, keepdim=True), effects.amax(0, keepdim=True), 1)
    lower, upper = found.steps[time].changed(before, path, after, hull).ends(after)
    images = trajectory.branch(moved, time, others)
    assert bool(((lower[:, None] <= images) & (images <= upper[:, None])).all())


def expanded(objective, changes, choices):
    made, equations = objective.trajectory, Equations(objective, choices)
    hulls = []
    for time in range(made.horizon - 1):
        effects = equations.effects(time)
        still = nowhere(1, 1, made.states.shape[-1], made.states)
        hulls.append(enclosed(*effects.aminmax(dim=0, keepdim=True), 1) if len(effects) else still)
    return equations, *expansions(made, 1, choices, changes, hulls)


@pytest.mark.parametrize(
    ("seed", "changes", "width", "bent"), [(1, 2, 2, 0.25), (2, 1, 3, 0.5), (3, 3, 1, 0.3), (4, 0, 2, 0.2)]
)
def test_boxes_and_steps_are_those_of_the_equations(seed, changes, width, bent):
    objective = curved_episode(seed, 4, changes, width, 3, bent)
    choices = objective.choices.clone()
    choices[1, int(choices[1].nonzero()[0])] = False
    equations, steps, boxes = expanded(objective, changes, choices)
    states, stream = objective.trajectory.states, torch.Generator().manual_seed(seed)
    for time, (box, wanted) in enumerate(zip(boxes, equations.boxes(changes), strict=True)):
        found = torch.cat(box.ends(states[time : time + 1])) - states[time]
        torch.testing.assert_close(found, torch.stack(wanted), rtol=1e-6, atol=1e-10)
        # Boxes are wider than the equations ask for, by more than rounding.
        assert bool((found[0] <= wanted[0] + 1e-14).all() & (found[1] >= wanted[1] - 1e-14).all())
    for time, step in enumerate(steps):
        ends = torch.randn(2, 5, width, generator=stream, dtype=torch.float64).sort(0).values
        effects = torch.randn(2, 5, width, generator=stream, dtype=torch.float64).sort(0).values
        here = states[time] + torch.randn(5, width, generator=stream, dtype=torch.float64)
        before, hull = enclosed(*ends, 1), enclosed(*effects, 1)
        kept, other = step.kept(before, here, here), step.changed(before, here, here, hull)
        for row in range(5):
            far = float((here[row] - states[time]).norm())
            for found, hulls in ((kept, None), (other, effects[:, row])):
                wanted = equations.next(time, *ends[:, row], far, hulls)
                told = torch.cat(found.rows(torch.tensor([row])).ends(torch.zeros(1, width).double()))
                torch.testing.assert_close(told, torch.stack(wanted), rtol=1e-6, atol=1e-10)


def test_a_step_that_is_shut_moves_as_observed():
    objective = curved_episode(5, 4, 2, 2, 3, 0.25)
    choices = torch.zeros(3, 3, dtype=torch.bool)
    _, _, boxes = expanded(objective, 2, choices)
    assert max(float(box.radius.max()) for box in boxes) <= 1e-11
    assert float(boxes[0].radius.max()) == 0.0
    assert min(float(box.radius.min()) for box in boxes[1:]) >= 1e-12, "an allowance for rounding"


def test_a_curvature_without_a_bound_leaves_boxes_without_a_bound():
    for column in (1, 2):
        objective = curved_episode(5, 4, 2, 2, 3, 0.25)
        objective.trajectory.constants[1:, column] = torch.inf
        _, steps, boxes = expanded(objective, 2, objective.choices)
        assert bool(torch.isfinite(boxes[1].radius).all())
        for box in boxes[2:]:
            assert not torch.isfinite(box.radius).any()
        assert bool(steps[1].third.isinf().all())
        assert bool(steps[0].third.isfinite().all())


def test_intervals_of_members_are_side_by_side_in_the_states():
    """Two members, three paths of two variables: centre and radius are of each member by itself."""
    lower = torch.arange(12.0).view(3, 4)
    upper = lower + torch.tensor([1.0, 2.0, 3.0, 4.0])
    made = enclosed(lower, upper, 2)
    assert made.centre.shape == made.radius.shape == (2, 3, 2)
    assert made.radius[:, 1].tolist() == [[0.5, 1.0], [1.5, 2.0]]
    assert made.centre[1, 2].tolist() == [11.5, 13.0]
    ends = made.ends(torch.full((3, 4), 100.0))
    assert torch.equal(ends[0], lower + 100)
    assert torch.equal(ends[1], upper + 100)
    negative = Intervals(-made.centre, made.radius)
    assert torch.equal(negative.size, made.size)
    assert made.size[1, 2].tolist() == [13.0, 15.0]
    assert torch.equal(made.rows(torch.tensor([2, 0])).centre, made.centre[:, [2, 0]])
    still = nowhere(2, 3, 4, lower.double())
    assert still.centre.shape == (2, 3, 4)
    assert still.size.dtype == torch.float64
    assert float(still.size.max()) == 0


@pytest.mark.parametrize(("seed", "members"), [(3, 1), (4, 2), (5, 3)])
def test_some_changes_stay_in_the_boxes_of_every_member(seed, members):
    objective = scored_episode(seed, 5, 2, 3, members, spread=0.3)
    boxes, states = (
        boxed(objective).boxes,
        objective.replay(changed(objective, 40, torch.Generator().manual_seed(seed))),
    )
    for time, box in enumerate(boxes):
        assert box.centre.shape == (members, 1, 3)
        lower, upper = box.ends(objective.trajectory.states[time : time + 1])
        assert not ((states[:, time] < lower - 1e-12) | (states[:, time] > upper + 1e-12)).any()
        # Nearly linear maps leave little that no change reaches.
        reached = states[:, time].amax(0) - states[:, time].amin(0)
        assert bool((upper - lower <= 4 * reached + 1e-9).all())


BENT = dict(
    seed=st.integers(0, 100_000),
    horizon=st.integers(2, 6),
    changes=st.integers(1, 3),
    levels=st.integers(2, 4),
    drugs=st.integers(1, 2),
    held=st.integers(0, 2),
    within=st.sampled_from([0.0, 9.0]),
    fixed=st.sets(st.integers(0, 5), max_size=2).map(lambda steps: tuple(sorted(steps))),
)


def bent(seed, scored, dosed=False, **sizes):
    drawn = bent_episode(seed, **sizes)
    return scored_as(drawn.surrogate, drawn, seed, dosed) if scored else drawn


@settings(max_examples=40, deadline=None, derandomize=True)
@given(scored=st.booleans(), dosed=st.booleans(), **BENT)
def test_under_the_closed_form_the_result_is_that_of_enumeration(scored, dosed, **drawn):
    objective = bent(scored=scored, dosed=dosed, **drawn)
    found = BranchAndBound(enumerated=1)(objective)
    truth = Exhaustive()(objective)
    assert (found.trace["fallback"], found.trace["proven"], found.trace["gap"]) == (None, True, 0.0)
    assert found.value == pytest.approx(truth.value, abs=1e-8)
    assert found.trace["root_bound"] >= truth.value - 1e-8


@pytest.mark.parametrize("scored", [False, True])
def test_the_bounds_hold_for_the_closed_form(scored):
    for seed in range(3):
        for bound, truth in compare(bent(seed, scored, horizon=5, changes=3, held=1, within=9.0)):
            assert bound >= truth - 1e-9
