"""The study of causal Bayesian optimisation: what it plans, that it can be taken up again, and what it
writes."""

import csv

import pytest

from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.cbo import study as cbo_study
from rehearsal_torch.studies.cbo.documents import documents
from rehearsal_torch.studies.cbo.reproduce import main
from rehearsal_torch.studies.rounds_record import TRIALS, RoundsRecord
from tests.places import ROOT

SMALL = [
    "--settings",
    "dropwave lambda=1 sigma=0.1",
    "--methods",
    "random",
    "--seeds",
    "0",
    "1",
    "--rounds",
    "2",
    "--workers",
    "1",
]


def read(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.slow
def test_every_setting_and_method_can_be_built():
    from hydra import compose, initialize_config_dir
    from hydra.utils import instantiate

    assert len(cbo_study.MAIN) >= 8
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for trial in cbo_study.trials(list(cbo_study.SETTINGS), ["excbo"], [0]):
            if trial.problem != "chemostat":
                assert (
                    instantiate(compose("config", list(trial.overrides)).dataset).rounds
                    == cbo_study.SETTINGS[f"{trial.problem} {trial.setting}"].rounds
                )
        for trial in cbo_study.trials(["ackley sigma=0.1"], list(cbo_study.VARIANTS), [0]):
            config = compose("config", list(trial.overrides))
            assert callable(instantiate(config.search))


def test_trials_go_seed_by_seed():
    found = cbo_study.trials(["ackley sigma=0.1", "rosenbrock sigma=0.1"], ["ucb", "excbo"], [3, 4], rounds=7)
    assert [each.seed for each in found] == [3] * 4 + [4] * 4
    assert "dataset.rounds=7" in found[0].overrides
    assert found[0].key == ("ackley", "sigma=0.1", "ucb", "3")


def test_the_choice_of_the_default_has_seeds_of_its_own(tmp_path, monkeypatch):
    planned = []
    monkeypatch.setattr(
        "rehearsal_torch.studies.rounds.carried_out",
        lambda record, do, protocol, trials, *rest: planned.extend(trials) or 0,
    )
    assert main(["--stages", "main", "choice", "--settings", "ackley sigma=0.1", "--out", str(tmp_path)]) == 0
    assert {each.seed for each in planned if each.method == "excbo, decoder gp"} == set(cbo_study.FRESH_SEEDS)
    assert {each.seed for each in planned if each.method == "ucb"} == set(cbo_study.SEEDS)
    assert set(cbo_study.CONTENDERS) <= {"excbo", *cbo_study.ABLATIONS}


@pytest.mark.slow
def test_a_study_is_recorded_and_taken_up_again(tmp_path, capsys):
    assert main(["--stages", "main", *SMALL, "--out", str(tmp_path)]) == 0
    rows = read(tmp_path / "traces.csv")
    assert [(row["seed"], row["round"]) for row in rows] == [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")]
    assert all(float(row["best_expected"]) >= float(row["start"]) for row in rows)
    assert main(["--stages", "main", *SMALL, "--out", str(tmp_path)]) == 0
    assert "0 of 2 repeats to do" in capsys.readouterr().out
    # A repeat without a line is not done: its rows are dropped, and it begins anew.
    jobs = (tmp_path / "jobs.csv").read_text().splitlines()
    (tmp_path / "jobs.csv").write_text("\n".join(jobs[:2]) + "\n")
    assert main(["--stages", "main", *SMALL, "--out", str(tmp_path)]) == 0
    again = read(tmp_path / "traces.csv")
    assert [{**row, "seconds": ""} for row in again] == [{**row, "seconds": ""} for row in rows]


@pytest.mark.slow
def test_other_settings_are_not_mixed_with_those_there(tmp_path, capsys):
    assert main(["--stages", "main", *SMALL, "--out", str(tmp_path)]) == 0
    assert (
        main(["--stages", "main", *SMALL[:-4], "--rounds", "3", "--workers", "1", "--out", str(tmp_path)])
        == 2
    )
    assert "--rounds 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["--settings", "dropwave"], "--settings"),
        (["--methods", "best"], "--methods"),
        (["--workers", "0"], "at least 1"),
    ],
)
def test_slips_are_told_before_anything_runs(tmp_path, capsys, typed, message):
    assert main(["--stages", "main", "--out", str(tmp_path), *typed]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "traces.csv").exists()


def made(problem, setting, method, seed, ends, optimum):
    start, rows = optimum / 4, []
    for number, value in enumerate(ends, 1):
        values = {
            "expected": value,
            "best_expected": max(value, start),
            "recommended_expected": value,
            "optimum": optimum,
            "start": start,
            "seconds": 0.1,
        }
        rows.append(
            {
                "problem": problem,
                "setting": setting,
                "method": method,
                "seed": seed,
                "round": number,
                **values,
            }
        )
    return rows


@pytest.mark.slow
def test_documents_say_what_was_reached_and_what_was_cut(tmp_path):
    record = RoundsRecord(tmp_path, TRIALS)
    for name in ("dropwave lambda=1 sigma=0.1", "dropwave unit", "dropwave lambda=2 sigma=0.1"):
        for place, method in enumerate(
            ["ucb", "mcbo", "excbo", "excbo, 3 components", "excbo, beta 1", "excbo, components by bic"]
        ):
            for trial in cbo_study.trials([name], [method], [0, 1]):
                rows = made(
                    trial.problem,
                    trial.setting,
                    method,
                    trial.seed,
                    [0.3, 0.4 + 0.1 * place + 0.01 * trial.seed] * 50,
                    1.0,
                )
                record.add(
                    trial,
                    rows,
                    {"state": "ok", "rounds": 100, "seconds": 10.0, "commit": "abc", "message": ""},
                )
    for place, method in enumerate(
        ["excbo", "excbo, propagate sample", "excbo, decoder gp", "excbo, components by bic"]
    ):
        # The third is run on another problem, and so not as often as the default; on all seeds only the
        # fourth is.
        name = "ackley sigma=0.1" if place == 2 else "dropwave unit"
        trial = cbo_study.trials([name], [method], [200])[0]
        rows = made(trial.problem, trial.setting, method, trial.seed, [0.2, 0.8 + 0.1 * place] * 50, 1.0)
        record.add(
            trial, rows, {"state": "ok", "rounds": 100, "seconds": 10.0, "commit": "abc", "message": ""}
        )
    documents(RunFolder(tmp_path))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    heads = (
        "main setting of each problem",
        "beside each method",
        "Tables 2 and 3",
        "Fig. 4 of the paper",
        "Fig. 14",
        "Ablation",
        "Seconds a round",
        "What was cut",
    )
    for head in heads:
        assert head in text
    assert "excbo, published | 0.76 ± 0.04" in text
    assert "dropwave unit: ucb 2" in text
    assert "excbo 2" in text
    assert "| excbo | 0.267 | 0.267 |" in text
    assert "| excbo, propagate sample | 0.133 | 0.133 |" in text
    assert "| excbo, decoder gp |" not in text
    contending = text.split("## Which configuration is the default, on all seeds")[1].split("##")[0]
    assert [line.split(" | ")[0] for line in contending.splitlines() if line.startswith("| excbo")] == [
        "| excbo",
        "| excbo, components by bic",
    ]
    alone = text.split("## Configurations run about as often as the default, by themselves")[1].split("##")[0]
    assert "| dropwave unit | `excbo, components by bic` | 2 | 0.905 | 0.9 | 0.91 | 0.905 | 1 |" in alone
    assert "| `excbo, propagate sample` | 1 | 1 | 0 | -0.133 |" in text
    assert "| dropwave unit | 0.25 | " in text
    assert "| 0.605 [" in text
    assert (tmp_path / "figures" / "main.svg").is_file()
    assert (tmp_path / "figures" / "fig4.png").is_file()
