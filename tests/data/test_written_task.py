"""Tasks as people write them, and what they get wrong."""

import pandas as pd

from rehearsal_torch.data.written_task import written_task

TASK = {
    "graph": {"parents": {"rate": ["score", "stability"], "repaid": ["stability", "rate"]}},
    "context": ["score"],
    "box": {"rate": [0, 1]},
    "region": {"repaid": [0.6, None]},
}
COLUMNS = ("score", "stability", "rate", "repaid", "branch")


def test_a_task_is_what_was_written():
    task = written_task(TASK, COLUMNS)
    assert task.context == ("score",)
    assert task.candidates == (("rate",),)
    assert task.outcomes == ("repaid",)
    assert task.graph.parents("repaid") == ("stability", "rate")
    assert written_task(task.to_plain()).to_plain() == task.to_plain()


def test_a_single_point_is_a_range():
    task = written_task({**TASK, "box": {"rate": [0.5, 0.5]}, "region": {"repaid": [0.6, 0.6]}}, COLUMNS)
    assert task.box.bounds() == {"rate": (0.5, 0.5)}
    assert task.region.contains(task.region.offsets.new_tensor([[0.6], [0.61]])).tolist() == [True, False]


CODED = {
    **TASK,
    "graph": {"parents": {"ward": ["score"], "rate": ["ward", "score"], "repaid": ["ward", "rate"]}},
    "context": ["score", "ward"],
    "codings": {"ward": "categorical"},
}


def wards(*names):
    return pd.DataFrame({name: [0.5] * len(names) for name in ("score", "rate", "repaid")} | {"ward": names})


def test_codings_without_levels_are_completed_by_the_rows_and_told():
    notes = ["before"]
    task = written_task(CODED, rows=wards("B", "A", "B", "C"), notes=notes)
    assert "ward=A" in task.graph.names
    assert "ward=C" in task.graph.names
    assert len(notes) == 2
    assert notes[1].startswith("ward is coded")
    assert "B" in notes[1]
    assert written_task(CODED, rows=wards("B", "A", "B", "C")).to_plain() == task.to_plain()
    # Whoever writes the levels is told nothing.
    written = {**CODED, "codings": {"ward": {"classes": ["A", "B"], "reference": "A"}}}
    quiet = []
    assert "ward=B" in written_task(written, rows=wards("A", "B", "A"), notes=quiet).graph.names
    assert quiet == []


def test_rows_without_codings_change_nothing():
    rows = pd.DataFrame({name: [0.5] * 3 for name in COLUMNS})
    assert written_task(TASK, COLUMNS, rows).to_plain() == written_task(TASK, COLUMNS).to_plain()
