"""The held-out score of the untouched rows, on rows whose scores are known by hand."""

import json

import pytest

from rehearsal_torch.evaluation.run_record import read
from rehearsal_torch.reporting.no_action_score import NONE, SEEN, UNKNOWN, line, scored
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import RunFolder


def run(path, scores, dataset="table", units=None):
    folder = RunFolder(path)
    folder.write_yaml("config.yaml", {"seed": 0})
    folder.write_json("run.json", {"choices": {"decision": "cme", "dataset": dataset}, "kind": "rehearse"})
    lines = []
    for index, score in enumerate(scores):
        names = ("desired_no_action", "predicted_no_action", "constant_no_action")
        one = {"index": index, "kind": "rehearse", "identity": str(index), "given": {"x": 0.5}}
        one |= {} if units is None else {"unit": units[index]}
        one |= {"status": "leave", "alteration": None, "value": 0.0, "estimate": None, "baseline": None}
        one |= {"findings": [], "reason": None, "trace": {}}
        lines.append(one | {"score": dict(zip(names, score, strict=True)) if score else {}})
    folder.write("decisions.jsonl", "".join(json.dumps(each) + "\n" for each in lines))
    return path


def test_both_scores_and_their_difference_are_told(tmp_path):
    rows = [(float(index % 2), 0.1 + 0.8 * (index % 2), 0.5) for index in range(20)]
    path = run(tmp_path / "run", rows)
    found = scored(read(path))
    assert found is not None
    assert (found.rows, found.own.mean, found.constant.mean) == (20, pytest.approx(0.01), 0.25)
    assert found.gain.mean == pytest.approx(0.24)
    words = "Held-out score of 20 untouched rows (Brier, lower is better): 0.01"
    assert found.line().startswith(words)
    assert found.line().endswith("better than the constant")
    assert words in report(path)


def test_a_method_that_has_learnt_nothing_is_told(tmp_path):
    worse = [(float(index % 2), 0.9 - 0.8 * (index % 2), 0.5) for index in range(20)]
    assert line(read(run(tmp_path / "worse", worse))).endswith("worse than the constant")
    equal = [(float(index % 2), 0.4, 0.5) for index in range(20)]
    assert line(read(run(tmp_path / "equal", equal))).endswith("not told apart from the constant")


def test_intervals_are_by_unit(tmp_path):
    rows = [(float(index % 3 == 0), 0.3 + 0.02 * (index // 5), 0.5) for index in range(40)]
    alone = scored(read(run(tmp_path / "alone", rows)))
    together = scored(read(run(tmp_path / "together", rows, units=[f"u{index % 3}" for index in range(40)])))
    assert alone is not None
    assert together is not None
    assert together.own.mean == pytest.approx(alone.own.mean)
    assert together.own.high - together.own.low > alone.own.high - alone.own.low


def test_rows_of_the_folds_are_taken_before_those_of_the_decisions(tmp_path):
    path = run(tmp_path / "run", [(1.0, 0.5, 0.5)])
    (path / "untouched.csv").write_text("unit,desired,predicted,constant\n0,1,0.8,0.5\n1,0,0.2,0.5\n")
    found = scored(read(path))
    assert found is not None
    assert (found.rows, found.own.mean) == (2, pytest.approx(0.04))


def test_without_held_out_rows_it_is_told_how_to_get_them(tmp_path):
    path = run(tmp_path / "run", [None, None])
    assert line(read(path)) == NONE
    assert NONE in " ".join(report(path).split())
    assert line(read(run(tmp_path / "world", [None], "bank"))) == ""


@pytest.mark.parametrize("seen", [False, None, True])
def test_rows_that_a_checkpoint_has_seen_or_may_have_seen_have_no_held_out_score(tmp_path, seen):
    rows = [(float(index % 2), 0.1 + 0.8 * (index % 2), 0.5) for index in range(20)]
    path = run(tmp_path / "run", rows)
    before = line(read(path))
    folder = RunFolder(path)
    folder.write_json("run.json", folder.read_json("run.json") | {"held_out_seen": seen})
    told = line(read(path))
    assert told in " ".join(report(path).split())
    if seen:
        assert told == SEEN
    else:
        assert told == (f"{before.replace('Held-out score', 'Score')}; {UNKNOWN}" if seen is None else before)
