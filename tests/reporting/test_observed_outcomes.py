"""The comparison of observed outcomes, from decisions that can be counted by hand."""

import json
from pathlib import Path

import pytest

from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.reporting.observed_outcomes import COLUMNS, NOT_AN_EFFECT, Group, groups, text
from rehearsal_torch.reporting.run_report import report


def decided(index: int, status: str, improvement: float, died: float | None) -> dict:
    outcomes = {} if died is None else {"observed_outcomes": {"died_in_hosp": died}}
    trajectory = {
        "horizon": 3,
        "changes": 2,
        "actions": [0, 1],
        "observed_actions": [0, 0],
        "rewards": [-1.0, -1.0, -1.0],
        "observed_rewards": [-1.0, -1.0, -2.0],
        "doses": [[0.0], [1.0]],
        "observed_doses": [[0.0], [0.0]],
        "value": -4.0 * (1 - improvement),
        "observed": -4.0,
        "improvement": improvement,
    }
    return {
        "index": index,
        "kind": "look_back",
        "identity": str(index),
        **outcomes,
        "status": "may" if status == "recommended" else "leave",
        "alteration": {"action[1]": 1} if status == "recommended" else None,
        "value": -3.0,
        "estimate": None,
        "baseline": None,
        "findings": [],
        "reason": None,
        "trace": {"search": "greedy_changes"},
        "trajectory": trajectory,
        "score": {},
    }


DECISIONS = [decided(place, "recommended", 0.01 * (place + 1), float(place < 2)) for place in range(6)]
DECISIONS += [
    decided(6, "no_action", 0.0, 1.0),
    decided(7, "refused", 0.0, 0.0),
    decided(8, "no_action", 0.0, None),
]


def test_groups_are_counted():
    found = groups(Recorded(Path(), DECISIONS))
    assert [(group.group, group.observed, group.episodes) for group in found] == [
        ("nothing recommended", 1, 2),
        ("change recommended", 2, 6),
        ("smallest third of predicted improvements, 1.0 to 2.0%", 2, 2),
        ("middle third of predicted improvements, 3.0 to 4.0%", 0, 2),
        ("largest third of predicted improvements, 5.0 to 6.0%", 0, 2),
    ]
    lines = text(found)
    assert lines[0] == "Observed died_in_hosp (greedy_changes, at most 2 changes), with 95% intervals:"
    assert lines[-1] == NOT_AN_EFFECT
    assert len(lines) == 7


def test_intervals_are_wilson_s():
    low, high = Group("s", 1, "o", "g", 10, 0).interval
    assert (low, high) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert Group("s", 1, "o", "g", 10, 5).interval == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert Group("s", 1, "o", "g", 0, 0).line() == "  g: no episode"


@pytest.mark.slow
def test_the_report_of_a_run_has_the_table(tmp_path: Path):
    lines = "".join(json.dumps(one) + "\n" for one in DECISIONS)
    (tmp_path / "decisions.jsonl").write_text(lines)
    shown = report(tmp_path)
    assert "change recommended: 2 of 6, 33.3%" in shown
    assert NOT_AN_EFFECT in " ".join(shown.split())
    assert (tmp_path / "observed_outcomes.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert "observed_outcomes.csv" in shown
