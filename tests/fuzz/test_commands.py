"""Whole commands, whose files are mutated."""

from functools import partial

import pytest
import yaml
from hypothesis import strategies as st

from tests.fuzz.commanded import LIMITS, deciding, typed_in
from tests.fuzz.decisions import CONFOUNDED, REHEARSALS, TRIALS, experiments, rows_of
from tests.fuzz.strategies import changed, text_of
from tests.fuzz.test_files import tables, tasks, texts
from tests.fuzz.test_folders import TASK, spoilt_checkpoint
from tests.fuzz.verdicts import INPUTS, desk, fuzzed, judged

BACKGROUND = {
    "tiers": [["x"], ["a", "u", "c"], ["y"]],
    "forbidden": [["u", "c"], ["c", "u"]],
    "required": [["x", "a"]],
}
SETTINGS = ["seed=3", "decision=ucb", "objective.beta=1e308", "objective.beta=-1", "objective.beta=nan"]
ROWS = text_of(rows_of(REHEARSALS[0][1]))


def laid_out(folder, task, content, name="table.csv"):
    (folder / "task.yaml").write_bytes(task)
    (folder / name).write_bytes(content)


def of_tasks(draw, folder):
    causal = draw(st.booleans())
    plain, rows = draw(tasks(causal))
    laid_out(folder, draw(texts(plain)), text_of(rows).encode())
    return "decide", deciding("own_system" if causal else "own_table")


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


def of_graphs(draw, folder):
    learns = draw(st.booleans())
    plain = draw(changed(BACKGROUND if learns else CONFOUNDED["graph"], 1, 2))
    laid_out(folder, draw(texts(plain if learns else {**CONFOUNDED, "graph": plain})), ROWS.encode())
    if learns:
        return "learn_graph", ["data=table.csv", "background=task.yaml", "resamples=2", "out=run"]
    return "decide", deciding("own_table")


def of_checkpoints(draw, folder):
    kind = draw(st.sampled_from(["linear_structural", "exogenous"]))
    spoilt_checkpoint(draw, kind)
    trials = kind == "exogenous"
    content = text_of(rows_of(experiments())) if trials else ROWS
    laid_out(folder, yaml.safe_dump(TRIALS[0] if trials else TASK).encode(), content.encode())
    return "decide", [*deciding("own_system" if trials else "own_table"), "checkpoint=checkpoint"]


@pytest.mark.parametrize(
    "family", [of_tasks, of_tables, of_graphs, of_checkpoints], ids=lambda each: each.__name__
)
@partial(fuzzed, inputs=max(INPUTS // 10, 2))
def test_commands(family, data):
    with desk() as folder:
        script, typed = family(data.draw, folder)
        judged(lambda: typed_in(script, typed), **LIMITS)
