"""The search by acquisition functions: maxima of grids, decisions, recommendations and how sure they are."""

import math
from functools import partial

import pytest
import torch
from scipy.stats import kstest, norm, qmc

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import NoFiniteValueError
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.monte_carlo import FUNCTIONS, MonteCarlo
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound, NetworkAcquisition
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.trials.acquisition import (
    BEYOND,
    AcquisitionSearch,
    Proposal,
    Recommendation,
    SpaceFilling,
    decided,
    maximised,
    recommend,
    sureness,
)
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.causal_toys import hills, linear_chain, one_case, plain

DOUBLE, SAMPLINGS = torch.float64, ("uniform", "sobol")
LIMITS = {"normals": [[1.0, 0.1], [0.0, 1.0]], "offsets": [1.0, 7.0]}
LOWER, UPPER = torch.tensor([-1.0, 0.0, 0.0]).double(), torch.tensor([3.0, 10.0, 1.0]).double()
HALF = [[1.0, 0.1, 0.0], [0.0, 1.0, 2.0]], [1.0, 7.0]
SUM = [[0.25, 0.1, 1.0], [-0.25, -0.1, -1.0]], [0.75, -0.75]
FEW = {0: (-1.0, 0.3, 1.5, 2.2, 3.0)}
MANY = {0: tuple(torch.linspace(-1, 3, 30).tolist()), 1: tuple(torch.linspace(0, 10, 11).tolist())}
EVERY = {0: FEW[0], 1: (0.0, 1.0, 2.0, 4.0, 8.0, 9.5), 2: (0.0, 0.4, 1.0)}
REGIONS = {
    "a box": (None, {}),
    "limits": (HALF, {}),
    "an equality": (SUM, {}),
    "few levels": (None, FEW),
    "few levels within limits": (HALF, FEW),
    "few levels under an equality": (SUM, FEW),
    "many levels": (None, MANY),
    "many levels within limits": (HALF, MANY),
    "many levels under an equality": (SUM, MANY),
    "levels alone": (None, EVERY),
    "levels alone within limits": (HALF, EVERY),
    "more levels than are listed": (None, {**MANY, 2: tuple(torch.linspace(0, 1, 20).tolist())}),
    "a held coordinate": (None, {1: (6.5,)}),
}


def region_of(name):
    limits, levels = REGIONS[name]
    rows = (
        None
        if limits is None
        else Polytope(("a", "b", "c"), *(torch.tensor(each).double() for each in limits))
    )
    return CandidateRegion.within(LOWER, UPPER, rows).at(levels)


def hilly(actions):
    """Three hills, of which the middle one is the highest."""
    unit = (actions - LOWER) / (UPPER - LOWER)
    tops = torch.tensor([[0.1, 0.2, 0.5], [0.45, 0.45, 0.1], [0.85, 0.9, 0.8]]).double()
    squares = (unit.unsqueeze(-2) - tops).square().sum(-1)
    return (torch.tensor([1.0, 1.4, 1.2]).double() * (-squares / 0.03).exp()).sum(-1)


def cut(actions):
    """The same, undefined around its top."""
    values = hilly(actions)
    return values.where(values < 1.1, torch.nan)


def grid(region, value):
    """The largest value of an enumerated grid with all levels."""
    axes = [torch.linspace(0, 1, 41, dtype=DOUBLE) for _ in LOWER]
    for column, levels in getattr(region, "unit_levels", {}).items():
        axes[column] = torch.tensor(levels, dtype=DOUBLE)
    points = torch.cartesian_prod(*axes)
    flat, offsets = region.equalities
    if len(flat):
        # The last coordinate follows from the others.
        points[:, 2] = (offsets - points[:, :2] @ flat[0, :2]) / flat[0, 2]
    inside = ((points >= 0) & (points <= 1)).all(-1)
    inside &= (points @ region.inequalities[0].mT <= region.inequalities[1] + 1e-9).all(-1)
    return float(value(region.units(points[inside])).nan_to_num(-torch.inf).max())


def found_in(region, value=hilly, sizes=(256, 8, 60), **more):
    known = LOWER.new_zeros(0, 3)
    return maximised(NetworkAcquisition(value), region, known, *sizes, 0, **more)


@pytest.mark.parametrize("value", [hilly, cut])
@pytest.mark.parametrize("name", REGIONS)
def test_the_best_of_an_enumerated_grid_is_found(name, value):
    region = region_of(name)
    found = found_in(region, value)
    best = region.units(found.points[:1])
    assert bool(region.contains(region.into(found.points)).all())
    torch.testing.assert_close(region.into(found.points[:1]), found.points[:1], rtol=0, atol=1e-7)
    assert float(found.values[0]) == pytest.approx(float(value(best)), abs=1e-12)
    # Next to an edge of what is defined an ascent turns back a little earlier.
    assert float(found.values[0]) >= grid(region, value) - (1e-6 if value is hilly else 0.02)


@pytest.mark.parametrize("name", ["a box", "an equality", "few levels", "many levels"])
def test_what_is_found_follows_from_the_seed_and_leaves_the_global_state_alone(name):
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = found_in(region_of(name), sizes=(64, 4, 20))
    assert torch.equal(state, torch.random.get_rng_state())
    torch.manual_seed(6)
    assert torch.equal(first.points, found_in(region_of(name), sizes=(64, 4, 20)).points)


def test_where_nothing_is_defined_nothing_is_found():
    with pytest.raises(NoFiniteValueError):
        found_in(region_of("a box"), lambda actions: actions.sum(-1) * torch.nan)


@pytest.mark.parametrize("name", REGIONS)
def test_a_budget_ends_it_at_the_first_points_and_one_that_is_not_spent_changes_nothing(name):
    region, sizes = region_of(name), (64, 4, 20)
    whole, spent = found_in(region, sizes=sizes), Budget(1e-9)
    few = found_in(region, sizes=sizes, budget=spent)
    assert few.evaluations <= 512
    assert few.evaluations < whole.evaluations or name.startswith("levels alone")
    assert torch.equal(found_in(region, sizes=sizes, budget=Budget(1e6)).points, whole.points)


def test_known_actions_are_starts():
    peak = torch.tensor([0.123, 4.567, 0.891], dtype=DOUBLE)

    def needle(actions):
        return (-1e6 * (actions - peak).square().sum(-1)).exp()

    function, region = NetworkAcquisition(needle), region_of("a box")
    found = maximised(function, region, peak[None] + 1e-4, 16, 2, 30, 0)
    assert float(found.values[0]) == pytest.approx(1.0, abs=1e-6)


LEVELS = {"a": {"values": [-1, 0.3, 1.5, 2.2, 3]}, "b": {"values": [0, 1, 2, 4, 8, 9.5]}}
OBJECTIVES = {
    "posterior mean": PosteriorMean,
    "bound": ConfidenceBound,
    **{name: partial(MonteCarlo, function=name, members=8, draws=4) for name in FUNCTIONS},
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_best_of_all_levels_is_found(name):
    model = hills(actions=LEVELS)
    objective = OBJECTIVES[name](model, one_case(model.task))
    points = torch.cartesian_prod(*(torch.tensor(each["values"]).double() for each in LEVELS.values()))
    with torch.no_grad():
        values = objective(points)
    decision = AcquisitionSearch()(objective)
    assert decision.value == decision.trace["acquisition"] == pytest.approx(float(values.max()), abs=1e-12)
    assert torch.equal(decision.alteration.values, points[values.argmax()])


@pytest.mark.slow
@pytest.mark.parametrize("make", [ConfidenceBound, MonteCarlo])
def test_the_same_seed_gives_the_same_decision(make):
    model = hills()

    def asked(seed, identity="4"):
        return AcquisitionSearch(screened=64, starts=4, seed=seed)(
            make(model, one_case(model.task, identity), seed=seed)
        ).to_dict()

    assert asked(0) == asked(0)
    assert asked(0) != asked(1)
    assert asked(0) != asked(0, "5")


def test_a_narrower_round_narrows_the_search():
    model = hills()
    decision = AcquisitionSearch()(
        ConfidenceBound(model, RehearsalCase("0", {}, {"a": (0.5, 0.5), "b": (1.0, 2.0)}))
    )
    assert decision.alteration.values[0] == 0.5
    assert 1.0 <= decision.alteration.values[1] <= 2.0


@pytest.mark.parametrize("held", [{"a": (0.77,)}, {"b": (8.0,)}])
def test_a_held_action_keeps_its_value_in_what_is_tried_and_recommended(held):
    model = hills()
    decision = AcquisitionSearch()(
        ConfidenceBound(model, RehearsalCase("0", {}, model.task.box.bounds(), levels=held))
    )
    ((name, (kept,)),) = held.items()
    for chosen in (decision.alteration, decision.recommendation):
        assert float(chosen.values[chosen.names.index(name)]) == kept


def given(predicted=2.5, visited=((0.5, 1.5), (0.1, 2.0)), spoilt=None):
    """The decision for a given recommendation at (.4, 1), and the objective."""
    model = linear_chain()
    objective = PosteriorMean(model, one_case(model.task), draws=8)
    if spoilt is not None:
        objective.plausible = lambda actions: torch.full((len(actions), 32), spoilt, dtype=DOUBLE)
    known = torch.tensor(visited, dtype=DOUBLE).reshape(-1, 2)
    found = Recommendation(torch.tensor([0.4, 1.0], dtype=DOUBLE), predicted, known, 11)
    proposal = Proposal(torch.tensor([0.3, 0.4], dtype=DOUBLE), 0.7, {"search": "a search", "more": 1})
    return objective, found, decided(objective, proposal, found, Budget())


def test_the_decision_says_what_is_tried_and_what_is_recommended_with_its_interval() -> None:
    objective, found, decision = given()
    assert decision.alteration.names == ("a", "b")
    assert decision.alteration.values.tolist() == [0.3, 0.4]
    assert decision.recommendation.values.tolist() == [0.4, 1.0]
    claim, sure, trace = decision.estimate, sureness(objective, found), decision.trace
    assert (decision.value, claim.point, claim.level) == (0.7, 2.5, 0.95)
    assert claim.upper - 2.5 == pytest.approx(1.959964 * sure.std)
    assert 2.5 - claim.lower == pytest.approx(1.959964 * sure.std)
    told = [trace[name] for name in ("search", "acquisition", "evaluations", "more")]
    assert told == ["a search", 0.7, 11, 1]
    assert trace["runner_up"]["action"] == {"a": 0.5, "b": 1.5}
    assert trace["runner_up"]["predicted"] == sure.runner_up_predicted
    assert trace["runner_up"]["chance"] == round(sure.chance, 6)


def test_a_contradicted_model_is_told_of() -> None:
    objective, found, decision = given()
    assert "bad_fit" not in [each.kind for each in decision.findings]
    objective.surrogate.contradicted = lambda: ("X",)
    proposal = Proposal(decision.alteration.values, 0.7, {})
    told = decided(objective, proposal, found, Budget()).findings
    assert [each.kind for each in told] == ["bad_fit"]
    assert "contradict what the model assumes of X" in told[0].text


def test_where_nothing_is_known_of_the_recommendation_nothing_is_claimed() -> None:
    _, _, decision = given(predicted=math.nan)
    assert decision.estimate is None
    assert "runner_up" not in decision.trace
    _, _, decision = given(spoilt=math.nan)
    assert (decision.estimate.point, decision.estimate.lower, decision.estimate.level) == (2.5, None, None)
    assert "runner_up" not in decision.trace
    _, _, decision = given(visited=())
    assert decision.estimate.lower < 2.5 < decision.estimate.upper
    assert "runner_up" not in decision.trace


def both(model):
    objective = PosteriorMean(model, one_case(model.task))
    found = recommend(objective, 0)
    return found, sureness(objective, found)


def test_mean_and_standard_deviation_are_those_of_the_chain():
    # Y = 1.5 X - b, X = 2 a: E[Y] = 3 a - b, sd^2 = (1.5 .3 (1 + a))^2 + (.2 (1 + b))^2, largest at (1, 0).
    found, sure = both(linear_chain([[0.5, 0.5], [1.0, 0.0], [0.2, 1.5]]))
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.predicted == pytest.approx(3.0, abs=0.05)
    assert sure.std == pytest.approx(BEYOND * math.hypot(0.9, 0.2), rel=0.1)


def test_an_action_may_move_while_it_is_as_likely_as_not_that_little_is_lost():
    # 3 (1 - a) and b are lost on average.
    _, sure = both(linear_chain([[0.5, 0.5], [1.0, 0.0], [0.2, 1.5]]))
    assert sure.tolerance == pytest.approx(sure.std)
    assert sure.margins["a"] == pytest.approx((1 - sure.tolerance / 3, 1.0), abs=0.1)
    assert sure.margins["b"] == pytest.approx((0.0, sure.tolerance), abs=0.2)


def test_the_runner_up_is_the_best_other_visited_action():
    found, sure = both(linear_chain([[0.9, 0.0], [0.1, 2.0], [0.2, 1.5]]))
    assert found.visited.tolist()[0] == [0.9, 0.0]
    assert sure.runner_up.tolist() == [0.9, 0.0]
    assert sure.runner_up_predicted == pytest.approx(2.7, abs=0.1)
    assert not sure.tried


def test_the_chance_is_that_of_the_difference_in_the_same_networks():
    # f_e(1, 0) - f_e(.9, 0) = .3 + .045 e_X: negative only for e_X < -6.7, however little is known of each.
    _, sure = both(linear_chain([[0.9, 0.0]]))
    assert sure.std > 0.5
    assert sure.chance > 0.999


def test_a_chance_is_even_where_the_two_are_equally_good():
    objective = PosteriorMean(linear_chain([[0.5, 1.5]]), one_case(linear_chain().task))
    # 3 a - b is 0 at both; their difference in a network is .075 e_X - .1 e_Y.
    even = Recommendation(torch.tensor([1 / 3, 1.0]).double(), 0.0, torch.tensor([[0.5, 1.5]]).double(), 0)
    assert sureness(objective, even).chance == pytest.approx(0.5, abs=0.15)


def test_a_recommended_visited_action_is_compared_with_another_one():
    found, sure = both(linear_chain([[1.0, 0.0], [0.9999, 0.0], [0.5, 0.5]]))
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert sure.tried
    assert sure.runner_up.tolist() == [0.5, 0.5]
    _, alone = both(linear_chain([[1.0, 0.0]]))
    assert alone.tried
    assert alone.runner_up is None


def test_without_visited_actions_there_is_no_runner_up():
    _, sure = both(linear_chain([]))
    assert sure.runner_up is None
    assert math.isnan(sure.chance)
    assert not sure.tried


def tied(seed, difference=0.5, replicates=4):
    """Two settings of one action with replicates each and normal noise; the true difference is given."""
    stream = torch.Generator().manual_seed(seed)
    noise = torch.randn(2, replicates, generator=stream, dtype=DOUBLE)
    values = torch.stack([torch.zeros(replicates).double(), torch.full((replicates,), difference).double()])
    a = torch.tensor([0.0, 1.0]).double().repeat_interleave(replicates)
    rows = torch.stack([a, (values + noise).flatten()], -1)
    task = plain({"Y": ["a"]}, {"a": {"values": [0, 1]}}, "Y")
    return task, Table(("a", "Y"), rows, torch.tensor([True, False]).expand(len(rows), 2).clone())


@pytest.mark.slow
def test_the_chance_claimed_is_that_of_the_measured_difference():
    claimed, wanted = [], []
    for seed in range(20):
        task, table = tied(seed)
        model = fit(ExogenousModel(task, phi="homoskedastic", components=1), table)
        objective = PosteriorMean(model, one_case(task))
        sure = sureness(objective, recommend(objective, 0))
        low, high = table.values[:, 1].reshape(2, -1)
        spread = ((low.var() + high.var()) / 2).sqrt()
        claimed.append(sure.chance)
        wanted.append(float(norm.cdf(float((high.mean() - low.mean()).abs() / (spread * math.sqrt(0.5))))))
    assert sum(claimed) / 20 == pytest.approx(sum(wanted) / 20, abs=0.05)


NARROW = {"normals": [[1.0, 0.0], [-1.0, 0.0]], "offsets": [0.001, 0.0]}


def asked_space_filling(model, sampling, identity="0", seed=0):
    return SpaceFilling(sampling, seed)(PosteriorMean(model, one_case(model.task, identity)))


def actions_of(sampling, count, limits=None):
    """The actions of `count` rounds, each with the ones before it among the visited, (count, 2)."""
    visited = []
    for number in range(count):
        model = hills(limits, visited)
        search, objective = SpaceFilling(sampling), PosteriorMean(model, one_case(model.task, str(number)))
        visited.append(search.propose(objective, Budget(None)).action.tolist())
    return torch.tensor(visited, dtype=DOUBLE)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("limits", [LIMITS, NARROW])
def test_nothing_leaves_the_region(sampling, limits):
    model = hills(limits)
    model.task.check_action(asked_space_filling(model, sampling).alteration.values)
    for action in actions_of(sampling, 2, limits):
        model.task.check_action(action)


def test_uniform_actions_are_uniform_over_the_box_and_independent():
    unit = (actions_of("uniform", 300) - torch.tensor([-1.0, 0.0])) / torch.tensor([4.0, 10.0])
    for column in unit.T.numpy():
        assert kstest(column, "uniform").pvalue > 0.01
    assert abs(float(torch.corrcoef(unit.T)[0, 1])) < 0.15
    later = torch.stack([unit[:-1, 0], unit[1:, 0]])
    assert abs(float(torch.corrcoef(later)[0, 1])) < 0.15


def test_sobol_actions_fill_the_box_more_evenly_than_uniform_ones():
    spread = {sampling: actions_of(sampling, 32) for sampling in SAMPLINGS}
    uneven = {
        sampling: qmc.discrepancy(
            ((each - torch.tensor([-1.0, 0.0])) / torch.tensor([4.0, 10.0])).numpy().clip(0, 1)
        )
        for sampling, each in spread.items()
    }
    assert uneven["sobol"] < uneven["uniform"] / 3


def test_sobol_actions_go_on_and_uniform_ones_differ_by_round():
    one, two = hills(visited=[[0.0, 1.0]]), hills(visited=[[0.0, 1.0], [1.0, 1.0]])

    def values(model, sampling, identity, seed=0):
        return asked_space_filling(model, sampling, identity, seed).alteration.values.tolist()

    assert values(one, "sobol", "0") == values(one, "sobol", "8") != values(two, "sobol", "0")
    assert values(one, "uniform", "0") == values(two, "uniform", "0") != values(one, "uniform", "1")
    assert values(one, "uniform", "0") != values(one, "uniform", "0", seed=1)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_what_is_recommended_is_the_maximiser_of_the_posterior_mean_all_the_same(sampling):
    model = hills()
    objective = PosteriorMean(model, one_case(model.task, "3"))
    decision = SpaceFilling(sampling, 5)(objective)
    found = recommend(objective, round_seed(5, "3"))
    assert torch.equal(decision.recommendation.values, found.action)
    assert decision.estimate.point == found.predicted
    # The highest of the three hills stands at (2.5, 8.5), 1.6 high, on the tail of another one.
    assert decision.recommendation.values.tolist() == pytest.approx([2.5, 8.5], abs=0.05)
    assert decision.estimate.point == pytest.approx(1.645, abs=0.03)
    at = decision.alteration.values.unsqueeze(0)
    with torch.no_grad():
        expected = float(objective.expected(at))
    assert decision.value == decision.trace["acquisition"] == decision.trace["predicted_reward"] == expected
    assert decision.trace["search"] == f"{sampling}_actions"
