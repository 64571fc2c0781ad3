"""The embedded problem: splits, truth, and what it says of decisions."""

import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.problems.sequences.four_hour_table import STATES
from rehearsal_torch.problems.sequences.sepsis_cohort import (
    FLUID,
    LONGEST,
    REVERSION,
    SPREAD,
    VASOPRESSOR,
    Cohort,
    SepsisSimulated,
    emit,
    move,
    simulate,
    sofa,
    true_trajectory,
)
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.spaces.box import Alteration
from reproduction.calibration.true_returns import true_return


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=150, seed=0, horizon=10, changes=1)


def doing(changed: dict[int, int]) -> Decision:
    """The decision that gives other actions at some steps, as somebody else's search would write it."""
    names = tuple(action_name(step) for step in changed)
    alteration = Alteration(names, torch.tensor(list(changed.values()))) if changed else None
    return Decision(alteration, 0.0)


def observed_actions(problem: SepsisSimulated, index: int) -> torch.Tensor:
    return problem.levels.digitise(problem.case(index).episode.columns(problem.levels.names))


def test_observations_are_of_training_patients_alone(problem: SepsisSimulated) -> None:
    tables = [problem.observations(), problem.held_out(), transitions(problem.episodes("test"))]
    assert sum(map(len, tables)) == sum(episode.horizon - 1 for episode in problem.stays.episodes)
    pressures = [set(table.columns(["MeanBP"])[:, 0].tolist()) for table in tables]
    assert not pressures[0] & pressures[2]
    assert not pressures[0] & pressures[1]


def test_nothing_changed_is_what_was_observed(problem: SepsisSimulated) -> None:
    for index in range(5):
        episode, decision = problem.case(index).episode, doing({})
        states = problem.true_states(episode, decision)
        torch.testing.assert_close(states, episode.values[:, :9], rtol=1e-10, atol=1e-10)
        score = problem.score(problem.case(index), decision)
        assert (
            score["true_value"]
            == score["true_observed"]
            == pytest.approx(-float(episode.columns(["SOFA"]).sum()))
        )
        assert score["true_improvement"] == 0


@pytest.mark.slow
def test_the_optimum_is_at_least_what_any_decision_gives(problem: SepsisSimulated) -> None:
    one_case = problem.case(1)
    best = problem.optimum(one_case)
    single = [
        problem.score(one_case, doing({step: action}))["true_value"]
        for step in range(9)
        for action in range(25)
    ]
    assert best == pytest.approx(max(single))
    objective = true_return(problem.cohort, problem.levels, one_case.episode, 2)
    twice = problem.best(one_case.episode, 2, problem.levels)
    assert Exhaustive()(objective).value == pytest.approx(twice)
    assert twice >= best >= objective.outcome()
    assert twice >= GreedyChanges()(objective).value >= objective.outcome()


def test_a_response_marks_what_was_altered(problem: SepsisSimulated) -> None:
    decision = doing({3: 24 if int(observed_actions(problem, 0)[3]) != 24 else 0})
    table = problem.respond(problem.case(0), decision)
    dosed = table.names.index("max_dose_vaso")
    assert len(table) == 9
    assert table.altered.sum() == 4
    assert table.altered[3, dosed]
    assert table.altered[2, len(table.names) // 2 + dosed]
    observed = problem.case(0).episode
    torch.testing.assert_close(table.values[:3, 0], observed.values[:3, 0])


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(3000, seed=0)


def test_the_marginals_are_near_the_published_aggregates(cohort: Cohort) -> None:
    """Targets: ICU-Sepsis 2.0.1's aggregates (SOFA 6.35 +- 3.45, vasopressor 14.1 %, no fluid 26 %,
    ventilated 37 %)."""
    frame = cohort.frame()
    found = {
        "SOFA": frame.SOFA.mean(),
        "SOFA sd": frame.SOFA.std(),
        "vasopressor": (frame.max_dose_vaso > 0).mean(),
        "no fluid": (frame.input_4hourly == 0).mean(),
        "ventilated": frame.mechvent.mean(),
        "female": frame.groupby("icustayid").gender.first().mean(),
        "readmitted": frame.groupby("icustayid").re_admission.first().mean(),
    }
    target = {
        "SOFA": 6.35,
        "SOFA sd": 3.45,
        "vasopressor": 0.141,
        "no fluid": 0.26,
        "ventilated": 0.37,
        "female": 0.44,
        "readmitted": 0.33,
    }
    allowed = {
        "SOFA": 0.25,
        "SOFA sd": 0.2,
        "vasopressor": 0.015,
        "no fluid": 0.02,
        "ventilated": 0.02,
        "female": 0.03,
        "readmitted": 0.03,
    }
    off = {
        name: (found[name], target[name])
        for name in target
        if abs(found[name] - target[name]) > allowed[name]
    }
    assert not off


def share(doses: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """How often each level is given, a jittered dose counted for the nearest level in ratio, (5,)."""
    nearest = (doses.clamp_min(1e-9).log().unsqueeze(-1) - levels[1:].log()).abs().argmin(-1) + 1
    return torch.bincount(torch.where(doses > 0, nearest, 0), minlength=5) / len(doses)


@pytest.mark.parametrize(
    ("column", "levels", "target"),
    [
        ("max_dose_vaso", VASOPRESSOR, [0.859, 0.035, 0.040, 0.030, 0.036]),
        ("input_4hourly", FLUID, [0.26, 0.187, 0.188, 0.183, 0.182]),
    ],
)
def test_dose_levels_are_as_frequent_as_published(
    cohort: Cohort, column: str, levels: torch.Tensor, target: list[float]
) -> None:
    found = share(torch.from_numpy(cohort.frame()[column].to_numpy().copy()), levels)
    torch.testing.assert_close(found, torch.tensor(target), rtol=0, atol=0.01)


def test_vasopressors_look_harmful_in_the_raw_table(cohort: Cohort) -> None:
    """Those who get one fare worse one step later, and go on looking harmed when all that the table shows is
    held equal."""
    frame = cohort.frame()
    after = frame.groupby("icustayid").SOFA.shift(-1)
    kept = after.notna()
    given, score = (frame.max_dose_vaso > 0)[kept].to_numpy(np.float64), after[kept].to_numpy()
    assert score[given > 0].mean() - score[given == 0].mean() > 3
    shown = frame.loc[
        kept, [*STATES, "SOFA", "mechvent", "age", "re_admission", "gender", "input_4hourly"]
    ].to_numpy(np.float64)
    design = np.column_stack([np.ones(len(shown)), (shown - shown.mean(0)) / shown.std(0), given])
    assert 0.5 < np.linalg.lstsq(design, score)[0][-1] < 2


def test_the_table_has_the_pipelines_columns_units_and_horizons(cohort: Cohort) -> None:
    frame = cohort.frame()
    assert list(frame.columns[:6]) == ["icustayid", "bloc", "gender", "re_admission", "age", "mechvent"]
    assert set(STATES) | {"SOFA", "max_dose_vaso", "input_4hourly", "died_within_48h_of_out_time"} <= set(
        frame.columns
    )
    lengths = frame.groupby("icustayid").size()
    assert (lengths.min(), lengths.max()) == (10, LONGEST)
    assert (frame.groupby("icustayid").bloc.min() == 1).all()
    assert not frame.isna().to_numpy().any()
    assert frame.FiO2_1.between(0.21, 1).all()
    assert frame.GCS.between(3, 15).all()
    assert frame.SOFA.between(0, 24).all()
    assert frame.age.between(18 * 365, 92 * 365.25).all()
    assert (frame.input_4hourly >= 0).all()


def test_treatment_is_confounded_by_severity(cohort: Cohort) -> None:
    shown = emit(cohort.latent)
    given = cohort.doses[..., 0] > 0
    assert shown[given][:, 5].mean() < shown[~given][:, 5].mean() - 3
    frail = cohort.frailty > 0.8
    assert given[frail].double().mean() > given[~frail].double().mean() + 0.05


def explained(frailty: torch.Tensor, static: torch.Tensor) -> float:
    """R^2 of frailty on age and readmission."""
    design = torch.cat([static[:, 1:], torch.ones(len(static), 1, dtype=torch.float64)], -1)
    left = frailty - design @ torch.linalg.lstsq(design, frailty.unsqueeze(-1)).solution[:, 0]
    return 1 - float(left.var() / frailty.var())


def test_confounding_hides_the_severity_that_treatment_follows() -> None:
    shares = [
        explained(cohort.frailty, cohort.static)
        for cohort in (simulate(1000, 0, confounding=each) for each in (0.0, 0.5, 1.0))
    ]
    assert shares[0] > 1 - 1e-9
    assert 0.5 < shares[1] < 0.9
    assert shares[2] < 0.05


def test_the_course_follows_its_law(cohort: Cohort) -> None:
    moved = move(
        cohort.latent[:, :-1],
        cohort.level[:, None],
        cohort.doses[:, :-1],
        cohort.ventilated[:, :-1],
        cohort.noise,
    )
    torch.testing.assert_close(moved, cohort.latent[:, 1:], rtol=1e-12, atol=1e-12)


def test_the_law_is_location_scale_and_returns_to_the_level() -> None:
    calm, level = torch.zeros(8, dtype=torch.float64), torch.ones(8, dtype=torch.float64)
    nothing, still = torch.zeros(2, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for noise in (torch.zeros(8, dtype=torch.float64), torch.ones(8, dtype=torch.float64)):
        torch.testing.assert_close(
            move(calm, level, nothing, still, noise), level - REVERSION * level + SPREAD * noise
        )


def test_vasopressors_raise_a_low_pressure_and_not_a_sufficient_one() -> None:
    level = torch.zeros(8, dtype=torch.float64)
    dose, still = torch.tensor([0.225, 0.0], dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for pressure, helps in ((55.0, True), (95.0, False)):
        latent = level.clone()
        latent[5] = pressure
        gain = (
            move(latent, level, dose, still, level)[5]
            - move(latent, level, torch.zeros_like(dose), still, level)[5]
        )
        assert bool(gain > 0) is helps


HEALTHY = {
    "oxygen": 0.21,
    "arterial": 95.0,
    "platelets": 250.0,
    "bilirubin": 0.5,
    "glasgow": 15.0,
    "pressure": 90.0,
    "creatinine": 0.8,
    "urine": 400.0,
}


def score(vasopressor: float = 0.0, **changed: float) -> float:
    states = torch.tensor(list((HEALTHY | changed).values()), dtype=torch.float64)
    return float(sofa(states, torch.tensor(vasopressor, dtype=torch.float64)))


@pytest.mark.parametrize(
    ("organ", "values"),
    [
        ("arterial", {401 * 0.21: 0, 399 * 0.21: 1, 299 * 0.21: 2, 199 * 0.21: 3, 99 * 0.21: 4}),
        ("platelets", {151: 0, 150: 1, 99.9: 2, 49.9: 3, 19.9: 4}),
        ("bilirubin", {1.19: 0, 1.2: 1, 2.0: 2, 6.0: 3, 12.0: 3, 12.1: 4}),
        ("pressure", {70: 0, 69.9: 1, 64.9: 2}),
        ("glasgow", {15: 0, 14: 1, 13: 1, 12: 2, 10: 2, 9: 3, 6: 3, 5: 4, 3: 4}),
        ("creatinine", {1.19: 0, 1.2: 1, 2.0: 2, 3.5: 3, 5.0: 3, 5.1: 4}),
        ("urine", {84: 0, 83.9: 3, 33.9: 4}),
    ],
)
def test_each_organ_has_its_limits(organ: str, values: dict[float, int]) -> None:
    assert {value: score(**{organ: value}) for value in values} == values


@pytest.mark.parametrize(
    ("organ", "values"),
    [
        ("arterial", {200.0: 1, 150.0: 1, 100.0: 2, 50.0: 3}),
        ("platelets", {100.0: 1, 50.0: 2, 20.0: 3}),
        ("pressure", {65.0: 1}),
        ("urine", {34.0: 3}),
    ],
)
def test_a_limit_that_is_just_reached_keeps_the_lower_score(organ: str, values: dict[float, int]) -> None:
    """Half oxygen, so that the ratios 400, 300, 200 and 100 are met exactly."""
    assert {
        value: score(**({"oxygen": 0.5, "arterial": 300.0} | {organ: value})) for value in values
    } == values


@pytest.mark.parametrize(("dose", "points"), [(0.0, 0), (0.001, 3), (0.1, 3), (0.101, 4)])
def test_the_vasopressor_of_the_step_counts(dose: float, points: int) -> None:
    assert score(dose) == points


def test_pressure_and_vasopressor_are_one_organ_and_so_are_creatinine_and_urine() -> None:
    assert score(0.2, pressure=60.0) == 4
    assert score(creatinine=2.5, urine=50.0) == 3


def test_longer_horizons_are_simulated_on_request() -> None:
    longer = simulate(400, seed=0, min_length=28, longest=30)
    assert longer.latent.shape == (400, 30, 8)
    assert longer.noise.shape == (400, 29, 8)
    counts = longer.horizon.bincount()
    assert counts[:28].sum() == 0
    assert 0.2 < float(counts[30]) / 400 < 0.4
    assert len(longer.frame()) == int(longer.horizon.sum())
    again = true_trajectory(longer, 3, longer.doses[3:4])
    torch.testing.assert_close(again[0], longer.latent[3], rtol=1e-12, atol=1e-12)


def test_a_patient_is_the_same_in_a_cohort_of_any_size(cohort: Cohort) -> None:
    small = simulate(5, seed=0)
    for name, tensor in vars(small).items():
        torch.testing.assert_close(tensor, getattr(cohort, name)[:5], rtol=1e-12, atol=1e-12)
    assert not torch.equal(simulate(5, seed=1).latent, small.latent)
