"""The page of the study of causal Bayesian optimisation."""

import pytest

from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.cbo.documents import documents
from rehearsal_torch.studies.cbo.reproduction import record_in
from rehearsal_torch.studies.plan import jobs
from rehearsal_torch.studies.record import Outcome
from rehearsal_torch.studies.study_files import study
from tests.studies.kept import regenerated
from tests.toys.traces import made

LINE = {"state": "ok", "rounds": 100, "seconds": 10.0, "commit": "abc", "message": ""}


@pytest.mark.slow
def test_documents_say_what_was_reached_and_what_was_cut(tmp_path):
    record = record_in(tmp_path)
    for name in ("dropwave lambda=1 sigma=0.1", "dropwave unit", "dropwave lambda=2 sigma=0.1"):
        for place, method in enumerate(
            ["ucb", "mcbo", "excbo", "excbo, 3 components", "excbo, beta 1", "excbo, components by bic"]
        ):
            for trial in jobs(study("cbo"), "main", [name], [method], seeds=[0, 1]):
                rows = made(
                    trial.world,
                    trial.setting,
                    method,
                    trial.seed,
                    [0.3, 0.4 + 0.1 * place + 0.01 * trial.seed] * 50,
                    1.0,
                )
                record.add(Outcome(trial, rows, LINE))
    for place, method in enumerate(
        ["excbo", "excbo, propagate sample", "excbo, decoder gp", "excbo, components by bic"]
    ):
        # The third is run on another problem, and so not as often as the default; on all seeds only the
        # fourth is.
        name = "ackley sigma=0.1" if place == 2 else "dropwave unit"
        (trial,) = jobs(study("cbo"), "choice", [name], [method], seeds=[200])
        rows = made(trial.world, trial.setting, method, trial.seed, [0.2, 0.8 + 0.1 * place] * 50, 1.0)
        record.add(Outcome(trial, rows, LINE))
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


@pytest.mark.slow
def test_the_committed_page_comes_from_the_committed_rows(tmp_path):
    assert regenerated("cbo", tmp_path)
