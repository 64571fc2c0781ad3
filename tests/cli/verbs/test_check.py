"""The verb check: exit codes, what it prints, the schema, and that nothing secret is printed or recorded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal_torch.console_command import main as program
from rehearsal_torch.console_command import run
from rehearsal_torch.graphs.graph_files import read_plain
from rehearsal_torch.graphs.graph_notation import graph_of
from tests.data.problem_file.conftest import RIGHT, table, written  # noqa: F401
from tests.problems.conftest import sequence, trials  # noqa: F401

SOUND = RIGHT | {"graph": ["x -> {a d y z}", "a -> {y z}", "d -> {y z}"], "desired": "y - 2*z >= 0"}


@pytest.fixture
def file(written, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    return lambda **changes: written(**{**SOUND, **changes}).name


def test_costs_name_the_method_that_weighs_them(file, capsys):
    about = SOUND["variables"] | {"a": {"role": "action", "range": [-1, 1], "cost": 2}}
    assert run("check", [f"problem={file(variables=about)}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (remark,), last = [each for each in lines if each.startswith("The cheapest")], lines[-1]
    assert remark.startswith("The cheapest alteration that suffices: ")
    assert remark.endswith('problem.yaml decision=micns "+objective.weights={a:2}"')
    assert last == "To decide: python scripts/decide.py path=problem.yaml", "which is what the file asks for"
    rows = table()
    rows.loc[3, "y"] = None
    for more in ({"method": "care"}, {"missing": {"impute": 5}}):
        name = file(variables=about, **more)
        rows.to_csv("table.csv", index=False)
        assert run("check", [name]) == 0
        assert "micns" not in capsys.readouterr().out


@pytest.mark.parametrize("key", ["order", "tiers"])
def test_an_order_alone_is_enough(file, capsys, key):
    """It ended in a traceback, and `tiers` was unknown."""
    assert run("check", [file(graph={key: ["x", ["a", "d"], "y", "z"], "forbidden": ["x -> z"]})]) == 0
    out = capsys.readouterr().out
    read = out.partition("Graph, as it was read:\n")[2].partition("\n\n")[0].splitlines()
    assert read == [
        "  x -> a",
        "  x -> d",
        "  x, a, d -> y",
        "  a, d, y -> z",
        "  hidden common causes: a <-> d",
    ]


def test_a_hidden_cause_that_nothing_blocks_is_warned_of(file, capsys):
    assert run("check", [file(graph=[*SOUND["graph"], "a <-> y"])]) == 0
    out = capsys.readouterr().out
    assert "  hidden common causes: a <-> y" in out
    assert (
        "graph: a and y, z have a common cause that is not blocked by x, d (a -> y accompanies a <-> y), and "
        "a acts on y directly, so that there is no front door: what setting a does cannot be told from these "
        "rows, by adjustment or the front door; measure the common cause, or run an experiment" in out
    )


def test_values_of_cases_that_cannot_occur_are_told(file, capsys):
    rows = table()
    rows["x"] = (rows["x"] > 0).astype(int) + 1
    variables = SOUND["variables"] | {"x": {"role": "context", "kind": "binary"}}
    name = file(variables=variables, cases=[{"x": 1}, {"x": 7}])
    rows.to_csv("table.csv", index=False)
    assert run("check", [name]) == 2
    words = (
        "cases: case 2 (line 28) of the list of cases in problem.yaml: x is 7; expected one of its two "
        "values, 1 and 2"
    )
    assert words in capsys.readouterr().err
    name = file(cases=[{"x": 0.1}, {"x": 500}])
    table().to_csv("table.csv", index=False)
    assert run("check", [name]) == 0
    assert "in the rows, and case 2 has 500: what is estimated there is a guess" in capsys.readouterr().out


def test_costs_are_told_with_the_value_from_which_changes_count(file, capsys):
    about = {"role": "action", "range": [-1, 1], "unit": "mg", "cost": {"up": 2, "fixed": 10}}
    variables = SOUND["variables"] | {"a": about, "d": SOUND["variables"]["d"] | {"cost": 1}}
    assert run("check", [f"problem={file(variables=variables, worth=100, cases=[{'x': 0}])}"]) == 0
    out = capsys.readouterr().out
    assert "Costs of changes, of which a desired outcome is worth 100:" in out
    line = next(line for line in out.splitlines() if line.startswith("  a: "))
    assert line.startswith(
        "  a: 2 per mg up, 0 down, 10 for any change; from the present value, or from the usual"
    )
    (d,) = (line for line in out.splitlines() if line.startswith("  d: "))
    rows = table()["d"]
    assert rows.value_counts().idxmax() == float(d.partition("usual one, ")[2].partition(",")[0])
    assert "micns" not in out
    assert run("check", [f"problem={file(variables=variables, worth=100, method='grad_rh')}"]) == 2
    assert "grad_rh does not look for the largest probability" in capsys.readouterr().err


def test_the_schema_is_written_and_not_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("check", ["schema=problem.schema.json"]) == 0
    schema = json.loads((tmp_path / "problem.schema.json").read_text())
    assert schema["properties"]["question"]["enum"] == ["cases", "sequence", "trials"]
    assert "# yaml-language-server: $schema=problem.schema.json" in capsys.readouterr().out
    (tmp_path / "problem.schema.json").write_text("mine")
    assert run("check", ["schema=problem.schema.json"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "problem.schema.json").read_text() == "mine"
    assert run("check", ["schema=problem.schema.json", "force=true"]) == 0


def test_the_graph_is_handed_back_with_its_roles(file, sequence, capsys):  # noqa: F811
    assert run("check", [file(graph=SOUND["graph"] + ["d <-> z"]), "graph=drawn.dagitty"]) == 0
    drawn = graph_of(read_plain("drawn.dagitty"))
    arrows = {(cause, effect) for effect in "yz" for cause in "xad"} | {("x", "a"), ("x", "d")}
    assert (set(drawn.edges), drawn.bidirected) == (arrows, (("d", "z"),))
    assert "  a [exposure]\n" in Path("drawn.dagitty").read_text()
    for suffix in ("graphml", "yaml"):
        assert run("check", [file(), f"graph=drawn.{suffix}"]) == 0
        assert set(graph_of(read_plain(f"drawn.{suffix}")).edges) == arrows
    refused = [(file, "drawn.dagitty", "exists"), (file, "a.png", "ends in"), (sequence, "b", "no graph")]
    for problem, name, words in refused:
        assert run("check", [str(problem()), f"graph={name}"]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "data",
    [
        {"sql": "postgresql://me:hunter2@secret/db", "query": "select 1"},
        {"sql": "sqlite:///secret/hunter2.db", "query": "select 1"},
        {"sql": "sqlite:///secret.db", "queri": "hunter2"},
        {"file": "postgresql+psycopg://me:hunter2@secret/db"},
        {"postgresql+psycopg://me:hunter2@secret/db": None},
        "mysql://me:hunter2@secret/db",
    ],
)
def test_no_message_holds_an_address(file, capsys, data):
    assert run("check", [file(data=data)]) == 2
    told = capsys.readouterr()
    assert "data bases and addresses are not read" in " ".join(told.err.split())
    for secret in ("hunter2@", "secret", "hunter2.db"):
        assert secret not in told.out + told.err


def test_a_yaml_error_does_not_quote_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.yaml").write_text('data: {sql: "postgresql://me:hunter2@h", query: [}\n')
    assert run("check", ["problem.yaml"]) == 2
    assert "hunter2" not in capsys.readouterr().err


@pytest.mark.slow
def test_imputed_rows_are_decided_by_and_reported(file, tmp_path, capsys):
    name = file(missing={"impute": 3}, cases=[{"x": 0.1}, {"x": 1}])
    rows = table()
    rows.loc[rows["x"] > 0.8, "y"] = None
    count = int(rows["y"].isna().sum())
    rows.to_csv(tmp_path / "table.csv", index=False)
    assert run("check", [name]) == 0
    assert f"Note: {count} of 120 rows have a missing cell; missing cells are imputed 3 times" in (
        capsys.readouterr().out
    )
    typed = [name, "+experiment=own_problem", "decision=care", "out=run", "workers=1"]
    assert program(["decide", *typed]) == 0
    assert (
        f"missing cells: {count} of 120 rows, imputed 3 times; by column: y: {count}"
        in capsys.readouterr().out
    )
    lines = (tmp_path / "run" / "decisions.jsonl").read_text()
    for each in map(json.loads, lines.splitlines()):
        assert each["trace"]["imputation"]["imputations"] == 3
    assert f"{count} of 120 rows, imputed 3 times" in (tmp_path / "run" / "report.html").read_text()
    # What is resumed has the same models, from the checkpoint.
    assert program(["decide", *typed]) == 0
    assert (tmp_path / "run" / "decisions.jsonl").read_text() == lines


def test_a_check_loads_no_botorch_and_no_statistics(file, sequence, trials, tmp_path):  # noqa: F811
    """They take as long to load as the file to read."""
    rows = table()
    rows.loc[rows["x"] > 0.8, "y"] = None
    (tmp_path / "cases.yaml").write_text((tmp_path / file()).read_text())
    (tmp_path / "care.yaml").write_text((tmp_path / file(method="care")).read_text())
    rows.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "sequence.yaml").write_text(sequence().read_text())
    trials()
    heavy = {"botorch", "gpytorch", "scipy.stats", "sklearn", "lightning", "matplotlib"}
    code = (
        "import sys; from rehearsal_torch.console_command import main\n"
        "names = ('cases.yaml', 'sequence.yaml', 'problem.yaml')\n"
        "codes = [main(['check', name]) for name in names]\n"
        f"print(codes, {heavy | {'hydra'}} & set(sys.modules), file=sys.stderr)\n"
        f"print(main(['check', 'care.yaml']), {heavy} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == "[0, 0, 0] set()\n0 set()\n", done.stderr
