"""The jobs of trials, made small."""

import pytest

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.evaluation.trial_claims import of_recommendations
from rehearsal_torch.studies.calibration import trials
from rehearsal_torch.studies.calibration.reproduction import record_in, recorded_rows
from rehearsal_torch.studies.job import configured, decided_rounds
from rehearsal_torch.studies.plan import jobs
from rehearsal_torch.studies.record import Outcome
from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.study_files import study

STUDY = study("calibration")
QUICK = ["search.starts=8", "search.screened=64", "search.steps=5"]


def test_variants_differ_in_the_standard_deviation_and_in_nothing_else():
    found = {job.method: job.overrides for job in jobs(STUDY, "trials", ["branin"], seeds=[750])}
    assert set(found["excbo, epistemic fitted"]) - set(found["excbo"]) == {"surrogate.epistemic=fitted"}
    assert "decision=ucb" in found["ucb"]


def test_the_summary_is_of_the_last_round():
    row = {"round": 2, "point": "near 1", "held": 1.0}
    best = {"point": "recommended", "true": 0.5, "optimum": 1.0}
    rows = [row | {"round": 1, "held": 0.0}, row, row | {"held": 0.0}, row | best]
    (job,) = jobs(STUDY, "trials", ["branin"], ["excbo"], seeds=[750])
    assert trials.summary(Outcome(job, rows, {"seconds": 3.0})) == "50% hold, recommended 0.5 of 1, 3.0 s"


@pytest.mark.slow
def test_claims_are_compared_during_a_run_that_they_do_not_change(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "EARLY", 1)
    typed = ["study=calibration", "stages=[trials]", "worlds=[dropwave]", "methods=[excbo]", "seeds=[900]"]
    assert main([*typed, "rounds=2", "workers=1", f"out={tmp_path}", *QUICK]) == 0
    rows = recorded_rows(record_in(tmp_path), "trials")
    assert [row["round"] for row in rows] == [1] * 81 + [2] * 81
    (job,) = jobs(STUDY, "trials", ["dropwave"], ["excbo"], seeds=[900])
    lines = list(decided_rounds(configured(CONF, [*job.overrides, "dataset.size.rounds=3", *QUICK])))
    # The recommendation after a round is the one that the run makes in the next round.
    for row, line in zip(of_recommendations(rows), lines[1:], strict=True):
        assert row["claimed"] == pytest.approx(line["estimate"]["point"], rel=1e-5)
        assert row["true"] == pytest.approx(line["score"]["recommended"], rel=1e-5)
        assert row["start"] == pytest.approx(line["score"]["start"], rel=1e-5)
        assert row["optimum"] == pytest.approx(line["score"]["optimum"], rel=1e-5)
