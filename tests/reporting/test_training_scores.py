"""The figures of a checkpoint's card, on runs whose numbers are known by hand."""

import math

import pytest

from rehearsal_torch.reporting.training_scores import held_out
from rehearsal_torch.run_folder import RunFolder
from tests.reporting.test_alteration_report import SCORES, run

TRUTH = """node,part,quantity,value,true
X,fitted,correlation,0.99,
X,held out,correlation,0.75,
X,held out,mean,nan,
X,held out,std,1.25,
X,held out,noise,0.5,0.4
X,held out,noise,-0.5,-0.6
Y,held out,correlation,0.5,
Y,held out,noise,0.1,0.2
"""
TRIAL = (
    '{"index": 0, "kind": "optimise", "identity": "0", "alteration": {"a": 1.0}, "value": 0.1, '
    '"status": "may"}\n'
)


def test_decisions_are_compared_with_the_truth(tmp_path):
    (row,) = held_out(run(tmp_path)).values()
    probabilities = [probability for probability, _, _ in SCORES]
    assert row["probability"] == pytest.approx(sum(probabilities) / 3)
    assert min(probabilities) <= row["probability_low"] < row["probability"] < row["probability_high"]
    assert row["oracle"] == pytest.approx(0.8)
    assert (row["cases"], row["refused"]) == (3, 1)
    assert all(math.isfinite(value) for value in row.values())
    assert not [name for name in row if "seconds" in name]


def test_without_a_truth_decisions_have_no_figures(tmp_path):
    assert held_out(run(tmp_path, score=False)) == {}


def test_rounds_that_learn_say_nothing_of_what_was_learnt_before_them(tmp_path):
    folder = RunFolder(run(tmp_path))
    folder.write_yaml("config.yaml", {"learn": True})
    assert held_out(tmp_path) == {}


def test_recovered_noise_counts_on_rows_that_were_not_fitted(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_yaml("config.yaml", {"seed": 0})
    folder.write_json("run.json", {"kind": "optimise"})
    folder.write("decisions.jsonl", TRIAL)
    folder.write("truth.csv", TRUTH)
    assert held_out(tmp_path) == {
        "X": {"rows": 2, "correlation": 0.75, "std": 1.25},
        "Y": {"rows": 1, "correlation": 0.5},
    }


def test_training_patients_are_not_held_out(sepsis_run):
    config = RunFolder(sepsis_run).read_yaml("config.yaml")
    RunFolder(sepsis_run).write_yaml("config.yaml", config | {"split": "train"})
    assert held_out(sepsis_run) == {}
