"""The study of causal Bayesian optimisation: what it plans, that it can be taken up again, and what it
writes."""

import csv

import pytest

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.studies.cbo import reproduction
from rehearsal_torch.studies.cbo.reproduction import limited, record_in
from rehearsal_torch.studies.committed import unpack
from rehearsal_torch.studies.job import configured
from rehearsal_torch.studies.plan import jobs
from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.study_files import study
from tests.studies.kept import copied
from tests.toys.traces import made

SMALL = ["study=cbo", "stages=main", "worlds='dropwave lambda=1 sigma=0.1'", "methods=random", "seeds=[0,1]"]


def read(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.bench
def test_every_setting_and_method_can_be_built():
    from hydra.utils import instantiate

    cbo = study("cbo")
    for job in jobs(cbo, "main", list(cbo.worlds), ["excbo"], seeds=[0]):
        if job.world != "chemostat":
            world = cbo.worlds[f"{job.world} {job.setting}"]
            config = configured(CONF, limited(job, None).overrides)
            assert instantiate(config.dataset).size.rounds == world.rounds
    for job in jobs(cbo, "main", ["ackley sigma=0.1"], list(cbo.methods), seeds=[0]):
        assert callable(instantiate(configured(CONF, job.overrides).search))


def test_rounds_are_those_of_the_setting_or_fewer():
    (job,) = jobs(study("cbo"), "main", ["pooled_testing sigma=0.2"], ["ucb"], seeds=[3])
    assert limited(job, None).overrides[-1] == "dataset.size.rounds=140"
    assert limited(job, 7).overrides[-1] == "dataset.size.rounds=7"
    assert limited(job, 7).key == ("pooled_testing", "sigma=0.2", "ucb", "3")


def test_a_repeat_of_two_stages_is_done_once(tmp_path, monkeypatch):
    done = []

    def quick(protocol, job):
        done.append(job.key)
        return made(job.world, job.setting, job.method, job.seed, [0.5], 1.0), {}

    monkeypatch.setattr(reproduction, "rows_of", quick)
    typed = ["study=cbo", "stages=[main,choice]", "worlds='ackley sigma=0.1'", "workers=1", f"out={tmp_path}"]
    assert main(typed) == 0
    seeds = {(method, seed) for _, _, method, seed in done}
    assert {seed for method, seed in seeds if method == "excbo, decoder gp"} == {"200", "201", "202", "203"}
    assert {seed for method, seed in seeds if method == "ucb"} == {"0", "1", "2", "3"}
    assert main([*typed[:1], "stages=[main,components,kernels]", *typed[2:]]) == 0
    assert len(done) == len(set(done))


@pytest.mark.slow
def test_a_study_is_recorded_and_resumed(tmp_path, capsys):
    typed = [*SMALL, "rounds=2", "workers=1", f"out={tmp_path}"]
    assert main(typed) == 0
    rows = read(tmp_path / "traces.csv")
    assert [(row["seed"], row["round"]) for row in rows] == [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")]
    assert all(float(row["best_expected"]) >= float(row["start"]) for row in rows)
    assert main(typed) == 0
    assert "main: 0 of 2 to do" in capsys.readouterr().out
    # A repeat without a line is not done: its rows are dropped, and it begins anew.
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    (tmp_path / "jobs.csv").write_text("\n".join(lines[:2]) + "\n")
    assert main(typed) == 0
    again = read(tmp_path / "traces.csv")
    assert [{**row, "seconds": ""} for row in again] == [{**row, "seconds": ""} for row in rows]
    assert main([*SMALL, "rounds=3", "workers=1", f"out={tmp_path}"]) == 2
    assert "made with rounds=2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("worlds=dropwave", "worlds: expected some of"),
        ("methods=best", "methods: expected some of"),
        ("workers=0", "workers: expected a whole number of at least 1; got 0"),
        ("rounds=1.5", "rounds: expected a whole number"),
    ],
)
def test_slips_are_told_before_anything_runs(tmp_path, capsys, typed, message):
    assert main(["study=cbo", "stages=main", f"out={tmp_path / 'new'}", typed]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_what_is_committed_is_not_done_again(tmp_path):
    out = copied("cbo", tmp_path)
    unpack(out)
    before = (out / "traces.csv").read_bytes()
    record = record_in(out)
    record.mend()
    assert (out / "traces.csv").read_bytes() == before
    assert record.todo(jobs(study("cbo"), "main", methods=["excbo"], seeds=[0, 1])) == []
