"""The soak on small numbers: what it measures is what is there, and faults are seen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.endurance import obstacles
from benchmarks.endurance.__main__ import parts
from benchmarks.endurance.kills import differences, unclocked
from benchmarks.endurance.memory import MIB, growth
from benchmarks.endurance.page import OBSTACLES, faults, page
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


def test_half_of_the_kills_of_decide_are_of_two_workers():
    found = parts(2000, 300, 50, 4)
    assert (found["kills decide"], found["kills decide, 2 workers"], found["kills trials"]) == (25, 25, 50)
    assert sum(count for name, count in found.items() if name.startswith("kills")) == 250
    assert sum(name.startswith("obstacles") for name in found) == 5
    assert "kills decide, 2 workers" not in parts(1, 1, 1, 1)


def test_a_disk_in_memory_has_less_room_than_is_needed():
    whole = {"run/a": b"x" * 9000, "run/b": b"y", "run/c": b"z" * 5000}
    # 3 + 1 pages; c was there.
    rooms = [obstacles._room(whole, {"run/c": b""}, share) / 4096 for share in (0.0, 0.5, 1.0)]
    assert rooms == [1, 1, 3]
    assert obstacles._room({"run/b": b"y"}, {}, 0.9) == 4096


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


@pytest.mark.parametrize(("each", "flat"), [(0.0, True), (0.02, True), (0.2, False)])
def test_memory_is_flat_or_it_grows(each, flat):
    samples = [int((400 + each * number) * MIB) for number in range(100)]
    found = growth(samples)
    # From the middle of the second tenth to that of the last: 80 samples.
    assert found["last"] - found["first"] == pytest.approx(80 * each, abs=0.02)
    assert found["flat"] is flat
    assert growth(samples[:99])["flat"] is None
    assert growth(samples, 20.0)["flat"]


def test_an_optimiser_that_begins_anew_is_asked_as_often(tmp_path):
    found = part("sessions", 42, tmp_path)
    assert (found["rounds"], found["trials"], found["memory"]["flat"]) == (42, 40, None)
    assert len(json.loads((tmp_path / "sessions/trials.json").read_text())["trials"]) == 2


def test_every_difference_is_a_sentence():
    once = {"run/a": b"1", "run/b": b"2", "run/run.json": b'{"seconds": 1.5, "seed": 0}'}
    again = once | {"run/run.json": b'{"seconds": 2.5, "seed": 0}'}
    assert list(differences((once, again), again)) == []
    found = {"run/a": b"3", "run/.a.7.part": b"", "run/run.json": b'{"seconds": 3e-05, "seed": 1}'}
    assert list(differences((once, again), found)) == [
        "run/b is missing",
        "run/.a.7.part was left behind",
        "run/a differs",
        "run/run.json differs in more than times",
    ]
    assert unclocked(b"step,name,value\n3,decision/seconds,0.25\n") == b"step,name,value\n3,\n"


def test_faults_are_counted_and_shown():
    memory = {"first": 400.0, "last": 410.0, "most": 411.0, "flat": False}
    decisions = {"decisions": 100, "cases": 50, "compared": 50, "different": [63], "milliseconds": 4.0}
    decisions |= {"models": ["cme_stack", "cme"]}
    rounds = {"rounds": 9, "read_again": False, "left_over": [".a.part"], "bytes": 7, "bytes_per_round": 1}
    rounds |= {"seconds_first": 0.1, "seconds_last": 0.2, "true_reward": 0.9}
    killed = {
        "command": "train",
        "kills": 3,
        "rounds": 1,
        "undisturbed_seconds": 4.0,
        "files": 22,
        "equal": 15,
    }
    found = {
        "decisions": decisions | {"memory": memory},
        "sessions": {"rounds": 9, "trials": 40, "seconds": 0.15, "memory": memory | {"last": 409.0}},
        "rounds": rounds | {"memory": memory | {"flat": True}},
        "kills train": killed | {"faults": ["run/a is missing"]},
        "obstacles train": {
            "command": "train",
            "met": 3,
            "refused": {"file limit": 2, "full disk": None, "read-only": 3, "at once": 1},
            "faults": ["read-only, number 2: it ended as if it had written"],
        },
    }
    told = faults(found)
    assert told == [
        "decisions: memory grew from 400.0 to 410.0 MiB",
        "sessions: memory grew from 400.0 to 409.0 MiB",
        "decisions: 1 differ from the first for their case, the first at 63",
        "rounds: the file gives other trials than the process that wrote it",
        "rounds: .a.part was left behind",
        "train: run/a is missing",
        "train: read-only, number 2: it ended as if it had written",
    ]
    run = {"command": "x", "commit": "0" * 40, "versions": {"python": "3.11"}, "machine": {"cores": 2}}
    text = page({"run": run, "parts": found, "faults": told})
    assert "Faults found: 7." in text
    assert "| train | 3 | 1 | 4 | 22 | 15 | 1 |" in text
    heads = "".join(f"refused, {name} | " for name in OBSTACLES)
    assert f"| command | each met | {heads}faults |" in text
    assert "| train | 3 | 2 | not met | 3 | 1 | 1 |" in text
    assert "by turns (cme_stack, cme), 50 cases in turn | 100 |" in text
