"""The soak on small numbers: what it measures is what is there, and faults are seen."""

import json
import subprocess
import sys

import pytest

from tests.places import ROOT
from tests.scripts.typing_in import surroundings

pytestmark = pytest.mark.bench


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


def test_an_optimiser_that_is_killed_ends_with_the_same_file(tmp_path):
    found = part("kills optimiser", 2, tmp_path)
    assert (found["kills"], found["files"], found["equal"], found["faults"]) == (2, 1, 1, [])
    rounds = [json.loads(line) for line in (tmp_path / "optimiser/rounds.jsonl").read_text().splitlines()]
    assert sum(len(each["times"]) for each in rounds) == 2
    whole, again = (tmp_path / f"optimiser/{name}/run/trials.json" for name in ("first", "round"))
    assert len(json.loads(whole.read_text())["trials"]) == 20
    assert again.read_bytes() == whole.read_bytes()
    # Finished rounds are kept.
    assert part("kills optimiser", 2, tmp_path)["rounds"] == found["rounds"] == len(rounds)


def test_decisions_of_two_workers_that_are_killed_end_with_the_same_files(tmp_path):
    found = part("kills decide, 2 workers", 2, tmp_path)
    assert (found["kills"], found["faults"]) == (2, [])
    # More than decisions.jsonl.
    assert found["equal"] >= 5
    ended = tmp_path / "decide, 2 workers/round/run/run.json"
    assert json.loads(ended.read_text(encoding="utf-8"))["overrides"][-1] == "workers=2"
