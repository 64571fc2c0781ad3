from functools import partial

import pytest
import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import NoFiniteValueError
from rehearsal_torch.objectives.trials.botorch_acquisition import FUNCTIONS, BotorchAcquisition
from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.objectives.trials.improvement import Improvement
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.search.trials.box_ascent import ascend
from rehearsal_torch.search.trials.recommendation import Recommendation, sureness
from tests.toys.causal_toys import HILLY, WrittenModel, hills, linear_chain, one_case, plain

LIMITS = {"normals": [[1.0, 0.1], [0.0, 1.0]], "offsets": [1.0, 7.0]}
NARROW = {"normals": [[1.0, 0.0], [-1.0, 0.0]], "offsets": [0.001, 0.0]}


def grid(objective, keep=None, dense=201):
    axes = [
        torch.linspace(float(low), float(high), dense, dtype=torch.float64)
        for low, high in zip(*objective.bounds, strict=True)
    ]
    for name, values in objective.levels.items():
        axes[objective.task.actions.index(name)] = torch.tensor(values, dtype=torch.float64)
    points = torch.cartesian_prod(*axes)
    if keep is not None:
        points = points[keep.contains(points)]
    with torch.no_grad():
        values = torch.cat([objective(part) for part in points.split(2000)])
    return points[values.argmax()], float(values.max())


@pytest.mark.parametrize("beta", [0.0, 2.0])
@pytest.mark.parametrize("limits", [None, LIMITS])
def test_the_best_of_a_dense_grid_is_found(beta, limits):
    model = hills(limits)
    objective = ConfidenceBound(model, one_case(model.task), beta=beta)
    _, value = grid(objective, model.task.limits)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-4
    model.task.check_action(decision.alteration.values)
    assert decision.trace["acquisition"] == decision.value


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("limits", [None, LIMITS])
def test_of_botorchs_functions_too(function, limits):
    model = hills(limits)
    objective = BotorchAcquisition(
        model,
        one_case(model.task),
        function,
        members=8,
        member_draws=4,
        screening_members=4,
        screening_draws=2,
    )
    _, value = grid(objective, model.task.limits)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-4
    model.task.check_action(decision.alteration.values)
    # The maximiser of the posterior mean is among the starts.
    with torch.no_grad():
        assert decision.value >= float(objective(decision.recommendation.values)) - 1e-9


def test_the_recommendation_is_the_maximiser_of_the_posterior_mean():
    model = hills()
    objective = ConfidenceBound(model, one_case(model.task), beta=3.0)
    where, value = grid(PosteriorMean(model, one_case(model.task)))
    decision = AcquisitionSearch()(objective)
    advised = decision.recommendation.values
    assert torch.allclose(advised, where, atol=0.06)
    assert decision.estimate.point == pytest.approx(value, abs=0.02)
    assert decision.trace["predicted_reward"] < decision.estimate.point


def test_pushes_are_chosen_along_with_the_action():
    model = linear_chain()
    decision = AcquisitionSearch()(ConfidenceBound(model, one_case(model.task), propagate="optimistic"))
    # 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)) is largest at a = 1, b = 0.
    assert decision.alteration.values.tolist() == pytest.approx([1.0, 0.0])
    assert decision.trace["perturbations"] == pytest.approx([1.0])
    assert decision.value == pytest.approx(3 + 2 * (0.9 + 0.2), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("make", [ConfidenceBound, Improvement, BotorchAcquisition])
def test_the_same_seed_gives_the_same_decision(make):
    model = hills()

    def asked(seed, identity="4"):
        return AcquisitionSearch(screened=64, starts=8, seed=seed)(
            make(model, one_case(model.task, identity), seed=seed)
        ).to_dict()

    assert asked(0) == asked(0)
    assert asked(0) != asked(1)
    assert asked(0) != asked(0, "5")


@pytest.mark.parametrize("limits", [None, LIMITS, NARROW])
def test_nothing_leaves_the_region(limits):
    model = hills(limits)
    objective = ConfidenceBound(model, one_case(model.task))
    region = objective.region()
    spread = region.spread(50, 3)
    assert spread.shape == (50, 2)
    for each in region.units(spread):
        model.task.check_action(each)
    outside = region.into(torch.tensor([[2.0, -3.0], [0.5, 0.5], [1.0, 1.0]], dtype=torch.float64))
    for each in region.units(outside):
        model.task.check_action(each)
    found = ascend(objective, region, spread[:5], steps=20)
    for each in region.units(found.points):
        model.task.check_action(each)


def test_a_narrower_round_narrows_the_search():
    model = hills()
    decision = AcquisitionSearch()(
        ConfidenceBound(model, RehearsalCase("0", {}, {"a": (0.5, 0.5), "b": (1.0, 2.0)}))
    )
    assert decision.alteration.values[0] == 0.5
    assert 1.0 <= decision.alteration.values[1] <= 2.0


def test_batched_ascents_do_not_influence_each_other():
    model = hills()
    objective = ConfidenceBound(model, one_case(model.task))
    region = objective.region()
    starts = region.spread(4, 0)
    joined = ascend(objective, region, starts, steps=30, kept=4)
    apart = sorted(
        (ascend(objective, region, start.unsqueeze(0), steps=30).values.item() for start in starts),
        reverse=True,
    )
    assert joined.values.tolist() == pytest.approx(apart, abs=1e-9)


def test_values_that_are_no_numbers_are_reported():
    model = hills()
    region = PosteriorMean(model, one_case(model.task)).region()
    with pytest.raises(NoFiniteValueError, match="expected a finite value"):
        ascend(lambda points: (points - 10).log().sum(-1), region, region.spread(3, 0))


@pytest.mark.parametrize("given", [{"screened": 8, "starts": 16}, {"kept": 0}, {"incumbents": 40}])
def test_bad_settings_are_refused(given):
    with pytest.raises(ValueError, match="expected"):
        AcquisitionSearch(**given)


LEVELS = {"a": {"values": [-1, 0.3, 1.5, 2.2, 3]}, "b": [0, 10]}
BOTORCH = {"members": 8, "member_draws": 4, "screening_members": 4, "screening_draws": 2}
OBJECTIVES = {
    "posterior mean": PosteriorMean,
    "bound": ConfidenceBound,
    "bound with perturbations": partial(ConfidenceBound, propagate="optimistic"),
    "improvement": Improvement,
    **{name: partial(BotorchAcquisition, function=name, **BOTORCH) for name in FUNCTIONS},
}


@pytest.mark.parametrize("limits", [None, LIMITS])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_best_of_the_levels_is_found(name, limits):
    model = hills(limits, actions=LEVELS)
    objective = OBJECTIVES[name](model, one_case(model.task))
    _, value = grid(objective, model.task.limits, 2001)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-6
    for action in (decision.alteration.values, decision.recommendation.values):
        model.task.check_action(action)
        assert float(action[0]) in LEVELS["a"]["values"]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_best_of_all_levels_is_found(name):
    model = hills(actions={**LEVELS, "b": {"values": [0, 1, 2, 4, 8, 9.5]}})
    objective = OBJECTIVES[name](model, one_case(model.task))
    where, value = grid(objective)
    decision = AcquisitionSearch()(objective)
    assert decision.value == pytest.approx(value, abs=1e-12)
    assert torch.equal(decision.alteration.values, where)


@pytest.mark.parametrize("held", [{"a": (0.77,)}, {"b": (8.0,)}])
@pytest.mark.parametrize("actions", [HILLY, LEVELS])
def test_a_held_action_keeps_its_value_and_the_other_is_the_best_with_it(held, actions):
    if "a" in held and actions is LEVELS:
        held = {"a": (2.2,)}
    model = hills(actions=actions)
    case = RehearsalCase("0", {}, model.task.box.bounds(), levels=held)
    objective = ConfidenceBound(model, case)
    _, value = grid(objective, dense=20_001)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-6
    ((name, (kept,)),) = held.items()
    for chosen in (decision.alteration, decision.recommendation):
        assert float(chosen.values[chosen.names.index(name)]) == kept


def test_pushes_are_chosen_along_with_levels():
    task = plain({"X": ["a"], "Y": ["X", "b"]}, {"a": {"values": [0, 0.3, 0.8]}, "b": [0, 2]}, "Y")
    model = WrittenModel(task, dict(zip(("X", "Y"), linear_chain().laws, strict=True)), [[0.3, 1.0]])
    decision = AcquisitionSearch()(ConfidenceBound(model, one_case(task), propagate="optimistic"))
    # 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)) is largest at a = .8, b = 0.
    assert decision.alteration.values.tolist() == pytest.approx([0.8, 0.0])
    assert decision.trace["perturbations"] == pytest.approx([1.0])
    assert decision.value == pytest.approx(2.4 + 2 * (0.81 + 0.2), abs=0.01)


def test_the_claim_has_the_interval_and_the_runner_up_of_the_recommendation():
    model = hills()
    objective = PosteriorMean(model, one_case(model.task))
    decision = AcquisitionSearch()(objective)
    found = Recommendation(decision.recommendation.values, decision.estimate.point, objective.starts(6), 0)
    sure = sureness(objective, found)
    claim = decision.estimate
    assert claim.level == 0.95
    assert claim.upper - claim.point == pytest.approx(1.959964 * sure.std)
    assert claim.point - claim.lower == pytest.approx(1.959964 * sure.std)
    beside = decision.trace["runner_up"]
    assert list(beside["action"].values()) == pytest.approx(sure.runner_up.tolist())
    assert beside["predicted"] == pytest.approx(sure.runner_up_predicted)
    assert beside["chance"] == pytest.approx(sure.chance, abs=1e-6)
    assert beside["predicted"] < claim.point
