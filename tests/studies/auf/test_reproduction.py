"""The study of avoiding undesired futures, tiny: it runs, stops, goes on, and says what it did."""

import csv
import json
from dataclasses import replace

import pytest
import yaml
from omegaconf import OmegaConf

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS
from rehearsal_torch.studies import request
from rehearsal_torch.studies.auf import reproduction
from rehearsal_torch.studies.auf.reproduction import job_totals, record_in, recorded_rows, rows_of
from rehearsal_torch.studies.committed import unpack
from rehearsal_torch.studies.job import configured
from rehearsal_torch.studies.plan import jobs
from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.study_files import study
from tests.studies.kept import copied
from tests.toys.decided import outcome


def listed(names):
    return f"[{','.join(map(str, names))}]"


def run(folder, *stages, methods=("none", "care"), seeds=(0,), contexts=2, extra=("dataset.size.rows=120",)):
    typed = [f"stages={listed(stages)}", "worlds=bank", f"methods={listed(methods)}"]
    typed += [f"seeds={listed(seeds)}", f"contexts={contexts}", "workers=1", f"out={folder}"]
    return main(["study=auf", *typed, *extra])


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
    monkeypatch.setattr(
        reproduction, "rows_of", lambda protocol, job: asked.append(job.key) or rows_of(protocol, job)
    )
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
        "planned jobs are missing",
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
    assert "contexts=2" in capsys.readouterr().err
    assert main(["study=auf", "methods=magic", f"out={tmp_path}"]) == 2
    assert "expected some of none, cme" in capsys.readouterr().err


def test_a_job_that_fails_says_so_and_lets_the_others_go_on(tmp_path, capsys):
    assert run(tmp_path, "table1", methods=("none", "care"), extra=("dataset.size.rows=5",)) == 1
    lines = rows(tmp_path / "jobs.csv")
    assert {line["state"] for line in lines} == {"failed"}
    assert all("size.rows: expected" in line["message"] for line in lines)
    assert "2 jobs are not done" in capsys.readouterr().out
    assert not (tmp_path / "table1.csv").exists()


def test_the_deadline_leaves_jobs_for_later(tmp_path):
    typed = [
        "study=auf",
        "stages=table1",
        "worlds=bank",
        "methods=none",
        "seeds=0",
        "contexts=1",
        "workers=1",
    ]
    assert main([*typed, f"out={tmp_path}", "budget_minutes=0"]) == 1
    assert main([*typed, f"out={tmp_path}"]) == 0


@pytest.mark.slow
def test_tables_of_the_other_stages_stand_beside_the_papers(tmp_path, monkeypatch):
    # What the tables look like does not depend on what decides; the closed form is quick.
    def quick(protocol, job):
        kept = [text for text in job.overrides if not text.startswith(("decision=", "surrogate"))]
        return rows_of(protocol, replace(job, overrides=(*kept, "decision=care", "dataset.size.rows=60")))

    kept = ("=10", "=1", "=200", "=500", "=leave_one_out", "=1 lambda_x=1")
    monkeypatch.setattr(
        request,
        "jobs",
        lambda *given, **names: [
            job for job in jobs(*given, **names) if not job.setting or job.setting.endswith(kept)
        ],
    )
    monkeypatch.setattr(reproduction, "rows_of", quick)
    stages = ("table1", "eta", "lambdas", "learning_curve", "sensitivity")
    assert run(tmp_path, *stages, methods=("cme", "cme_published"), extra=()) == 0
    assert run(tmp_path, "eta", "lambdas", "figures", extra=()) == 0
    text = (tmp_path / "README.md").read_text()
    for part in (
        "## Table 3",
        "| paper | 0.456 |",
        "## Table 4",
        "| 1x |",
        "## Learning curves",
        "N = 200",
        "## Fixed and selected hyper-parameters",
        "widths=leave_one_out",
    ):
        assert part in text
    assert (tmp_path / "figures/learning_curve.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("stage", study("auf").stages)
def test_every_job_is_a_configuration_that_users_could_type(stage):
    planned = jobs(study("auf"), stage, seeds=[0])
    for job in planned[:: max(1, len(planned) // 4)]:
        config = configured(CONF, [*job.overrides, "dataset.size.contexts=7"])
        assert (config.seed, config.dataset.size.contexts) == (0, 7)
        for text in job.overrides:
            key, _, value = text.partition("=")
            if not key.startswith("+") and key not in ("decision", "surrogate", "dataset"):
                assert OmegaConf.select(config, key) == yaml.safe_load(value)


def test_large_jobs_can_be_left_out(tmp_path, capsys):
    typed = ["study=auf", "stages=scalability", "seeds=0", "max_rows=1000", "budget_minutes=0"]
    assert main([*typed, f"out={tmp_path}"]) == 1
    assert "scalability: 5 of 5 to do" in capsys.readouterr().out


def test_what_is_committed_is_not_done_again(tmp_path):
    out = copied("auf", tmp_path)
    unpack(out)
    record = record_in(out)
    record.mend()
    for stage in ("table1", "eta", "lambdas"):
        assert record.todo(jobs(study("auf"), stage)) == []
    assert len(record.lines) == 1405
    assert sorted(path.name for path in out.glob("*.csv")) == sorted(
        ["jobs.csv", *(stage.file for stage in study("auf").stages.values())]
    )


def test_a_row_has_its_setting_and_the_seconds_of_its_fit(tmp_path):
    record = record_in(tmp_path)
    record.add(outcome())
    record.add(outcome("eta", setting="eta=3"))
    assert [(row["setting"], row["fit_seconds"], row["auf"]) for row in recorded_rows(record, "eta")] == [
        ("eta=3", 0.25, 0.5)
    ] * 2
    assert {row["setting"] for row in recorded_rows(record, "table1")} == {""}
    assert recorded_rows(record, "lambdas") == []


def test_totals_are_sums_over_jobs_of_a_stage(tmp_path):
    record = record_in(tmp_path)
    for seed, idle in ((0, 1), (1, 2)):
        record.add(outcome(seed=seed, idle=idle))
    record.add(outcome("eta", setting="eta=3", idle=1))
    assert job_totals(record, "table1", "idle") == {("bank", "cme"): 3}
    assert job_totals(record, "eta", "decisions") == {("bank", "cme"): 2}
