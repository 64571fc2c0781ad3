"""Tables of rows, cases and experiments: cells, columns, lines and bytes of them are mutated, and what is
left is decided from."""

import gzip

import yaml

from rehearsal_torch.data.reading import number_columns, read_table
from rehearsal_torch.graphs.bootstrap import bootstrap
from rehearsal_torch.graphs.learning import learn
from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from tests.fuzz.commanded import LIMITS, PROCESSES, deciding, typed_in
from tests.fuzz.decisions import REHEARSALS, TRIALS, experiments, optimised, rehearse, rows_of
from tests.fuzz.mutations import damaged, rows_changed, source, text_of

CASES = [["who", "x", "note"], ["ann", "0.5", "a"], ["bob", "-1.5", ""], ["cid", "2", "c"]]


def written(rng, rows):
    """The bytes of a table, and how its file is called."""
    if rng.random() < 0.85:
        rows = rows_changed(rng, rows)
    content = text_of(rows, ";" if rng.random() < 0.05 else ",").encode("utf-8", "replace")
    if rng.random() < 0.2:
        content = damaged(rng, content)
    if rng.random() < 0.1:
        return damaged(rng, gzip.compress(content, mtime=0)) if rng.random() < 0.5 else gzip.compress(
            content, mtime=0
        ), "table.csv.gz"
    return content, "table.csv"


def test_tables(number, judged, tmp_path):
    rng = source("tables", number)
    kind = rng.choice(["rows", "rows", "cases", "experiments", "experiments", "graph"])
    task, table = REHEARSALS[number % len(REHEARSALS)]
    rows = rows_of(experiments() if kind == "experiments" else table)
    content, name = written(rng, CASES if kind == "cases" else rows)
    (tmp_path / name).write_bytes(content)
    if kind == "cases":
        (tmp_path / "rows.csv").write_text(text_of(rows), encoding="utf-8")

    def work():
        if kind == "experiments":
            causal = rng.choice(TRIALS)
            ExperimentTable(name, causal).card()
            optimised(causal, name)
        elif kind == "graph":
            frame = read_table(name, "data").frame
            names = [str(each) for each in frame.columns]
            values = number_columns(frame, names, name, min_rows=5, varying=True)
            learn(values, names)
            bootstrap(values, names, 2, 0)
        else:
            given = (
                {"contexts": name, "identity": rng.choice([None, "who"])}
                if kind == "cases"
                else {"validation": 0.5}
            )
            problem = RehearsalTable("rows.csv" if kind == "cases" else name, task, **given)
            problem.card()
            rehearse(problem, rng.choice(["care", "cme"]))

    judged(work, content)


def test_tables_command(number, judged, tmp_path):
    rng = source("tables as commands", number)
    kind = ["own_table", "own_system", "learn_graph", "own_table"][number % 4]
    task, table = (TRIALS[number % 3], experiments()) if kind == "own_system" else REHEARSALS[number % 3]
    content, name = written(rng, rows_of(table))
    (tmp_path / name).write_bytes(content)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    learns = kind == "learn_graph"
    typed = [f"data={name}", "resamples=2", "out=run"] if learns else deciding(kind, name)
    judged(
        lambda: typed_in("learn_graph" if learns else "decide", typed, number < PROCESSES), content, **LIMITS
    )
