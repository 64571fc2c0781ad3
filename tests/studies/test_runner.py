"""The runner: what is not done is done, written as it comes, and what is left is told."""

import json
import time
from dataclasses import replace

from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.request import read
from rehearsal_torch.studies.runner import Reproduction, Work, carried_out, run
from rehearsal_torch.studies.study_files import study

LAYOUTS = {"main": Layout("rows.csv", ("name",), ("name", "value"), ("value",))}
LOG = Log(("name",), ())


def job(name):
    return Job("main", "", "", "", 0, (), (name,))


def done(common, each):
    common.append(each.key[0])
    state = "failed" if each.key[0] == "bad" else "ok"
    rows = [{"name": each.key[0], "value": 1}] if state == "ok" else []
    return Outcome(each, rows, {"state": state, "commit": "c", "message": "why"})


def work(folder, names, asked):
    record = Record(folder, LAYOUTS, LOG)
    return Work("main", record, [job(name) for name in names], done, asked, lambda outcome: "good")


def test_what_is_done_is_not_done_again_and_what_failed_is(tmp_path, capsys):
    asked = []
    assert carried_out(work(tmp_path, ["a", "bad", "b"], asked), 1, None, time.monotonic()) == 1
    assert carried_out(work(tmp_path, ["a", "bad", "b", "c"], asked), 1, None, time.monotonic()) == 1
    assert asked == ["a", "bad", "b", "bad", "c"]
    out = capsys.readouterr().out
    for words in ("main: 3 of 3 to do", "1/3  a: good", "2/3  bad FAILED: why", "main: 2 of 4 to do"):
        assert words in out


def test_after_the_deadline_jobs_are_left(tmp_path):
    asked = []
    assert carried_out(work(tmp_path, ["a", "b"], asked), 1, time.monotonic() - 1, time.monotonic()) == 2
    assert asked == []


def test_of_many_jobs_a_fiftieth_is_told(tmp_path, capsys):
    names = [f"n{number}" for number in range(500)]
    assert carried_out(work(tmp_path, names, []), 1, None, time.monotonic()) == 0
    assert len(capsys.readouterr().out.splitlines()) == 51


class Small(Reproduction):
    """A study of two jobs, one of which fails."""

    def works(self):
        yield work(self.out.path, ["a", "bad"], [])

    def documents(self):
        self.out.write("README.md", "page\n")


def test_a_command_notes_itself_and_says_what_is_left(tmp_path, capsys):
    asked = replace(read(study("cbo"), ["stages=[main,figures]", "workers=1"]), out=tmp_path / "out")
    assert run(Small, asked, ["study=cbo", "workers=1"]) == 1
    told = json.loads((tmp_path / "out/run.json").read_text())
    assert told["commands"][0].endswith("reproduce study=cbo workers=1") or "scripts" in told["commands"][0]
    assert (told["rounds"], told["extra"]) == (None, [])
    assert (tmp_path / "out/README.md").read_text() == "page\n"
    assert "1 repeats are not done: type the same again" in capsys.readouterr().out


def test_figures_alone_note_nothing(tmp_path):
    asked = replace(read(study("cbo"), ["stages=figures"]), out=tmp_path / "out")
    assert Small(asked).begin() is None
