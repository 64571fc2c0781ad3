"""Tasks of both families: mutated, read as a mapping or as a file, and decided for where they still are
tasks."""

import yaml

from rehearsal_torch.data.written_task import written_task
from rehearsal_torch.problems.causal.own_experiments import causal_task
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from tests.fuzz.commanded import LIMITS, PROCESSES, deciding, typed_in
from tests.fuzz.decisions import REHEARSALS, TRIALS, experiments, optimised, rehearse, rows_of
from tests.fuzz.mutations import NAMES, changed, copied, damaged, renamed, source, text_of


def written(rng, number):
    """A task, the rows it was meant for, and what is handed over: the mapping, or the bytes of a file."""
    causal = number % 2 == 1
    base, table = (rng.choice(TRIALS), experiments()) if causal else rng.choice(REHEARSALS)
    rows = rows_of(table)
    if rng.random() < 0.15:
        names = dict(zip(rows[0], rng.sample(NAMES, len(rows[0])), strict=True))
        base, rows[0] = renamed(base, names), ['"' + names[name].replace('"', '""') + '"' for name in rows[0]]
    plain = changed(rng, base, (0, 2))
    if rng.random() < 0.65:
        return causal, plain, None, rows
    text = yaml.safe_dump(
        plain, allow_unicode=rng.random() < 0.5, default_flow_style=rng.random() < 0.5, sort_keys=False
    ).encode("utf-8", "replace")
    return causal, plain, damaged(rng, text) if rng.random() < 0.6 else text, rows


def test_tasks(number, judged, tmp_path):
    rng = source("tasks", number)
    causal, task, content, rows = written(rng, number)
    (tmp_path / "table.csv").write_text(text_of(rows), encoding="utf-8")
    if content is not None:
        (tmp_path / "task.yaml").write_bytes(content)
        task = "task.yaml"

    def work():
        (causal_task if causal else written_task)(task if content is not None else copied(task))
        if causal:
            optimised(causal_task(task), "table.csv")
        else:
            problem = RehearsalTable("table.csv", task, validation=0.5)
            problem.card()
            rehearse(problem, rng.choice(["care", "cme"]))

    judged(work, task if content is None else content)


def test_tasks_command(number, judged, tmp_path):
    rng = source("tasks as commands", number)
    causal, task, content, rows = written(rng, number)
    text = (
        content if content is not None else yaml.safe_dump(task, sort_keys=False).encode("utf-8", "replace")
    )
    (tmp_path / "task.yaml").write_bytes(text)
    (tmp_path / "table.csv").write_text(text_of(rows), encoding="utf-8")
    typed = deciding("own_system" if causal else "own_table")
    judged(lambda: typed_in("decide", typed, number < PROCESSES), text, **LIMITS)
