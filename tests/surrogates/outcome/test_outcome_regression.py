"""Outcome regression: its parts, what it refuses, and success where hardly a row is desired."""

from copy import deepcopy
from functools import partial

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.objectives.outcome_success import OutcomeSuccess
from rehearsal_torch.problems.rehearsal.bermuda import Bermuda
from rehearsal_torch.problems.rehearsal.nonlinear_worlds import YesNo
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.projected_ascent import SampledRefinement
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.outcome_regression import (
    OutcomeKind,
    OutcomeRegression,
    latent_face,
    values_of,
)
from rehearsal_torch.surrogates.outcome.posterior_success import SuccessInContexts
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates
from rehearsal_torch.training.fit import fit
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    sequential,
    sequential_table,
)

SMALL = {"members": 2, "frequencies": 20, "evidence_rows": 60, "iterations": 5}


def test_every_distribution_of_the_formula_has_a_regression():
    model = fit(OutcomeRegression(confounded(candidates=[["a"], ["a", "c"]]), **SMALL), confounded_table(80))
    assert model.before == ("u",)
    assert [len(model.models(which).outcomes) for which in (0, 1)] == [2, 2]
    assert model.models(1).columns == [0]
    assert model.models(1).between is None
    assert (model.models(1).outcomes[0].inputs, model.no_action.inputs) == (4, 1)
    other = fit(OutcomeRegression(sequential(), **SMALL), sequential_table(80))
    models = other.models(0)
    assert models.before is None
    assert models.between.inputs == 2
    assert models.first == [0]
    assert models.outcomes[0].inputs == 4
    assert model.faults() == other.faults() == []


def test_the_fits_have_kernels_of_different_rows():
    model = fit(OutcomeRegression(confounded(), **SMALL), confounded_table(200))
    one, other = model.models(0).outcomes
    assert not torch.allclose(one.widths, other.widths)
    assert one.residuals.shape == other.residuals.shape == (200, 1)


def test_draws_are_kept_until_the_model_changes():
    model = fit(OutcomeRegression(confounded(), **SMALL), confounded_table(80))
    before = model.success(0, 4, 5, 0)
    assert model.success(0, 4, 5, 0) is before
    assert model.success(0, 4, 5, 1) is not before
    assert deepcopy(model).success(0, 4, 5, 0) is not before
    fit(model, confounded_table(90))
    assert model.success(0, 4, 5, 0).noise.shape == before.noise.shape
    assert not torch.equal(model.success(0, 4, 5, 0).noise, before.noise)


def test_regressions_of_other_widths_are_noticed():
    model = fit(OutcomeRegression(confounded(), **SMALL), confounded_table(80))
    model.fits[0][1] = model.no_action
    assert model.faults() == ["fits.0.1: expected 3 inputs and 1 outputs; got 1 and 1"]


def yes_no(task, table, above=0.0):
    """The same task and table with an outcome that only says whether y is above a bound."""
    values = table.values.clone()
    values[:, -1] = (values[:, -1] > above).double()
    plain = task.to_plain() | {"region": {"y": [0.5, None]}}
    return RehearsalTask.of(plain), Table.observed(table.names, values)


@pytest.mark.slow
def test_the_probability_of_a_yes_is_that_after_the_alteration():
    task, table = yes_no(confounded(), confounded_table(1500), 2.0)
    model = fit(OutcomeRegression(task), table)
    x = torch.tensor([[0.0]], dtype=torch.float64)
    success = model.success(0, 60, 100, 0)
    for action in (-0.5, 0.8, 1.4):
        a = torch.tensor([[action]], dtype=torch.float64)
        shares = success.once(model.contexts(x), model.scaler.standardised(("a",), a))
        assert float(shares.mean()) == pytest.approx(float(confounded_truth(x[0, 0], a[0, 0])), abs=0.06)
    before = model.success_without_action(model.contexts(x), 60, 100)
    assert before.shape == (1, 60)
    # y = -2 u + e with a variance of 5.09 where nothing is set.
    nothing = float(torch.special.ndtr(torch.tensor(-2 / (4 + 1 + 0.09) ** 0.5)))
    assert float(before.mean()) == pytest.approx(nothing, abs=0.06)


def test_a_model_of_success_is_read_again():
    task, table = yes_no(confounded(), confounded_table(120))
    model = fit(OutcomeRegression(task, **SMALL), table)
    assert model.outcome_kind.of_success
    assert isinstance(model.models(0).outcomes[0], FeatureClassifier)
    again = OutcomeRegression(task, **SMALL)
    again.load_state_dict(model.state_dict())
    assert isinstance(again.no_action, FeatureClassifier)
    assert again.faults() == []
    x, a = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    assert torch.equal(again.success(0, 8, 9, 0).once(x, a), model.success(0, 8, 9, 0).once(x, a))


def test_held_out_rows_do_not_decide_what_is_modelled():
    task, table = yes_no(confounded(), confounded_table(120))
    model = fit(OutcomeRegression(task, **SMALL), table, held_out=confounded_table(50))
    assert model.outcome_kind.of_success
    assert model.faults() == []


def test_with_one_yes_no_outcome_of_two_the_whole_region_is_judged():
    table = confounded_table(300)
    values = torch.cat((table.values, (table.values[:, 1:2] < 0).double()), -1)
    rows = Table.observed((*table.names, "z"), values)
    plain = confounded().to_plain() | {"region": {"y": [0.0, None], "z": [0.5, None]}}
    plain["graph"] = {"parents": {"u": [], "a": ["x", "u"], "c": ["x"], "y": ["x", "a", "u"], "z": ["u"]}}
    task = RehearsalTask.of(plain)
    model = fit(OutcomeRegression(task, **SMALL), rows)
    assert model.outcome_kind.of_success
    assert (model.faces.count, model.no_action.outputs) == (1, 1)
    desired = task.region.contains(rows.columns(("y", "z"))).double()
    found = model.left_out(rows, 0, torch.arange(300) % 2)
    assert float((found - desired).square().mean()) < 0.6 * float(desired.var())


@pytest.mark.slow
def test_a_yes_no_covariate_is_averaged_over():
    """Frailty, 0 or 1, makes the drug likelier and recovery less likely; neither is the drug's doing."""
    world = YesNo(size=SampleSize(rows=6000, contexts=12))
    model = fit(OutcomeRegression(world.task), world.observations())
    given = world.given([world.case(index) for index in range(12)])
    for drug in (0.0, 1.0):
        actions = torch.full((12, 1), drug, dtype=torch.float64)
        shown = model.scaler.standardised(("drug",), actions)
        shares = model.success(0, 60, 100, 0).once(model.contexts(given), shown).mean(-1)
        apart = shares - world.probability(given, ("drug",), actions)
        assert float(apart.abs().max()) < 0.08
        assert float(apart.mean().abs()) < 0.02


def test_no_member_is_refused():
    with pytest.raises(ValueError, match="expected at least 1 member; got 0"):
        OutcomeRegression(confounded(), members=0)


def test_rows_left_out_are_predicted_from_the_others():
    table = confounded_table(300)
    model = fit(OutcomeRegression(confounded(), **SMALL), table)
    folds = torch.arange(300) % 2
    desired = model.task.region.contains(table.columns(("y",))).double()
    found = model.left_out(table, 0, folds)
    assert ((found >= 0) & (found <= 1)).all()
    assert float((found - desired).square().mean()) < 0.5 * float(desired.var())
    values = table.values.clone()
    values[::2, table.names.index("y")] = 0.0
    other = model.left_out(Table.observed(table.names, values), 0, folds)
    assert torch.equal(other[::2], found[::2]), "their own outcomes are not used"
    assert not torch.equal(other[1::2], found[1::2])


@pytest.mark.bench
@pytest.mark.parametrize("seed", [6, 7])
def test_a_region_that_one_row_in_a_thousand_reaches_is_reached(seed):
    world = Bermuda(preset="neurips24", seed=seed)
    assert float(world.desired(world.observations().columns(("NEC",))).double().mean()) < 0.005
    model = fit(OutcomeRegression(world.task, seed=seed), world.observations())
    cases = [world.case(index) for index in range(8)]
    decisions = SampledRefinement().batch_search(OutcomeSuccess.for_cases(model, cases))
    scores = [world.score(one, each)["probability"] for one, each in zip(cases, decisions, strict=True)]
    claims = [each.estimate.point for each in decisions]
    assert sum(scores) / 8 > 0.8
    assert sum(claims) / 8 == pytest.approx(sum(scores) / 8, abs=0.05)


SETTINGS = {"frequencies": 20, "evidence_rows": 80, "iterations": 6}


def model(classified):
    return (FeatureClassifier if classified else FeatureRegression)(**SETTINGS)


def kind(bounds):
    return OutcomeKind(model, FaceCoordinates.of(Polytope.of({"y": bounds})), 0)


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([torch.arange(100) % 2], "binary"),
        ([torch.arange(100) % 3], "few"),
        ([torch.arange(300) % 50], "few"),
        ([torch.arange(300) % 51], "many"),
        ([torch.arange(100) % 21], "many"),
        ([torch.arange(14) % 3], "many"),
        ([torch.arange(10) % 2], "binary"),
        ([torch.arange(100), torch.arange(100) % 4], "few"),
        ([torch.arange(100), torch.arange(100) % 2], "binary"),
        ([torch.arange(100)], "many"),
    ],
)
def test_the_outcome_with_the_fewest_values_counts(columns, expected):
    assert values_of(torch.stack(columns, -1).double()) == expected


def test_the_latent_sum_is_desired_from_zero():
    assert latent_face().desired(torch.tensor([[-1e-9], [0.0], [1.0]]).double()).tolist() == [
        False,
        True,
        True,
    ]


def test_a_yes_no_outcome_is_classified_and_a_continuous_one_is_not():
    inputs = drawn(100, 2)
    for outcomes, expected in (((inputs[:, :1] > 0).double(), True), (inputs[:, :1], False)):
        made = kind((0.5, None))
        assert not made.of_success
        made.solve(inputs, outcomes)
        assert made.of_success is expected
        assert made.faults() == []
        assert made.targets(outcomes).shape == (100, 1)
    made = kind((0.5, None))
    made.solve(inputs, (inputs[:, :1] > 0).double())
    assert torch.equal(made.targets(inputs[:, :1]), (inputs[:, :1] >= 0.5).double())


def test_marks_on_a_line_keep_their_slack_and_classes_without_an_order_do_not():
    inputs = drawn(600, 1)
    line = (2 * inputs + 0.5 * drawn(600, 1, seed=2)).round()
    made = kind((5.0, None))
    made.solve(inputs, line)
    assert not made.of_success, "few rows reach the last mark, and all show how far off they are"
    classes = torch.where(line == 0, 3.0, torch.where(line > 0, 1.0, 2.0))
    made = kind((2.5, 3.5))
    made.solve(inputs, classes)
    assert made.of_success


@pytest.mark.parametrize(("bounds", "word"), [((0.5, None), "every one"), ((2.0, None), "none")])
def test_two_values_of_which_all_or_none_are_desired_are_refused(bounds, word):
    outcomes = 1 + (torch.arange(40) % 2).double().unsqueeze(-1) / 2
    with pytest.raises(ValueError, match=f"two values only, and {word} of the 40 rows is desired"):
        kind(bounds).solve(drawn(40, 1), outcomes)


def test_few_values_of_which_none_is_desired_have_a_slack():
    made = kind((9.0, None))
    made.solve(drawn(100, 1), (torch.arange(100) % 4).double().unsqueeze(-1))
    assert not made.of_success


def test_a_choice_that_is_none_is_a_fault():
    made = OutcomeKind(partial(model), FaceCoordinates.of(Polytope.of({"y": (0, 1)})), 0)
    made.classified = torch.tensor([0.5]).double()
    assert made.faults() == ["classified: expected 0 or 1; got 0.5"]


def behind_the_front_door(count, seed=0):
    """t -> m -> y, and h moves t and y: by itself y seems to rise with t, and falls if t is set."""
    stream = torch.Generator().manual_seed(seed)
    x, h, *noises = torch.randn(5, count, dtype=torch.float64, generator=stream)
    t = 0.5 * x + h + noises[0]
    m = t + noises[1]
    y = -m + 2 * h + 0.5 * x + 0.5 * noises[2]
    return Table.observed(("x", "t", "m", "y"), torch.stack((x, t, m, y), -1))


def asked_of_the_front_door(hidden):
    return RehearsalTask.of(
        {
            "graph": ["x -> {t y}", "t -> m -> y", *hidden],
            "context": ["x"],
            "box": {"t": [-1.5, 1.5]},
            "region": {"y": [None, 0]},
        }
    )


def test_the_front_door_finds_what_a_hidden_cause_turns_around():
    table, contexts = behind_the_front_door(2000), torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    actions = torch.linspace(-1, 1, 5, dtype=torch.float64)[:, None, None].expand(-1, 3, 1)
    # y = -t + x / 2 + noise of variance 1 + 4 + 1/4 if t is set.
    truth = torch.special.ndtr((actions[..., 0] - 0.5 * contexts[:, 0]) / 5.25**0.5)
    errors = []
    for hidden in (["t <-> y"], []):
        model = fit(OutcomeRegression(asked_of_the_front_door(hidden), frequencies=40), table)
        assert model.faults() == []
        given, shown = model.contexts(contexts), model.scaler.standardised(("t",), actions)
        success = model.success(0, 24, 128, 0)
        found = SuccessInContexts(success, given).mean(shown)
        torch.testing.assert_close(found, success.share(success.values(given, shown)).mean(-1))
        errors.append(float((found - truth).abs().max()))
        near = model.beyond(success, 0, given, shown)
        assert bool((near < 0.5).all())
        assert model.support(0, given, shown).shape == (5, 3)
    assert errors[0] < 0.05
    assert errors[1] > 0.2
