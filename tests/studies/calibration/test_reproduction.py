"""The jobs of the study of claims, made small."""

import math

import pytest

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.studies.calibration.reproduction import FLOW_CASES, record_in, recorded_rows, rows_of
from rehearsal_torch.studies.job import Protocol
from rehearsal_torch.studies.plan import jobs
from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.study_files import study

STUDY = study("calibration")
# Seeds below were used while the methods were made.
FRESH = {"rehearsal": 500, "flows": 520, "confounding": 400, "episodes": 21, "stays": 31, "trials": 750}


def test_no_seed_of_the_study_was_used_to_choose_anything():
    assert all(seed >= first for name, first in FRESH.items() for seed in STUDY.stages[name].seeds)


def test_stages_have_their_own_worlds_and_methods():
    counts = {"rehearsal": 8, "flows": 3, "confounding": 3, "episodes": 3, "stays": 4, "trials": 11}
    for stage, count in counts.items():
        planned = jobs(STUDY, stage)
        assert len({job.world for job in planned}) == count


@pytest.mark.parametrize(("stage", "world"), [("trials", "bank"), ("rehearsal", "dropwave")])
def test_a_world_of_another_stage_is_refused(stage, world):
    (job,) = jobs(STUDY, stage, [world], ["excbo"], seeds=[900])
    with pytest.raises(ValueError, match=f"stage {stage} does not have the world {world}: name its own"):
        rows_of(Protocol(CONF, {"contexts": 1, "rounds": 1, "patients": 1}), job)


def test_uses_of_members_are_compared_on_both_scores():
    planned = jobs(STUDY, "episodes")
    used = {job.method: job.overrides for job in planned}
    assert "objective.agreement=none" in used["transition_ensemble, mean alone"]
    assert "objective.members=worst" in used["transition_ensemble, worst member"]
    for method in STUDY.groups["members"]:
        assert {job.world for job in planned if job.method == method} == set(STUDY.groups["scores"])


@pytest.mark.slow
def test_worlds_of_tables_yield_claims_and_truths(tmp_path):
    typed = [
        "study=calibration",
        "stages=[rehearsal,figures]",
        "worlds=[bank]",
        "methods=[care]",
        "seeds=[900]",
    ]
    small = ["contexts=3", "patients=2", "workers=1", f"out={tmp_path}"]
    assert main([*typed, *small]) == 0
    rows = recorded_rows(record_in(tmp_path), "rehearsal")
    assert len(rows) == 3
    assert all(0 <= row["auf"] <= row["oracle"] + 1e-9 for row in rows)
    assert "| bank | `care` | 1 | 3 |" in (tmp_path / "README.md").read_text()
    assert (
        (tmp_path / "claims.csv")
        .read_text()
        .startswith("world,method,seed,cases,claimed,true,no_action,best,")
    )


@pytest.mark.slow
def test_conditional_flows_claim_with_intervals_for_a_few_cases(tmp_path):
    typed = ["study=calibration", "stages=[flows,figures]", "worlds=[bank]", "seeds=[900]"]
    assert main([*typed, "contexts=30", "trainer.max_epochs=1", "workers=1", f"out={tmp_path}"]) == 0
    rows = recorded_rows(record_in(tmp_path), "flows")
    assert len(rows) == FLOW_CASES
    for row in rows:
        ends = [
            row[key] for key in ("lower", "lower80", "lower50", "estimate", "upper50", "upper80", "upper")
        ]
        assert ends == sorted(ends) or math.isnan(row["lower"])
    assert "| bank | `grad_rh` | 1 | 8 |" in (tmp_path / "README.md").read_text()


@pytest.mark.slow
def test_episodes_are_compared_with_the_truth_of_their_score(tmp_path):
    typed = ["study=calibration", "stages=[episodes,figures]", "methods=['transition, dense']", "seeds=[900]"]
    typed += ["worlds=['sepsis, organs','sepsis, full score']", "patients=2", "workers=1", f"out={tmp_path}"]
    quick = ["trainer.max_epochs=1", "surrogate.mechanism.hidden=4", "dataset.patients=60"]
    assert main([*typed, *quick]) == 0
    rows = recorded_rows(record_in(tmp_path), "episodes")
    assert len(rows) == 4
    for row in rows:
        assert math.isfinite(row["auf"] + row["estimate"])
        assert row["no_action"] == 0
        assert row["oracle"] >= 0
    assert "### sepsis, organs" in (tmp_path / "README.md").read_text()
