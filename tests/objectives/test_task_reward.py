import itertools
import math
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis import strategies as st

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, return_record
from rehearsal_torch.objectives.step_reward import Doses
from rehearsal_torch.objectives.task_reward import (
    WITH_DOSES,
    WITHOUT_DOSES,
    EpisodeReward,
    StepFunction,
    StepScore,
    episode_reward,
)
from rehearsal_torch.problems.sequences.sepsis_cohort import STATES, SepsisSimulated, sofa
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import transition_model

NAMES = ("wear", "heat")
SCORE = {"bearing": {"wear": {"> 50": 1, "> 70": 3}}}
COSTS = {"service": [0.0, 2.0, 6.0], "oil": 0.5}
# Three actions: none; minor service and 4 units of oil; major service.
ACTIONS = Doses(("service", "oil"), torch.tensor([[0.0, 0.0], [1.0, 4.0], [2.0, 0.0]], dtype=torch.float64))
whole = episode_reward({"heat": -0.1}, SCORE, COSTS)


def states(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_weights_score_and_costs_add_up():
    found = whole(states([60.0, 40.0], [80.0, 10.0]), NAMES, ACTIONS)
    # -.1 heat - points - costs (0, 4, 6).
    assert found.tolist() == [[-5.0, -9.0, -11.0], [-4.0, -8.0, -10.0]]


def test_where_nothing_was_done_nothing_is_charged():
    still = Doses(ACTIONS.names, torch.full((1, 2), torch.nan, dtype=torch.float64))
    dosed = episode_reward({"heat": -0.1}, {"low": {"oil": {"< 1": 2}}}, {"service": [5.0, 0.0]}, ["oil"])
    here = states([60.0, 40.0])
    assert dosed(here, NAMES, ACTIONS).tolist() == [[-11.0, -4.0, -6.0]]
    assert dosed(here, NAMES, still).tolist() == [[-4.0]]
    assert dosed.highest(here, here, NAMES, still).tolist() == [[-4.0]]
    assert dosed(states([60.0, torch.nan]), NAMES, still).isnan().all()


def test_the_actions_may_differ_from_step_to_step_and_states_have_members():
    each = torch.stack([ACTIONS.values, ACTIONS.values.flip(0)])  # (T, A, p)
    found = whole(states([60.0, 40.0], [60.0, 40.0]), NAMES, Doses(ACTIONS.names, each))
    assert found.tolist() == [[-5.0, -9.0, -11.0], [-11.0, -9.0, -5.0]]
    members = states([60.0, 40.0], [60.0, 40.0]).unsqueeze(1).expand(2, 4, 2)  # (T, M, D)
    spread = whole(members, NAMES, Doses(ACTIONS.names, each.unsqueeze(-3)))
    assert torch.equal(spread, found.unsqueeze(1).expand(2, 4, 3))


def test_it_says_what_it_reads():
    assert (whole.reads, whole.reads_doses, whole.acts) == (("heat", "wear"), ("service", "oil"), True)
    dosed = episode_reward({"heat": 1.0}, {"shock": {"oil": {"> 3": 1}}}, doses=["oil"])
    assert (dosed.reads, dosed.reads_doses, dosed.acts) == (("heat",), ("oil",), True)
    still = episode_reward({"heat": 1.0}, SCORE)
    assert not still.acts
    assert still(states([60.0, 40.0]), NAMES).tolist() == [[39.0]]
    assert still(states([60.0, 40.0]), NAMES, ACTIONS).tolist() == [[39.0]]
    with pytest.raises(ValueError, match=r"reads the actions \['service', 'oil'\]: pass those of each step"):
        whole(states([60.0, 40.0]), NAMES)


def test_what_costs_make_of_a_gain_is_reported():
    related = whole.related()
    assert list(related) == ["without costs", "with costs"]
    state = states([60.0, 40.0])
    assert related["without costs"](state, NAMES).tolist() == [[-5.0]]
    assert torch.equal(related["with costs"](state, NAMES, ACTIONS), whole(state, NAMES, ACTIONS))
    assert EpisodeReward((), {"oil": 1}).related() == {}


def test_a_score_that_reads_doses_is_guarded_beside_costs_and_weights_too():
    shock = {"shock": {"wear": {"> 50": 1}, "oil": {"> 3": 4}}}
    alone = episode_reward(components=shock, doses=["oil"])
    state = states([60.0, 40.0])
    for weights, costs in (({"heat": -0.1}, None), (None, COSTS), ({"heat": -0.1}, COSTS)):
        found = episode_reward(weights, shock, costs, ["oil"])
        assert list(found.guarded()) == ["without doses", "with doses"]
        for name, each in found.guarded().items():
            assert torch.equal(each(state, NAMES, ACTIONS), alone.guarded()[name](state, NAMES, ACTIONS))
            assert name in found.related()
    assert whole.guarded() == {}


def test_the_lipschitz_constant_is_that_of_the_states():
    scale = torch.tensor([100.0, 20.0], dtype=torch.float64)
    assert whole.lipschitz(NAMES, scale) == math.inf
    smooth = episode_reward({"heat": -0.1, "wear": 0.03}, None, COSTS)
    assert smooth.lipschitz(NAMES, scale) == pytest.approx(math.hypot(3.0, 2.0), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(some.lists(some.floats(0, 100), min_size=4, max_size=4), some.floats(0, 1), some.floats(0, 1))
def test_the_bound_holds_over_boxes(ends, first, second):
    pairs = torch.tensor(ends, dtype=torch.float64).reshape(2, 2)
    lower, upper = pairs.amin(0), pairs.amax(0)
    inside = lower + (upper - lower) * torch.tensor([first, second], dtype=torch.float64)
    bound = whole.highest(lower, upper, NAMES, ACTIONS)
    assert bool((bound >= whole(inside, NAMES, ACTIONS) - 1e-9).all())
    assert torch.equal(whole.highest(inside, inside, NAMES, ACTIONS), whole(inside, NAMES, ACTIONS))


CONF = Path(__file__).parents[2] / "conf" / "reward"
VASO = ("max_dose_vaso",)


def sofa_score(**more) -> StepScore:
    settings = yaml.safe_load((CONF / "sofa_score.yaml").read_text(encoding="utf-8"))
    return StepScore(settings["components"], settings["doses"], **more)


def test_the_rules_of_the_file_are_the_sofa_score_of_a_simulated_cohort():
    cohort = SepsisSimulated(patients=60, seed=3).cohort
    rows = cohort.frame()
    states = torch.tensor(rows[list(STATES)].to_numpy())
    given = torch.tensor(rows["max_dose_vaso"].to_numpy())
    reward = sofa_score()(states, STATES, Doses(VASO, given[:, None, None]))
    assert torch.equal(-reward[:, 0], torch.tensor(rows["SOFA"].to_numpy()))
    organs = sofa_score(without_doses=True)
    assert not organs.acts
    assert torch.equal(-organs(states, STATES)[:, 0], sofa(states, torch.zeros_like(given)))


def test_limits_count_as_the_score_has_them():
    healthy = [0.21, 90.0, 200.0, 0.8, 15.0, 80.0, 0.9, 300.0]
    on_the_edge = [
        (1, 84.0, 0), (1, 84.1, 0), (2, 150.0, 1), (2, 100.0, 1), (2, 99.9, 2), (3, 1.2, 1), (3, 12.0, 3),
        (3, 12.1, 4), (4, 14.0, 1), (4, 12.0, 2), (5, 70.0, 0), (5, 69.9, 1), (5, 64.9, 2), (6, 5.0, 3),
        (6, 5.1, 4), (7, 84.0, 0), (7, 83.9, 3), (7, 33.9, 4),
    ]  # fmt: skip
    for place, value, points in on_the_edge:
        state = torch.tensor(healthy, dtype=torch.float64)
        state[place] = value
        if place == 1:
            points += int(value / 0.21 <= 400)
        assert -sofa_score(without_doses=True)(state, STATES).item() == points, (place, value)


RULES = st.dictionaries(
    st.tuples(st.sampled_from(["<", "<=", ">", ">="]), st.integers(-3, 3)).map(lambda x: f"{x[0]} {x[1]}"),
    st.integers(0, 4),
    min_size=1,
    max_size=5,
)


def by_hand(rules, value):
    compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}
    parts = ((*rule.split(), points) for rule, points in rules.items())
    return max([0.0, *(points for sign, limit, points in parts if compare[sign](value, float(limit)))])


@given(RULES)
def test_a_step_function_is_its_rules(rules):
    values = torch.arange(-40, 41, dtype=torch.float64) / 8
    expected = [by_hand(rules, value) for value in values.tolist()]
    assert StepFunction.of(rules, "here")(values).tolist() == expected


def test_a_dose_is_scored_in_its_own_step_and_as_it_was_given():
    """The best single change under a score of the dose alone is to withhold the largest dose; an observed
    dose counts as it was given, not as the median of its level."""
    model = transition_model(4, drugs=1, levels=3)
    (drug,) = model.dose_names
    names = (*model.rescale.names, drug)
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(5, len(names), generator=generator, dtype=torch.float64)
    level = float(model.levels.medians[0, 2])
    values[:, -1] = torch.tensor([0.0, level * 1.01, 0.0, level * 1.02, level * 1.03])
    case = EpisodeCase(Episode("one", names, values))
    score = StepScore({"drug": {drug: {"> 0": 1, f"> {level * 1.005}": 3}}}, [drug])
    wanted = CounterfactualReturn(model, case, score, 2)
    assert wanted.outcome() == -9
    assert wanted.observed.tolist() == model.levels.digitise(values[:, -1:]).tolist()
    assert wanted(wanted.observed).item() == -9
    dearer = wanted.observed.clone()
    dearer[0] = 2
    assert wanted(dearer).item() == -10
    decision = Exhaustive()(wanted)
    assert decision.value == -3
    assert decision.trace["gap"] == 0
    assert GreedyChanges()(wanted).value == -3


def test_a_record_tells_what_is_bookkeeping():
    """Withholding a drug without an effect changes the score with doses, and not the one without."""
    model = transition_model(4, drugs=1, levels=3)
    (drug,) = model.dose_names
    names = (*model.rescale.names, drug)
    values = torch.rand(5, len(names), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values[:, -1] = float(model.levels.medians[0, 2])
    score = StepScore({"a": {"x0": {"> -1e9": 1}, drug: {"> 0": 3}}}, [drug])
    wanted = CounterfactualReturn(model, EpisodeCase(Episode("one", names, values)), score, 2)
    record = return_record(wanted, GreedyChanges()(wanted))
    assert record["related"] == {
        WITHOUT_DOSES: {"value": -5.0, "observed": -5.0},
        WITH_DOSES: {"value": -11.0, "observed": -15.0},
    }


def test_returns_are_sums_of_points_along_every_sequence():
    model = transition_model(5, width=2, drugs=1, levels=3)
    generator = torch.Generator().manual_seed(1)
    names = (*model.rescale.names, *model.dose_names)
    values = torch.rand(4, len(names), generator=generator, dtype=torch.float64) * 2
    middle = float(values[:, 0].mean())
    score = StepScore({"a": {"x0": {f"> {middle}": 1}, "x0 / x1": {"> 1": 2}}, "b": {"x1": {"< 0.5": 1}}})
    wanted = CounterfactualReturn(model, EpisodeCase(Episode("one", names, values)), score, 3)
    sequences = torch.tensor(list(itertools.product(range(3), repeat=3)))
    returns = wanted(sequences)
    for sequence, found in zip(sequences, returns.tolist(), strict=True):
        states = model.units(wanted.replay(sequence[None]))[0].tolist()
        points = sum(max(x > middle, 2 * (x / y > 1)) + (y < 0.5) for x, y in states)
        assert found == -points
    assert Exhaustive()(wanted).value == returns.max().item()


def test_a_thousand_rules_are_read_and_more_are_refused() -> None:
    made = StepFunction.of({f"> {limit}": limit + 1 for limit in range(1000)}, "here")
    assert made(torch.tensor([0.0, 0.5, 998.5, 1e9])).tolist() == [0, 1, 999, 1000]
    with pytest.raises(ValueError, match="here: expected 1 to 1000 rules"):
        StepFunction.of({f"> {limit}": 1 for limit in range(1001)}, "here")


def test_a_score_of_unknown_variables_or_doses_is_refused_before_anything_is_fitted():
    model = transition_model(4)
    with pytest.raises(ValueError, match="some of the variables that the surrogate models"):
        CounterfactualReturn.check(model, reward=StepScore({"a": {"x9": {"> 1": 1}}}))
    with pytest.raises(ValueError, match=r"reward.doses: expected some of the doses .* got \['vaso'\]"):
        CounterfactualReturn.check(model, reward=StepScore({"a": {"vaso": {"> 1": 1}}}, ["vaso"]))
    with pytest.raises(ValueError, match="pass the doses of each action"):
        StepScore({"a": {"vaso": {"> 1": 1}}}, ["vaso"])(torch.zeros(2), ("x0", "x1"))


def test_what_is_not_a_number_has_no_points():
    made = StepFunction.of({"< 3": 1}, "here")
    values = torch.tensor([2.0, math.nan, 4.0], dtype=torch.float64)
    assert made(values)[[0, 2]].tolist() == [1, 0]
    assert made(values)[1].isnan()
    assert StepScore({"a": {"x": {"< 3": 1}}})(values[1:2, None], ("x",)).isnan().all()


def test_scores_with_and_without_doses_are_each_others_related_ones():
    whole, organs = sofa_score(), sofa_score(without_doses=True)
    for one in (whole, organs):
        related = one.related()
        assert list(related) == [WITHOUT_DOSES, WITH_DOSES] == ["without doses", "with doses"]
        assert [each.acts for each in related.values()] == [False, True]
    states = torch.rand(7, 8, dtype=torch.float64) * 100
    assert torch.equal(whole.related()[WITHOUT_DOSES](states, STATES), organs(states, STATES))
    assert StepScore({"a": {"x": {"> 1": 1}}}).related() == {}


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("quantity", "limit", "scale", "margin"),
    [
        ("x", 70.0, 60.0, 6e-8),
        ("x", 0.0, 60.0, 6e-8),
        ("x", 1e9, 2.0, 2e-9),
        ("x", 70.0, math.inf, 7.1e-8),
        ("x / y", 300.0, 60.0, 3e-7),
    ],
)
def test_a_value_within_the_tolerance_of_a_limit_is_at_the_limit(sign, quantity, limit, scale, margin):
    exact = StepScore({"a": {quantity: {f"{sign} {limit}": 1}}})
    tolerant = exact.tolerant(("x", "y"), torch.tensor([scale, 1.0], dtype=torch.float64))
    at = exact(torch.tensor([limit, 1.0], dtype=torch.float64), ("x", "y")).item()
    rounding = 2 * math.ulp(limit)
    for off in (0.0, 0.9 * margin, -0.9 * margin, rounding, -rounding):
        state = torch.tensor([limit + off, 1.0], dtype=torch.float64)
        assert tolerant(state, ("x", "y")).item() == at
    for off in (1.1 * margin + 20 * rounding, -1.1 * margin - 20 * rounding):
        state = torch.tensor([limit + off, 1.0], dtype=torch.float64)
        assert tolerant(state, ("x", "y")).item() == exact(state, ("x", "y")).item()


def test_a_dose_is_compared_with_its_limit_exactly_and_a_variable_that_never_varies_too():
    dose = StepScore({"a": {"drug": {"> 0": 1}}}, ["drug"])
    assert dose.tolerant(("x",), torch.ones(1)).components == dose.components
    still = StepScore({"a": {"x": {"< 0": 1}}}).tolerant(("x",), torch.zeros(1))
    assert still(torch.tensor([[0.0], [-1e-300]], dtype=torch.float64), ("x",)).tolist() == [[0.0], [-1.0]]


@given(st.integers(0, 10_000), st.sampled_from([0.0, 1e-12, 0.1, 1.0, 10.0]), st.booleans(), st.booleans())
def test_no_state_of_a_box_has_a_higher_reward_than_the_box(seed, size, dosed, tolerant):
    generator = torch.Generator().manual_seed(seed)
    score = StepScore(
        {
            "a": {"x0": {"> -0.5": 1, "> 0.5": 2}, "x0 / x1": {"> 1": 3, "< -1": 1}},
            "b": {"x1": {"< 0.5": 1, "> 0": 2}, "drug": {"> 0": 1.5}},
            "c": {"x2 / drug": {"< 2": 1}, "x0": {"< 0": 0.5}},
        },
        ["drug"],
        without_doses=not dosed,
    )
    names = ("x0", "x1", "x2")
    score = score.tolerant(names, torch.ones(3, dtype=torch.float64)) if tolerant else score
    centre = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    centre[::2] = (2 * centre[::2]).round() / 2  # at the limits
    centre[:, 1] += 0.5 * (centre[:, 1] == 0)
    radius = size * torch.rand(20, 3, generator=generator, dtype=torch.float64)
    lower, upper = centre - radius, centre + radius
    doses = Doses(("drug",), torch.tensor([[0.0], [0.5], [2.0]], dtype=torch.float64))
    bound = score.highest(lower, upper, names, doses)
    share = torch.rand(200, 20, 3, generator=generator, dtype=torch.float64)
    share[:2] = share[:2].round()
    rewards = score(lower + share * (upper - lower), names, doses)
    assert bound.shape == rewards.shape[1:] == (20, 3 if dosed else 1)
    assert not (rewards > bound).any()
    if not size:  # without width, only a denominator of 0 leaves anything open
        assert torch.equal(bound[:, -2:], score(centre, names, doses)[:, -2:])
