"""Outcome regression: its parts, what it refuses, and success where hardly a row is desired."""

from copy import deepcopy
from functools import partial

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.response_regression import ResponseRegression
from rehearsal_torch.objectives.gain import SupportedGain
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.nonlinear_examples import YesNo
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.projected_ascent import SampledRefinement
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome import outcome_regression
from rehearsal_torch.surrogates.outcome.case_draws import CaseDraws
from rehearsal_torch.surrogates.outcome.outcome_regression import (
    OutcomeKind,
    OutcomeRegression,
    OutcomeScore,
    latent_face,
    lattice_of,
    left_out,
    values_of,
)
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    sequential,
    sequential_table,
)

SMALL = {"members": 2, "blocks": 4, "functions": 3, "frequencies": 20, "evidence_rows": 60, "iterations": 5}


def fitted(task, table, **settings):
    return fit(OutcomeRegression(task, **{**SMALL, **settings}), table)


def success(model, context, action, which=0):
    """P(desired) at contexts (B, |X|) and actions (B, k), (B,)."""
    names = model.task.candidates[which]
    cases = CaseDraws(model.draws(which, model.functions, 64, 1, 0), model.contexts(context))
    return cases.values(model.scaler.standardised(names, action).unsqueeze(0)).success[0].mean(-1)


def test_every_distribution_of_the_formula_has_a_regression():
    model = fitted(confounded(candidates=[["a"], ["a", "c"]]), confounded_table(80))
    assert model.before == ("u",)
    assert [len(model.models(which).outcomes) for which in (0, 1)] == [2, 2]
    models = model.models(1)
    assert (models.columns, models.between, models.front_door) == ([0], None, False)
    assert [each.inputs for each in models.outcomes] == [4, 4]
    assert [(each.response.inputs, each.response.outputs) for each in models.usual] == [(2, 2)]
    assert (models.before.inputs, models.habit.inputs, models.habit.outputs) == (1, 2, 2)
    other = fitted(sequential(), sequential_table(80))
    models = other.models(0)
    assert (models.before, models.between.inputs, models.first) == (None, 2, [0])
    assert models.outcomes[0].inputs == 4
    # b follows a and v.
    assert [(each.response.inputs, each.response.outputs) for each in models.usual] == [(1, 1), (3, 1)]
    assert model.faults() == other.faults() == []


def test_the_fits_have_kernels_of_different_rows():
    model = fitted(confounded(), confounded_table(200))
    one, other = model.models(0).outcomes
    assert not torch.allclose(one.widths, other.widths)
    assert one.residuals.shape == other.residuals.shape == (200, 1)


def test_draws_are_kept_until_the_model_changes():
    model = fitted(confounded(), confounded_table(80))
    before = model.draws(0, 2, 4, 2, 0)
    assert model.draws(0, 2, 4, 2, 0) is before
    assert model.draws(0, 2, 4, 2, 1) is not before
    assert deepcopy(model).draws(0, 2, 4, 2, 0) is not before
    fit(model, confounded_table(90))
    assert not torch.equal(model.draws(0, 2, 4, 2, 0).before, before.before)


def test_what_is_drawn_for_one_purpose_has_the_functions_of_every_other():
    model = fitted(confounded(), confounded_table(80))
    one, other = (model.draws(0, 2, 4, 2, purpose) for purpose in (0, 1))
    assert torch.equal(one.coefficients[0], other.coefficients[0])
    assert not torch.equal(one.before, other.before), "their points are others"
    whole = model.draws(0, 3, 4, 2, 0)
    assert torch.equal(whole.coefficients[1][:, :, :2], one.coefficients[1])


def yes_no(task, table, above=0.0):
    """The same task and table with an outcome that only says whether y is above a bound."""
    values = table.values.clone()
    values[:, -1] = (values[:, -1] > above).double()
    plain = task.to_plain() | {"region": {"y": [0.5, None]}}
    return RehearsalTask.of(plain), Table.observed(table.names, values)


@pytest.mark.slow
def test_the_probability_of_a_yes_is_that_after_the_alteration():
    task, table = yes_no(confounded(), confounded_table(1500, freedom=2.0), 2.0)
    model = fit(OutcomeRegression(task), table)
    x, a = torch.zeros(3, 1, dtype=torch.float64), torch.tensor([[-0.5], [0.8], [1.4]], dtype=torch.float64)
    found = success(model, x, a)
    assert found.tolist() == pytest.approx(confounded_truth(x[:, 0], a[:, 0]).tolist(), abs=0.06)
    cases = CaseDraws(model.draws(0, 12, 64, 1, 0), model.contexts(x[:1]))
    # y = -2 u + 4 e + ... with a variance of 4 + 16 + .09 where nothing is set.
    nothing = float(torch.special.ndtr(torch.tensor(-2 / (4 + 16 + 0.09) ** 0.5)))
    assert float(cases.none.mean()) == pytest.approx(nothing, abs=0.06)


def test_a_model_of_success_is_read_again():
    task, table = yes_no(confounded(), confounded_table(120))
    model = fitted(task, table)
    assert model.outcome_kind.of_success
    assert isinstance(model.models(0).outcomes[0], FeatureClassifier)
    again = OutcomeRegression(task, **SMALL)
    again.load_state_dict(model.state_dict())
    assert again.faults() == []
    x, a = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    assert torch.equal(success(again, x, a), success(model, x, a))


def test_success_itself_has_no_effect_of_units():
    task, table = yes_no(confounded(), confounded_table(120))
    task = RehearsalTask.of(task.to_plain() | {"unit": "k"})
    units = (torch.arange(120) % 20).double().unsqueeze(-1)
    model = fitted(task, Table.observed((*table.names, "k"), torch.cat((table.values, units), -1)))
    assert model.outcome_kind.of_success
    assert model.covariates[0].members.unique().numel() == 20


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
    model = fitted(task, rows)
    assert model.outcome_kind.of_success
    assert model.outcome_kind.faces.count == model.models(0).outcomes[0].outputs == 1
    assert model.score.beats_constant
    assert float(model.score.brier[0]) < 0.6 * float(model.score.brier[1])


@pytest.mark.slow
def test_a_yes_no_covariate_is_averaged_over():
    """Frailty, 0 or 1, makes the drug likelier and recovery less likely; neither is the drug's doing."""
    world = YesNo(size=SampleSize(rows=6000, contexts=12))
    model = fit(OutcomeRegression(world.task), world.observations())
    given = world.given([world.case(index) for index in range(12)])
    for drug in (0.0, 1.0):
        actions = torch.full((12, 1), drug, dtype=torch.float64)
        apart = success(model, given, actions) - world.probability(given, ("drug",), actions)
        assert float(apart.abs().max()) < 0.08
        assert float(apart.mean().abs()) < 0.02


def test_rows_left_out_are_predicted_from_the_others():
    table, folds = confounded_table(300), torch.arange(300) % 2
    model = fitted(confounded(), table)
    member, faces, inputs = model.models(0).outcomes[0], model.outcome_kind.faces, model.inputs(table, 0)
    targets = model.outcome_kind.targets(table.columns(("y",)))
    desired = model.task.region.contains(table.columns(("y",))).double()
    found = left_out(member, faces, inputs, targets, folds)
    assert ((found >= 0) & (found <= 1)).all()
    assert float((found - desired).square().mean()) < 0.5 * float(desired.var())
    changed = targets.clone()
    changed[::2] = 0.0
    other = left_out(member, faces, inputs, changed, folds)
    assert torch.equal(other[::2], found[::2]), "their own outcomes are not used"
    assert not torch.equal(other[1::2], found[1::2])


def test_a_score_is_that_of_a_constant_or_better():
    desired = (torch.arange(40) % 4 == 0).double()
    made = OutcomeScore()
    assert made.beats_constant, "not known"
    made.solve(0.9 * desired + 0.05, desired)
    assert made.brier.tolist() == pytest.approx([0.05**2, 0.25 * 0.75])
    assert made.beats_constant
    made.solve(1 - desired, desired)
    assert not made.beats_constant


def test_noise_is_not_predicted():
    table = confounded_table(300)
    values = table.values.clone()
    values[:, -1] = torch.randn(300, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    task = RehearsalTask.of(confounded().to_plain() | {"region": {"y": [0.5, None]}})
    found = fitted(task, Table.observed(table.names, values)).score.brier
    assert float(found[0]) > 0.97 * float(found[1])


@pytest.mark.bench
@pytest.mark.parametrize("seed", [6, 7])
def test_a_region_that_one_row_in_a_thousand_reaches_is_reached(seed):
    world = Bermuda(preset="neurips24", seed=seed)
    assert float(world.desired(world.observations().columns(("NEC",))).double().mean()) < 0.005
    model = fit(OutcomeRegression(world.task, seed=seed), world.observations())
    cases = [world.case(index) for index in range(8)]
    decisions = SampledRefinement().batch_search(SupportedGain.for_cases(model, cases))
    scores = [world.score(one, each)["probability"] for one, each in zip(cases, decisions, strict=True)]
    claims = [each.estimate.point for each in decisions]
    assert sum(scores) / 8 > 0.8
    assert sum(claims) / 8 == pytest.approx(sum(scores) / 8, abs=0.05)


SETTINGS = {"frequencies": 20, "evidence_rows": 80, "iterations": 6}


def model(classified):
    return (FeatureClassifier if classified else ResponseRegression)(**SETTINGS)


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


def test_units_are_left_out_whole_where_slack_and_success_are_compared(monkeypatch):
    """Rows of a unit once stood in both halves, and what knew the unit seemed to predict."""
    seen = []
    monkeypatch.setattr(
        outcome_regression, "left_out", lambda *given: seen.append(given[4]) or torch.zeros(200).double()
    )
    units = torch.arange(200) // 10
    kind((1.5, None)).solve(drawn(200, 1), (torch.arange(200) % 4).double().unsqueeze(-1), units)
    assert len(seen) == 2
    for folds in seen:
        assert all(len(folds[units == unit].unique()) == 1 for unit in range(20))
        assert 0 < int(folds.sum()) < 200


def test_values_that_rounding_tells_apart_are_on_one_lattice():
    tenths = torch.arange(8).double() * 0.1
    twins = torch.cat((tenths, tenths + 0.1 - 0.1))
    for values in (tenths, twins, 1e-9 * twins):
        step, origin = lattice_of(values).tolist()
        assert (step, origin) == (pytest.approx(0.1 * float(values.max()) / 0.7), 0.0)
    assert lattice_of(drawn(50, 1)[:, 0]).tolist() == [0.0, 0.0]


def test_rare_counts_are_as_rare_as_in_the_rows_wherever_the_bound_is_written_between_them():
    """Half of the rows on the bound were once not counted."""
    stream = torch.Generator().manual_seed(0)
    x, a = torch.randn(2, 800, dtype=torch.float64, generator=stream)
    y = torch.poisson(torch.full((800,), 3.5, dtype=torch.float64), generator=stream)
    table = Table.observed(("x", "a", "y"), torch.stack((x, a, y), -1))
    said = []
    for most in (0.0, 0.5):
        task = RehearsalTask.of(
            {"graph": ["{x a} -> y"], "context": ["x"], "box": {"a": [-1, 1]}, "region": {"y": [None, most]}}
        )
        made = fit(OutcomeRegression(task, **SMALL), table)
        assert not made.outcome_kind.of_success
        case = CaseDraws(made.draws(0, 3, 64, 4, 0), torch.zeros(1, 1, dtype=torch.float64))
        said.append(float(case.none.mean()))
    assert said[0] == said[1]
    assert said[0] == pytest.approx(float((y == 0).double().mean()), abs=0.012)


def test_a_choice_that_is_none_is_a_fault():
    made = OutcomeKind(partial(model), FaceCoordinates.of(Polytope.of({"y": (0, 1)})), 0)
    made.classified, made.lattice = torch.tensor([0.5]).double(), torch.zeros(1, 2).double()
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
    x, t = (
        torch.tensor([-1.0, 0, 1]).repeat(5).double(),
        torch.linspace(-1, 1, 5).repeat_interleave(3).double(),
    )
    # y = -t + x / 2 + noise of variance 1 + 4 + 1/4 if t is set.
    truth = torch.special.ndtr((t - 0.5 * x) / 5.25**0.5)
    errors = []
    for hidden in (["t <-> y"], []):
        model = fit(OutcomeRegression(asked_of_the_front_door(hidden)), behind_the_front_door(2000))
        assert model.faults() == []
        found = success(model, x.unsqueeze(-1), t.unsqueeze(-1))
        errors.append(float((found - truth).abs().max()))
    assert errors[0] < 0.05
    assert errors[1] > 0.2
