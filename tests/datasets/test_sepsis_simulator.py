"""The simulated cohort: reproducible, near the published aggregates, and true to its own law."""

import pytest
import torch

from rehearsal_torch.datasets.sepsis_simulator import LONGEST, RETURN, SPREAD, STATES, Cohort, emit, move, simulate


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(3000, seed=0)


def test_a_patient_is_the_same_in_a_cohort_of_any_size(cohort: Cohort) -> None:
    small = simulate(5, seed=0)
    for name, tensor in vars(small).items():
        torch.testing.assert_close(tensor, getattr(cohort, name)[:5], rtol=1e-12, atol=1e-12)
    assert not torch.equal(simulate(5, seed=1).latent, small.latent)


def test_the_marginals_are_near_the_published_aggregates(cohort: Cohort) -> None:
    """Targets: ICU-Sepsis 2.0.1's aggregates (SOFA 6.35 +- 3.45, vasopressor 14.1 %, no fluid 26 %, ventilated 37 %)."""
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
    target = {"SOFA": 6.35, "SOFA sd": 3.45, "vasopressor": 0.141, "no fluid": 0.26, "ventilated": 0.37, "female": 0.44, "readmitted": 0.33}
    allowed = {"SOFA": 0.25, "SOFA sd": 0.2, "vasopressor": 0.015, "no fluid": 0.02, "ventilated": 0.02, "female": 0.03, "readmitted": 0.03}
    off = {name: (found[name], target[name]) for name in target if abs(found[name] - target[name]) > allowed[name]}
    assert not off


def test_the_table_has_the_pipelines_columns_units_and_horizons(cohort: Cohort) -> None:
    frame = cohort.frame()
    assert list(frame.columns[:6]) == ["icustayid", "bloc", "gender", "re_admission", "age", "mechvent"]
    assert set(STATES) | {"SOFA", "max_dose_vaso", "input_4hourly", "died_within_48h_of_out_time"} <= set(frame.columns)
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
    shares = [explained(cohort.frailty, cohort.static) for cohort in (simulate(1000, 0, confounding=each) for each in (0.0, 0.5, 1.0))]
    assert shares[0] > 1 - 1e-9
    assert 0.5 < shares[1] < 0.9
    assert shares[2] < 0.05


def test_the_course_follows_its_law(cohort: Cohort) -> None:
    moved = move(cohort.latent[:, :-1], cohort.level[:, None], cohort.doses[:, :-1], cohort.ventilated[:, :-1], cohort.noise)
    torch.testing.assert_close(moved, cohort.latent[:, 1:], rtol=1e-12, atol=1e-12)


def test_the_law_is_location_scale_and_returns_to_the_level() -> None:
    calm, level = torch.zeros(8, dtype=torch.float64), torch.ones(8, dtype=torch.float64)
    nothing, still = torch.zeros(2, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for noise in (torch.zeros(8, dtype=torch.float64), torch.ones(8, dtype=torch.float64)):
        torch.testing.assert_close(move(calm, level, nothing, still, noise), level - RETURN * level + SPREAD * noise)


def test_vasopressors_raise_a_low_pressure_and_not_a_sufficient_one() -> None:
    level = torch.zeros(8, dtype=torch.float64)
    dose, still = torch.tensor([0.225, 0.0], dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for pressure, helps in ((55.0, True), (95.0, False)):
        latent = level.clone()
        latent[5] = pressure
        gain = move(latent, level, dose, still, level)[5] - move(latent, level, torch.zeros_like(dose), still, level)[5]
        assert bool(gain > 0) is helps


@pytest.mark.parametrize("wrong", [{"patients": 0}, {"least": 1}, {"least": 21}, {"confounding": 1.5}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected patients >= 1"):
        simulate(**({"patients": 3} | wrong))  # type: ignore[arg-type]
