"""The soak on small numbers: what it measures is what is there, and faults are seen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.endurance import obstacles
from benchmarks.endurance.page import OBSTACLES
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


def disks_can_be_mounted():
    """Whether the system mounts a disk in memory for this user."""
    typed = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(typed, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_an_optimiser_that_meets_obstacles_ends_with_the_same_file(tmp_path):
    found = part("obstacles optimiser", 1, tmp_path)
    assert found["faults"] == []
    full = 1 if disks_can_be_mounted() else None
    assert found["refused"] == {"file limit": 1, "full disk": full, "read-only": 1, "at once": 0}
    assert tuple(found["refused"]) == OBSTACLES
    mounted = Path("/proc/mounts").read_text(encoding="utf-8")
    assert str(tmp_path) not in mounted, "the disk ended with the part"


def test_decisions_of_two_workers_that_are_killed_end_with_the_same_files(tmp_path):
    found = part("kills decide, 2 workers", 2, tmp_path)
    assert (found["kills"], found["faults"]) == (2, [])
    # More than decisions.jsonl.
    assert found["equal"] >= 5
    ended = tmp_path / "decide, 2 workers/round/run/run.json"
    assert json.loads(ended.read_text(encoding="utf-8"))["overrides"][-1] == "workers=2"


@pytest.mark.parametrize(
    ("obstacle", "codes", "said", "faults"),
    [
        ("file limit", [0], "", []),
        ("file limit", [2], "run/a: File too large", []),
        ("file limit", [2], "oh", ["it ended with the codes [2] and did not say 'File too large': oh"]),
        ("file limit", [70], "Traceback\nFile too large", ["it ended with a traceback"]),
        ("full disk", [2], "run/a: No space left on device", []),
        ("read-only", [0], "", ["it ended as if it had written"]),
        ("at once", [0, 2], "run is in use by process 7", []),
        ("at once", [0, 0], "", []),
        ("at once", [2, 2], "in use by process 7", ["both were refused, with the codes [2, 2]"]),
    ],
)
def test_how_a_command_ends_at_an_obstacle_is_judged(obstacle, codes, said, faults):
    assert obstacles._unsaid(obstacle, codes, said) == faults


def test_what_obstacles_leave_behind_is_seen(tmp_path):
    (tmp_path / "run").mkdir()
    for name in (".card.yaml.part", "card.yaml"):
        (tmp_path / "run" / name).touch()
    assert obstacles._hidden(tmp_path) == ["run/.card.yaml.part"]
    trials = [{"state": "completed"}] * 20
    for states, count in ((trials, 0), (trials[1:], 1), ([*trials, {"state": "pending"}], 1)):
        (tmp_path / "run/trials.json").write_text(json.dumps({"trials": states}))
        assert len(obstacles._unfinished(tmp_path)) == count


def test_decisions_that_repeat_a_case_are_compared(tmp_path):
    found = part("decisions", 110, tmp_path)
    assert (found["compared"], found["different"], found["statuses"]) == (10, [], ["recommended"])
    assert (found["models"], found["cases"]) == (["cme_stack", "cme"], 50)
    assert found["memory"]["first"] > 50


def test_an_optimiser_that_begins_anew_is_asked_as_often(tmp_path):
    found = part("sessions", 42, tmp_path)
    assert (found["rounds"], found["trials"], found["memory"]["flat"]) == (42, 40, None)
    assert len(json.loads((tmp_path / "sessions/trials.json").read_text())["trials"]) == 2
