"""Every option of every experiment is listed, with a value, a type and a meaning."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.options.knobs import nodes
from rehearsal_torch.cli.options.listing import main, table
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.program import main as program


def test_what_is_printed(capsys):
    assert main(["+experiment=cbo", "decision=ucb", "seed=7", "dataset.noise.sigma=0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    by_key = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert lines[0] == "The run"
    assert "dataset=dropwave  rehearsal_torch.problems.causal.dropwave.Dropwave" in lines
    assert by_key["learn"].split()[:5] == ["learn", "true", "true", "or", "false"]
    assert by_key["learn"].endswith("Needs a world."), "the experiment sets it, and config.yaml explains it"
    assert "0.3" in by_key["dataset.noise.sigma"]
    assert "7 = ${seed}" in by_key["dataset.seed"]
    assert by_key["dataset.scale"].endswith("lambda of the paper: 1, 2 or 3."), "the comment of the YAML file"
    assert by_key["dataset.noise.sigma"].endswith("The noise level."), "the docstring of the class"
    assert "whole number or null" in by_key["dataset.size.initial"]
    columns = {
        line.index(kind)
        for line, kind in (
            (by_key["seed"], "whole"),
            (by_key["dataset.scale"], "number"),
            (by_key["learn"], "true or"),
        )
    }
    assert len(columns) == 1, "aligned"
    assert sum("SpaceFilling" in line or "AcquisitionSearch" in line for line in lines) == 1, (
        "a class is named once"
    )


def test_meanings_are_wrapped_for_a_terminal():
    found = nodes(CONF, ["+experiment=own_table", "trainer=none"])
    for width in (60, 120, 200):
        wrapped = table(found, width)
        words = " ".join(wrapped.split())
        assert "Random seed of everything: the data, the weights," in words
        # Keys, values and types are never cut, whatever they need.
        rows = [line for line in wrapped.splitlines() if line.startswith(" " * 6)]
        assert rows
        assert max(map(len, rows)) <= width


@pytest.mark.slow
def test_what_must_be_given_is_listed_not_refused(capsys, tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/my_loan.yaml").write_text(
        "_target_: rehearsal_torch.problems.rehearsal.loan.Loan\nsize:\n"
        "  _target_: rehearsal_torch.problems.world_size.SampleSize\n  # Of the past.\n  rows: ???\n"
        "  contexts: ${dataset.size.rows}\nseed: 0\n"
    )
    typed = ["--config-dir", str(tmp_path), "+experiment=auf", "dataset=my_loan"]
    assert main(typed) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert lines["dataset.size.rows"][1:] == ["???", "whole", "number", "Of", "the", "past."]
    assert lines["dataset.size.contexts"][1:4] == ["???", "=", "${dataset.size.rows}"]
    assert main([*typed, "dataset.size.rows=7"]) == 0
    assert "dataset.size.rows" in (out := capsys.readouterr().out)
    assert "???" not in out
    with pytest.raises(UserError, match=r"dataset\.size\.rows must be given"):
        composed(CONF, typed[2:], multirun=False, extra=str(tmp_path))


@pytest.mark.slow
def test_a_table_is_refused_and_a_problem_file_names_its_experiment(tmp_path, monkeypatch, capsys):
    """Both were listed as the path of no data set, and so ignored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.csv").write_text("age,dose,result\n40,1,2\n")
    assert program(["options", "loans.csv"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("loans.csv: neither a problem file nor an experiment says what is asked of it")
    assert "Write a problem file of this table" in told.err
    assert "data=loans.csv, then" in told.err
    (tmp_path / "problem.yaml").write_text("question: trials\nmethod: ucb\n")
    assert program(["options", "problem.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("dataset=trials  ") for line in lines)
    assert any(line.startswith("  dataset.path ") and "problem.yaml" in line for line in lines)
