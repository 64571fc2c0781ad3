"""The study of structural rehearsal models, tiny: it runs, stops, goes on, and says what it did."""

import csv
import json

import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.evaluation.online_rows import COLUMNS
from rehearsal_torch.evaluation.rehearsal_rows import TRUTH
from rehearsal_torch.studies.committed import unpack
from rehearsal_torch.studies.job import Protocol
from rehearsal_torch.studies.online import reproduction
from rehearsal_torch.studies.online.reproduction import (
    agents_in,
    configuration,
    record_in,
    repeats_of,
    rows_of,
)
from rehearsal_torch.studies.plan import jobs
from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.request import read
from rehearsal_torch.studies.study_files import study
from tests.studies.kept import copied


def run(
    folder, *stages, methods=("qwz23",), taus=("0.7",), count=1, rounds=3, worlds=("ride_hailing",), more=()
):
    lists = {"stages": stages, "worlds": worlds, "methods": methods, "settings": taus}
    typed = [f"{key}=[{','.join(names)}]" for key, names in lists.items()]
    typed += [f"seeds=range({count})", f"rounds={rounds}", "workers=1", "scenarios=200", f"out={folder}"]
    return main(["study=online", *typed, *more])


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_study_goes_on_where_it_ended_and_writes_its_documents(tmp_path, monkeypatch):
    assert run(tmp_path, "rounds", rounds=2) == 0
    first = (tmp_path / "rounds.csv").read_text()
    assert (
        first.splitlines()[0]
        == ",".join(COLUMNS)
        == "world,method,tau,repeat,round,target,value,success,p_true,oracle,information,lower,upper,seconds"
    )
    asked = []
    monkeypatch.setattr(
        reproduction, "rows_of", lambda protocol, job: asked.append(job.key) or rows_of(protocol, job)
    )
    methods = ("qwz23", "qwz23_success", "causal", "associative", "none")
    assert run(tmp_path, "rounds", "figures", methods=methods, taus=("0.3", "0.7"), rounds=2) == 0
    assert ("ride_hailing", "qwz23", "0.7", "0") not in asked
    assert len(asked) == 2 * 3 - 1 + 2
    assert (tmp_path / "rounds.csv").read_text().startswith(first)
    made = rows(tmp_path / "rounds.csv")
    assert len(made) == 2 * 8
    for row in made:
        assert 0 <= float(row["p_true"]) <= float(row["oracle"]) + 1e-6
        assert row["success"] in ("0", "1")
        assert float(row["seconds"]) > 0
        assert (row["target"] == "") == (row["method"] == "none")
    informed = [row for row in made if row["method"] == "qwz23"]
    assert all(
        float(row["information"]) > 0 and float(row["lower"]) < float(row["upper"]) for row in informed
    )
    assert {
        row["information"] + row["lower"] for row in made if row["method"] in ("qwz23_success", "none")
    } == {""}
    text = (tmp_path / "README.md").read_text()
    for part in (
        "## Table 1",
        "| 0.714 |",
        "## Fig. 4",
        "| 0.3 |",
        "## Policies",
        "## Without bi-directional edges, and without a graph",
        "## Speed",
        "## Missing repeats",
    ):
        assert part in text
    assert "(8 repeats)" in text
    assert {path.name for path in (tmp_path / "figures").glob("*.svg")} == {
        "fig4.svg",
        "policies.svg",
        "counterparts.svg",
    }
    assert len(json.loads((tmp_path / "run.json").read_text())["commands"]) == 2
    assert {line["state"] for line in rows(tmp_path / "jobs.csv")} == {"ok"}


@pytest.mark.slow
def test_a_repeat_comes_out_the_same_every_time():
    protocol = Protocol(CONF, {"rounds": 3, "scenarios": 100})
    (job,) = jobs(study("online"), "rounds", ["bermuda"], ["qwz23"], ["0.7"], [4])
    once, again = ([{**row, "seconds": 0.0} for row in rows_of(protocol, job)[0]] for _ in range(2))
    assert once == again
    assert len(once) == 3


@pytest.mark.slow
def test_a_world_that_changes_has_a_section_of_its_own(tmp_path):
    assert (
        run(
            tmp_path,
            "rounds",
            "figures",
            methods=("qwz23_success", "forgetting"),
            worlds=("two_stores",),
            rounds=4,
        )
        == 0
    )
    text = (tmp_path / "README.md").read_text()
    assert "## A world that changes" in text
    assert "| `forgetting` |" in text
    assert "## Table 1" not in text, "the paper has no such world"


@pytest.mark.slow
def test_the_bounds_have_rows_and_a_section_of_their_own(tmp_path):
    assert run(tmp_path, "truth", "figures", rounds=2, more=["certificate.models=40"]) == 0
    assert not (tmp_path / "rounds.csv").exists()
    made = rows(tmp_path / "truth.csv")
    assert tuple(made[0]) == (*COLUMNS, *TRUTH)
    for row in made:
        lower, upper, least = (float(row[key]) for key in TRUTH)
        assert row["method"] == "qwz23_bounds"
        assert 0 <= lower <= least <= upper <= 1
        assert float(row["upper"]) - float(row["lower"]) < 0.1
    assert "## Bounds for the mean and for the truth" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "figures/truth.svg").is_file()


def test_the_seeds_of_the_bounds_are_those_that_nothing_else_uses():
    planned = jobs(study("online"), "truth")
    assert [job.seed for job in planned[::2]] == list(range(300, 320))
    assert not {job.seed for job in planned} & set(study("online").stages["rounds"].seeds)


def test_other_protocols_and_slips_are_refused(tmp_path, capsys):
    assert run(tmp_path, "rounds", methods=("none",)) == 0
    assert run(tmp_path, "rounds", methods=("none",), rounds=4) == 2
    assert "made with rounds=3 scenarios=200" in capsys.readouterr().err
    for more, words in (
        ("settings=2", "settings: expected some of 0.3, 0.5, 0.7, 0.9; got 2"),
        ("methods=magic", "expected some of qwz23"),
        ("seeds=range(0)", "expected whole numbers of at least 0"),
    ):
        assert main(["study=online", more, f"out={tmp_path}"]) == 2
        assert words in capsys.readouterr().err


def test_a_repeat_that_fails_says_so_and_is_tried_again(tmp_path, capsys):
    assert run(tmp_path, "rounds", methods=("qwz23", "none"), more=["dataset.size.rows=5"]) == 1
    assert all("size.rows: expected" in line["message"] for line in rows(tmp_path / "jobs.csv"))
    assert "2 repeats are not done" in capsys.readouterr().out
    assert not (tmp_path / "rounds.csv").exists()


def test_the_deadline_leaves_repeats_for_later(tmp_path):
    assert run(tmp_path, "rounds", methods=("none",), more=["budget_minutes=0"]) == 1
    assert run(tmp_path, "rounds", methods=("none",)) == 0


def test_agents_are_played_once_and_stand_beside_the_paper(tmp_path, monkeypatch):
    asked = []

    def rl_rows(world, agent, rounds, repeat):
        asked.append((world, agent, rounds, repeat))
        for number in range(1, rounds + 1):
            told = {
                "target": "recommend",
                "value": 0.5,
                "success": 1,
                "p_true": 0.25,
                "oracle": 0.78,
                "seconds": 0.01,
            }
            yield (
                dict.fromkeys(COLUMNS, float("nan"))
                | {"world": world, "method": agent, "tau": "", "repeat": repeat, "round": number}
                | told
            )

    monkeypatch.setattr(reproduction, "rl_rows", rl_rows)
    monkeypatch.setitem(study("online").facts, "rounds", 3)
    for _ in range(2):
        assert run(tmp_path, "rl", count=2, methods=("ddpg", "cats")) == 0
    assert len(asked) == 4
    assert run(tmp_path, "rl", rounds=5, worlds=("bermuda",), methods=("ddpg",)) == 0
    lines = (tmp_path / "rl.csv").read_text().splitlines()
    (tmp_path / "rl.csv").write_text("\n".join(lines[:-2]) + "\n")  # as a killed run leaves it
    assert run(tmp_path, "rl", "figures", count=2, methods=("ddpg", "cats")) == 0
    assert len(asked) == 6
    text = (tmp_path / "README.md").read_text()
    for part in (
        "| ride_hailing | `cats` | 0.250 ± 0.000 |",
        "| 0.104 |",
        "### After 5 rounds",
        "last tenth",
        "| 0.688 |",
    ):
        assert part in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "method"),
    [(world, "qwz23") for world in study("online").worlds]
    + [("bermuda", method) for method in study("online").groups["ours"]],
)
def test_every_repeat_is_a_configuration_that_users_could_type(world, method):
    GlobalHydra.instance().clear()
    for job in jobs(study("online"), "rounds", [world], [method], ["0.5"], [7]):
        config = configuration(Protocol(CONF, {"rounds": 9, "scenarios": 123}), job)
        assert (config.seed, config.dataset.size.contexts, config.dataset.size.rows, config.learn) == (
            7,
            9,
            10,
            True,
        )
        assert OmegaConf.select(config, "objective.search_scenarios") == (None if method == "none" else 123)
        assert OmegaConf.select(config, "search.tau") == (0.5 if job.setting else None)


def test_names_of_the_other_stage_are_left_to_it():
    asked = read(study("online"), ["methods=[qwz23,ddpg]", "seeds=0", "worlds=bermuda"])
    assert [job.method for job in repeats_of(asked, "rounds")] == ["qwz23"]
    assert [job.method for job in repeats_of(asked, "rl")] == ["ddpg"]
    asked = read(study("online"), ["methods=ddpg_joint", "seeds=0", "worlds=bermuda"])
    assert [job.method for job in repeats_of(asked, "rounds")] == ["qwz23", "qwz23_success"]


@pytest.mark.slow
def test_what_is_committed_is_not_done_again(tmp_path):
    out = copied("online", tmp_path)
    unpack(out)
    online, record = study("online"), record_in(out)
    record.mend()
    assert len(record.lines) == 235
    assert record.todo(jobs(online, "rounds", methods=["qwz23"], seeds=range(10))) == []
    agents = agents_in(out, 100)
    assert agents.todo(jobs(online, "rl", methods=["ddpg", "uniform_joint"])) == []
    assert agents_in(out, 10_000).todo(jobs(online, "rl", ["bermuda"], ["ddpg"], seeds=[0])) == []


def test_other_taus_have_ten_repeats_beside_the_rounds_at_the_papers_tau(tmp_path):
    planned = jobs(study("online"), "taus")
    assert {job.setting for job in planned} == {"0.3", "0.5", "0.9"}
    assert len(planned) == 2 * 3 * 10
    # The stage shares its file with the rounds at the paper's tau.
    record = record_in(copied("online", tmp_path))
    assert record.todo(planned) == []
    assert record.layouts["taus"] == record.layouts["rounds"]


@pytest.mark.slow
def test_rounds_at_another_tau_stand_in_the_same_file(tmp_path):
    assert run(tmp_path, "taus", taus=("0.3", "0.9"), rounds=2) == 0
    assert [row["tau"] for row in rows(tmp_path / "rounds.csv")] == ["0.3", "0.3", "0.9", "0.9"]
    assert run(tmp_path, "taus", "figures", taus=("0.3", "0.9"), rounds=2) == 0
    assert "## Fig. 4: rounds at each tau" in (tmp_path / "README.md").read_text()
