"""The jobs of trials, made small."""

import pytest

from reproduction.calibration import trials
from reproduction.calibration.jobs import recorded_rows
from reproduction.calibration.trial_claims import of_recommendations
from reproduction.job import configured, decided_rounds
from reproduction.plan import jobs, study
from reproduction.run import main
from tests.reproduction.kept import paper, record_in

STUDY = study("calibration")
QUICK = ["search.starts=8", "search.screened=64", "search.steps=5"]


def test_variants_differ_in_the_standard_deviation_and_in_nothing_else():
    found = {job.method: job.overrides for job in jobs(STUDY, "trials", [750], worlds=["branin"])}
    assert set(found["excbo, epistemic fitted"]) - set(found["excbo"]) == {"surrogate.epistemic=fitted"}
    assert "decision=ucb" in found["ucb"]


def test_claims_are_compared_during_a_run_that_they_do_not_change(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "EARLY", 1)
    quick = f"overrides=[{','.join(QUICK)}]"
    typed = ["stages=[trials]", "worlds=[dropwave]", "methods=[excbo]", "seeds=[900]"]
    assert main(paper("calibration"), [*typed, "rounds=2", "workers=1", f"out={tmp_path}", quick]) == 0
    rows = recorded_rows(record_in("calibration", tmp_path, "trials"), "trials")
    assert [row["round"] for row in rows] == [1] * 81 + [2] * 81
    (job,) = jobs(STUDY, "trials", [900], worlds=["dropwave"], methods=["excbo"])
    lines = list(decided_rounds(configured([*job.overrides, "dataset.size.rounds=3", *QUICK])))
    # The recommendation after a round is the one that the run makes in the next round.
    for row, line in zip(of_recommendations(rows), lines[1:], strict=True):
        assert row["claimed"] == pytest.approx(line["estimate"]["point"], rel=1e-5)
        assert row["true"] == pytest.approx(line["score"]["recommended"], rel=1e-5)
        assert row["start"] == pytest.approx(line["score"]["start"], rel=1e-5)
        assert row["optimum"] == pytest.approx(line["score"]["optimum"], rel=1e-5)
