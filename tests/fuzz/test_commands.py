"""Whole commands, whose files are mutated."""

from functools import partial

import yaml
from hypothesis import strategies as st

from tests.fuzz.commanded import LIMITS, deciding, typed_in
from tests.fuzz.decisions import REHEARSALS, TRIALS, experiments, rows_of
from tests.fuzz.test_files import tables
from tests.fuzz.verdicts import INPUTS, desk, fuzzed, judged

SETTINGS = ["seed=3", "decision=ucb", "objective.beta=1e308", "objective.beta=-1", "objective.beta=nan"]


def laid_out(folder, task, content, name="table.csv"):
    (folder / "task.yaml").write_bytes(task)
    (folder / name).write_bytes(content)


def of_tables(draw, folder):
    kind = draw(st.sampled_from(["own_table", "own_system", "learn_graph"]))
    trials = kind == "own_system"
    task, table = (
        (draw(st.sampled_from(TRIALS)), experiments()) if trials else draw(st.sampled_from(REHEARSALS))
    )
    content, name = draw(tables(rows_of(table)))
    laid_out(folder, yaml.safe_dump(task).encode(), content, name)
    if kind == "learn_graph":
        return kind, [f"data={name}", "resamples=2", "out=run"]
    more = [draw(st.sampled_from(SETTINGS))] if trials and draw(st.booleans()) else []
    return "decide", [*deciding(kind, name), *more]


@partial(fuzzed, inputs=max(INPUTS // 3, 4))
def test_commands(data):
    with desk() as folder:
        script, typed = of_tables(data.draw, folder)
        judged(lambda: typed_in(script, typed), **LIMITS)
