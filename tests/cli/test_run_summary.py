import json

import pytest
import torch

from rehearsal_torch.cli import run_summary
from rehearsal_torch.cli.run_summary import described, free_memory, memory_note
from rehearsal_torch.data.table import Table
from rehearsal_torch.evaluation.run_record import read
from rehearsal_torch.problems.problem import Facts
from rehearsal_torch.problems.trials.user_experiments import ExperimentTable
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError


class Ward:
    """Two rows, and a card."""

    kind = "look_back"

    def __init__(self, last=4.0):
        self.last = last

    def observations(self):
        return Table.observed(("a", "b"), torch.tensor([[1.0, 2.0], [3.0, self.last]], dtype=torch.float64))

    def card(self):
        return {"patients": 2, "columns": ["a", "b"]}

    def facts(self):
        return Facts()


def test_the_whole_card_is_shown_on_request(tmp_path, capsys, monkeypatch):
    ranges = {"ranges": {"a": [0.0, 1.5]}}
    monkeypatch.setattr(Ward, "card", lambda self: {"patients": 2, **ranges})
    described(Ward(), RunFolder(tmp_path), sweep=False)
    assert capsys.readouterr().out == "Data\n  patients: 2\n"
    described(Ward(), RunFolder(tmp_path), sweep=False, config={"tables": True})
    assert capsys.readouterr().out == "Data\n  patients: 2\n  observed ranges: a 0 to 1.5\n"


def test_data_are_described_once_and_remembered(tmp_path, capsys):
    folder = RunFolder(tmp_path)
    fingerprint = described(Ward(), folder, sweep=False)
    assert capsys.readouterr().out == "Data\n  patients: 2\n  columns: a, b\n"
    assert fingerprint == Ward().observations().fingerprint()
    assert json.loads((tmp_path / "run.json").read_text())["data_fingerprint"] == fingerprint
    assert folder.read_yaml("data.yaml") == Ward().card()
    assert described(Ward(), folder, sweep=True) == fingerprint
    assert capsys.readouterr().out == ""


def test_what_to_know_before_a_fit_is_told_behind_the_card(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Ward, "facts", lambda self: Facts(notes=("no patient is well",)))
    described(Ward(), RunFolder(tmp_path), sweep=False)
    assert capsys.readouterr().out.endswith("\n  columns: a, b\nNote: no patient is well.\n")
    described(Ward(), RunFolder(tmp_path), sweep=True)
    assert capsys.readouterr().out == ""


def test_other_data_are_refused(tmp_path):
    described(Ward(), RunFolder(tmp_path), sweep=True)
    with pytest.raises(UserError, match="the run was started with other data"):
        described(Ward(5.0), RunFolder(tmp_path), sweep=True)


def test_other_rows_that_wait_are_refused(tmp_path):
    task = {"graph": {"parents": {"x": [], "y": ["x"]}}, "actions": {"x": [0, 1]}, "reward": "y"}
    done = "x,y\n0.1,1\n0.5,2\n0.9,1.5\n0.3,1.2\n0.7,1.9\n0.2,1.1\n"

    def table(*waiting):
        path = tmp_path / "experiments.csv"
        path.write_text(done + "".join(f"{value},\n" for value in waiting))
        return ExperimentTable(path, task)

    folders = [RunFolder(tmp_path / name) for name in ("none", "one")]
    for folder, waiting in zip(folders, ((), (0.4,)), strict=True):
        described(table(*waiting), folder, sweep=True)
        described(table(*waiting), folder, sweep=True)
    for folder, waiting in zip(folders, ((0.4,), (0.6,)), strict=True):
        with pytest.raises(UserError, match="while other rows waited for their result"):
            described(table(*waiting), folder, sweep=True)


class Fleet(Ward):
    """Rows with words of their own."""

    def facts(self):
        return Facts(wording={"unit": "machine", "units": "machines"})


def test_the_words_of_a_data_set_are_recorded_with_the_reward_and_the_actions(tmp_path):
    config = {
        "surrogate": {"member": {"doses": ["service"]}},
        "objective": {"reward": {"weights": {"wear": -1}}},
    }
    described(Fleet(), RunFolder(tmp_path), sweep=True, config=config)
    run = RunFolder(tmp_path).read_json("run.json")
    assert run["words"] == {"unit": "machine", "units": "machines"}
    assert (run["reward"], run["actions"]) == ({"weights": {"wear": -1}}, ["service"])
    RunFolder(tmp_path).write_yaml("config.yaml", config)
    words = read(tmp_path).words
    assert (words["unit"], words["actions"]) == ("machine", ["service"])
    described(Ward(), RunFolder(tmp_path / "plain"), sweep=True, config=config)
    assert "words" not in RunFolder(tmp_path / "plain").read_json("run.json")


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [("max", "5", 2_048_000), ("1000000", "400000", 600_000), (None, None, 2_048_000)],
)
def test_the_free_memory_is_that_of_the_machine_or_of_its_container(
    tmp_path, monkeypatch, limit, used, expected
):
    (tmp_path / "meminfo").write_text("MemTotal: 4000 kB\nMemAvailable:    2000 kB\n")
    monkeypatch.setattr(run_summary, "_MEMINFO", tmp_path / "meminfo")
    for name, content in (("_LIMIT", limit), ("_USED", used)):
        monkeypatch.setattr(run_summary, name, tmp_path / name)
        if content is not None:
            (tmp_path / name).write_text(content)
    assert free_memory() == expected


def test_only_fits_that_take_more_than_half_of_it_are_spoken_of(monkeypatch):
    monkeypatch.setattr(run_summary, "free_memory", lambda: 10_000_000_000)
    assert memory_note("rehearse", 3_000_000, 5) == ""
    words = memory_note("rehearse", 10_000_000, 5)
    assert words.startswith(
        "fits to 10,000,000 rows of 5 columns take about 13.5 GB, more than half of the 10"
    )
    assert memory_note("look_back", 10_000_000, 10) == ""
    assert memory_note("optimise", 10**9, 10) == ""
    monkeypatch.setattr(run_summary, "free_memory", lambda: None)
    assert memory_note("rehearse", 10**9, 10) == ""
