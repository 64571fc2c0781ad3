"""The soak on small numbers: what it measures is what is there, and faults are seen."""

import json
import subprocess
import sys

import pytest

from tests.places import ROOT
from tests.scripts.typing_in import surroundings


def part(name, count, folder):
    typed = [sys.executable, "-m", "benchmarks.endurance", "--part", name, "--count", str(count)]
    answer = subprocess.run(
        [*typed, "--work", str(folder)],
        cwd=ROOT,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.mark.slow
def test_a_campaign_that_is_killed_ends_with_the_same_decisions(tmp_path):
    answer = part("campaign", 30, tmp_path)
    assert (answer["rounds"], answer["kills"], answer["faults"]) == (30, 6, [])
    assert answer["failed"]
    assert answer["abandoned"]
    assert sum("killed" in line for line in answer["log"]) == 6
    whole, killed = (tmp_path / f"campaign/{name}/trials.json" for name in ("whole", "killed"))
    assert killed.read_bytes() == whole.read_bytes()


@pytest.mark.bench
def test_decisions_of_two_workers_that_are_killed_end_with_the_same_files(tmp_path):
    found = part("kills decide, 2 workers", 2, tmp_path)
    assert (found["kills"], found["faults"]) == (2, [])
    # More than decisions.jsonl.
    assert found["equal"] >= 5
    ended = tmp_path / "decide, 2 workers/round/run/run.json"
    assert json.loads(ended.read_text(encoding="utf-8"))["overrides"][-1] == "workers=2"
