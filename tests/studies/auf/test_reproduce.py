"""The study of avoiding undesired futures, tiny: it runs, stops, goes on, and says what it did."""

import csv
import json

import pytest
import yaml
from omegaconf import OmegaConf

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS
from rehearsal_torch.studies.auf import job as auf_job
from rehearsal_torch.studies.auf import reproduce as reproduce_auf
from rehearsal_torch.studies.auf import study as auf_study
from rehearsal_torch.studies.auf.job import Protocol, configured, done
from rehearsal_torch.studies.auf.published import TABLE1
from rehearsal_torch.studies.auf.reproduce import main
from rehearsal_torch.studies.auf.study import FILES, METHODS, WORLDS, jobs
from rehearsal_torch.studies.record import Job


def run(folder, *stages, methods=("none", "care"), seeds=(0,), contexts=2, extra=("dataset.rows=120",)):
    told = [
        "--stages",
        *stages,
        "--worlds",
        "bank",
        "--methods",
        *methods,
        "--seeds",
        *map(str, seeds),
        "--contexts",
        str(contexts),
    ]
    return main([*told, "--workers", "1", "--out", str(folder), "--set", *extra])


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_study_goes_on_where_it_ended_and_writes_its_tables(tmp_path, monkeypatch):
    assert run(tmp_path, "table1") == 0
    first = (tmp_path / "table1.csv").read_text()
    assert first.splitlines()[0] == ",".join(COLUMNS)
    assert len(rows(tmp_path / "table1.csv")) == 4
    asked = []
    monkeypatch.setattr(auf_job, "done", lambda protocol, job: asked.append(job.key) or done(protocol, job))
    assert run(tmp_path, "table1", "figures", methods=("none", "cme_published", "care")) == 0
    assert asked == [("table1", "bank", "cme_published", "", "0")]
    assert (tmp_path / "table1.csv").read_text().startswith(first)
    care = [row for row in rows(tmp_path / "table1.csv") if row["method"] == "care"]
    assert all(float(row["no_action"]) < float(row["auf"]) <= float(row["oracle"]) + 1e-9 for row in care)
    assert all(float(row["lower"]) < float(row["estimate"]) < float(row["upper"]) for row in care)
    text = (tmp_path / "README.md").read_text()
    for part in (
        "| world | no action |",
        "0.598 ± 0.066",
        "every cell is complete",
        "(3 jobs)",
        "The NHANES generator",
    ):
        assert part in text
    assert {path.name for path in (tmp_path / "figures").glob("*.png")} >= {"table1.png"}
    told = json.loads((tmp_path / "run.json").read_text())
    assert len(told["commands"]) == 2
    lines = rows(tmp_path / "jobs.csv")
    assert {line["state"] for line in lines} == {"ok"}
    assert [line["idle"] for line in lines if line["method"] == "none"] == ["2"]
    assert all(float(line["fit_seconds"]) > 0 for line in lines)


def test_other_protocols_are_not_mixed_in(tmp_path, capsys):
    assert run(tmp_path, "table1", methods=("none",)) == 0
    assert run(tmp_path, "table1", methods=("none",), contexts=3) == 2
    assert "--contexts 2" in capsys.readouterr().err
    assert main(["--methods", "magic", "--out", str(tmp_path)]) == 2
    assert "expected some of none" in capsys.readouterr().err


def test_a_job_that_fails_says_so_and_lets_the_others_go_on(tmp_path, capsys):
    assert run(tmp_path, "table1", methods=("none", "care"), extra=("dataset.rows=5",)) == 1
    lines = rows(tmp_path / "jobs.csv")
    assert {line["state"] for line in lines} == {"failed"}
    assert all("10 rows" in line["message"] for line in lines)
    assert "2 jobs are not done" in capsys.readouterr().out
    assert not (tmp_path / "table1.csv").exists()


def test_the_deadline_leaves_jobs_for_later(tmp_path):
    told = [
        "--stages",
        "table1",
        "--worlds",
        "bank",
        "--methods",
        "none",
        "--seeds",
        "0",
        "--contexts",
        "1",
        "--workers",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert main([*told, "--budget-minutes", "0"]) == 1
    assert main(told) == 0


@pytest.mark.slow
def test_tables_of_the_other_stages_stand_beside_the_papers(tmp_path, monkeypatch):
    monkeypatch.setattr(auf_study, "FACTORS", (1.0,))
    monkeypatch.setattr(auf_study, "SHARPNESS", (10,))
    monkeypatch.setattr(auf_study, "WIDTHS", (1.0,))
    monkeypatch.setattr(auf_study, "ROWS", (60, 120))

    # What the tables look like does not depend on what decides; the closed form is quick.
    def quick(protocol, job):
        return done(
            protocol, Job(job.stage, job.dataset, job.method, job.setting, job.seed, ("decision=care",))
        )

    monkeypatch.setattr(auf_job, "done", quick)
    assert (
        run(
            tmp_path,
            "table1",
            "eta",
            "lambdas",
            "learning_curve",
            "sensitivity",
            methods=("cme", "cme_published"),
            extra=(),
        )
        == 0
    )
    assert run(tmp_path, "eta", "lambdas", "figures", extra=()) == 0
    text = (tmp_path / "README.md").read_text()
    for part in (
        "## Table 3",
        "| paper | 0.456 |",
        "## Table 4",
        "| 1x |",
        "## Learning curves",
        "N = 60",
        "## With and without our selection",
        "widths=leave_one_out",
    ):
        assert part in text
    assert (tmp_path / "figures/learning_curve.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("stage", FILES)
def test_every_job_is_a_configuration_that_users_could_type(stage):
    planned = jobs(stage, [0])
    assert len({job.key for job in planned}) == len(planned)
    for job in planned[:: max(1, len(planned) // 4)]:
        config = configured(Protocol(CONF, 7), job)
        assert (config.seed, config.dataset.contexts) == (0, 7)
        for text in job.overrides:
            key, _, value = text.partition("=")
            if key not in ("decision", "surrogate"):
                assert OmegaConf.select(config, key) == yaml.safe_load(value)


def test_the_plan_has_the_papers_sizes():
    assert len(jobs("table1", range(5))) == len(WORLDS) * len(METHODS) * 5
    assert len(jobs("lambdas", [0])) == 25
    assert {job.setting for job in jobs("eta", [0])} == {f"eta={eta}" for eta in (3, 5, 10, 20, 50)}
    assert any("rows=100000" in job.setting for job in jobs("scalability", [0]))
    assert not any("rows=100000" in job.setting for job in jobs("scalability", [1]))
    assert set(TABLE1) == set(WORLDS)
    assert all(set(line) <= set(METHODS) for line in TABLE1.values())
    assert set(reproduce_auf.STAGES) == {*FILES, "figures"}
