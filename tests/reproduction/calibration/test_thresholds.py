"""Thresholds of claims: the file, the comparison, and what the command says."""

import pytest
import yaml

from reproduction.calibration import thresholds
from reproduction.calibration.thresholds import LARGEST, compared, main, plan, quantities
from reproduction.plan import study
from tests.reproduction.calibration.test_documents import row

REPORTED = [*range(20, 44), *range(50, 55), *range(60, 100), *range(400, 410), *range(500, 530)]


def test_the_file_names_worlds_and_methods_of_the_study_and_no_seed_of_a_page():
    planned, known = plan(), study("calibration")
    assert set(planned["worlds"]) <= set(known["worlds"])
    assert set(planned["methods"]) <= set(known["methods"])
    studied = {seed for stage in known["stages"].values() for seed in stage["seeds"]}
    assert not set(planned["seeds"]) & {*REPORTED, *studied}


def test_quantities_are_means_over_seeds():
    some = [row(0, 0.7, 0.6, 0.5, 0.8), row(0, 0.5, 0.1, 0.4, 0.6), row(1, 0.6, 0.5, 0.4, 0.7)]
    found = quantities(some)
    assert found["gap"] == pytest.approx(abs((0.6 + 0.6) / 2 - (0.35 + 0.5) / 2))
    assert (found["inside95"], found["worse_off"]) == (0.75, 0.25)
    assert found["share"] == pytest.approx((0.425 - 0.2) / 0.6)


def test_what_was_not_run_breaks_its_thresholds():
    limits = {"gap": 1.0, "inside95": 0.0, "worse_off": 1.0, "share": -1.0}
    planned = {"worlds": ["w"], "methods": ["m", "gone"], "thresholds": {"w": {"m": limits, "gone": limits}}}
    checks = compared([row(0, 0.7, 0.6, 0.5, 0.8)], planned)
    assert [check.kept for check in checks] == [True] * 4 + [False] * 4
    assert [check.quantity for check in checks] == [*LARGEST, *LARGEST]


def test_the_command_says_which_threshold_is_broken(tmp_path, monkeypatch, capsys):
    limits = {"gap": 1.0, "inside95": 0.0, "worse_off": 1.0, "share": 2.0}
    small = {"worlds": ["bank"], "methods": ["care"], "seeds": [900], "contexts": 3}
    file = tmp_path / "thresholds.yaml"
    file.write_text(yaml.safe_dump({**small, "thresholds": {"bank": {"care": limits}}}))
    monkeypatch.setattr(thresholds, "plan", lambda: plan(file))
    assert main(["workers=1"]) == 1
    said = capsys.readouterr().out
    assert "BROKEN" in said
    assert said.splitlines()[-1] == "3 of 4 thresholds hold"
    file.write_text(yaml.safe_dump({**small, "thresholds": {"bank": {"care": limits | {"share": 0.0}}}}))
    assert main(["workers=1"]) == 0
    assert main(["workers=0"]) == 2
