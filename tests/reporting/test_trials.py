"""Trials: rows, summaries, tables and figures, from lines as runs record them."""

import csv
import io
import math

import numpy as np
import pytest

from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.evaluation.summaries import trial_summary
from rehearsal_torch.evaluation.trial_rows import COLUMNS, by_seed, scored, trial_rows, trial_typed
from rehearsal_torch.reporting import trial_report, trial_table
from rehearsal_torch.reporting.figures import recovery_panels, trial_panels
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.round_line import Round


def line(index, expected, recommended, start=1.0, optimum=10.0):
    score = {
        "expected": expected,
        "recommended": recommended,
        "optimum": optimum,
        "start": start,
        "regret": optimum - recommended,
    }
    return {
        "index": index,
        "identity": str(index),
        "kind": "optimise",
        "given": {},
        "status": "recommended",
        "alteration": {"a": 0.5},
        "recommendation": {"a": 0.25},
        "estimate": {"point": 4.0, "of": "reward"},
        "reward": expected + 0.1,
        "score": score,
        "seconds": 0.5,
    }


def rows(problem="p", method="m", seed=0, values=((2.0, 3.0), (0.5, 6.0), (4.0, 8.0)), start=1.0):
    return trial_rows(
        problem, "", method, seed, [line(index, *pair, start=start) for index, pair in enumerate(values)]
    )


def test_the_best_so_far_counts_the_start_design():
    assert [row["best_expected"] for row in rows()] == [2.0, 2.0, 4.0]
    assert [row["best_expected"] for row in rows(start=3.0)] == [3.0, 3.0, 4.0]
    assert [row["round"] for row in rows()] == [1, 2, 3]


def test_rows_survive_a_file():
    some = rows()
    assert trial_typed(csv.DictReader(io.StringIO(written(some, COLUMNS)))) == some
    assert list(by_seed([*rows(seed=1), *some])) == [0, 1]


def test_regret_is_a_share_of_what_the_start_left():
    one = trial_summary([*rows(), *rows(seed=1, values=((2.0, 3.0), (3.0, 5.0), (3.0, 10.0)), start=5.0)])
    assert (one.seeds, one.rounds, one.optimum, one.start) == (2, 3, 10.0, 3.0)
    assert one.regrets == (2.0, 0.0)
    assert one.normalised == pytest.approx(1.0 / 7.0)
    assert one.recommended.mean == 9.0
    assert one.best.mean == pytest.approx(4.5)
    assert trial_summary(rows(), 1).regrets == (7.0,)
    assert math.isnan(trial_summary(rows(start=10.0)).normalised)


def test_the_table_averages_over_problems_that_all_methods_share():
    some = [
        *rows("p", "m"),
        *rows("p", "n", values=((2.0, 10.0),) * 3),
        *rows("q", "m"),
        *rows("q", "n"),
        *rows("r", "m"),
        *rows("q", "m", seed=1),
    ]
    fair = trial_table.shared(some)
    assert {(row["problem"], row["method"], row["seed"]) for row in fair} == {
        (problem, method, 0) for problem in "pq" for method in "mn"
    }
    found = trial_table.cells(fair)
    assert trial_table.methods(found) == ["m", "n"]
    assert trial_table.regret(found, "m").mean == pytest.approx(2 / 9)
    assert trial_table.regret(found, "n").mean == pytest.approx(1 / 9)
    text = "\n".join(trial_table.markdown(some))
    assert "| r | 1 | 8 | - | 10 |" in text
    assert "mean normalised regret, 2 problems, 1 seed" in " ".join(trial_table.markdown(some))


def test_its_interval_is_over_seeds_that_all_problems_have():
    some = [
        row
        for seed in range(4)
        for method in "mn"
        for row in rows("p", method, seed, values=((0.0, 2.0 + seed),))
    ]
    some += [
        row
        for seed in (1, 3)
        for method in "mn"
        for row in rows("q", method, seed, values=((0.0, 4.0 + seed),))
    ]
    fair = trial_table.shared(some)
    assert {(row["problem"], row["seed"]) for row in fair} == {
        (problem, seed) for problem in "pq" for seed in (1, 3)
    }
    found = trial_table.regret(trial_table.cells(fair), "m")
    assert found.low <= found.mean <= found.high
    assert found.mean == pytest.approx((6 + 4) / 2 / 9)
    # A mean over seeds that not all problems have stands without an interval.
    every = trial_table.regret(trial_table.cells(some), "m")
    assert every.mean == pytest.approx(((8 + 7 + 6 + 5) / 4 + (5 + 3) / 2) / 2 / 9)
    assert math.isnan(every.low)
    # Without a seed in common each problem keeps its own.
    apart = [row for row in some if (row["problem"], row["seed"]) in (("p", 0), ("q", 1))]
    assert trial_table.shared(apart) == apart


def test_an_average_ends_where_the_shortest_seed_does():
    rounds, means, errors = trial_panels.by_round([*rows(), *rows(seed=1)[:2]], "expected", running=True)
    assert rounds.tolist() == [1, 2]
    assert means.tolist() == [2.0, 1.25]
    assert errors.tolist() == [0.0, 0.0]


def test_figures_show_every_method_beside_the_optimum():
    with drawing():
        figure = trial_panels.draw({"p": {"m": rows(), "n": rows(method="n", seed=1)}})
    best, average, regret = figure.axes
    assert [each.get_label() for each in best.lines] == ["m", "n", "optimum"]
    assert np.allclose(best.lines[-1].get_ydata(), 10.0)
    assert regret.get_yscale() == "log"
    assert np.allclose(regret.lines[0].get_ydata(), [7.0, 4.0, 2.0])
    assert len(average.lines) == 3


def run(tmp_path, lines):
    choices = {"dataset": "world", "decision": "method"}
    return Recorded(tmp_path, lines, config={"seed": 3}, choices=choices, kind="optimise")


def test_a_run_is_reported_round_by_round(tmp_path):
    made = run(tmp_path, [line(0, 2.0, 3.0), line(1, 4.0, 9.0)])
    assert trial_report.concerns(made)
    text = trial_report.tables(made)
    assert "Recommended now: a 0.25; predicted reward 4.000" in text
    assert "9.000 of 10.000" in text
    trial_report.written(made)
    (first, second) = csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text()))
    assert (first["reward"], second["set/a"], second["best_expected"]) == ("2.1", "0.5", "4.0")
    with drawing():
        assert set(trial_report.figures(made)) == {"rounds"}


def test_a_suggestion_without_a_world_is_reported_as_well(tmp_path):
    lone = {key: value for key, value in line(0, 0.0, 0.0).items() if key not in ("score", "reward")} | {
        "score": {}
    }
    made = run(tmp_path, [lone])
    assert not scored(lone)
    assert "Recommended now" in trial_report.tables(made)
    trial_report.written(made)
    assert trial_report.figures(made) == {}


def test_a_rounds_line_holds_its_reward(causal_answer):
    situation, decision, answer = causal_answer
    text = Round(0, situation, decision, None, {"expected": 1.0}, answer, None, 2.5).line()
    assert '"reward": 2.5' in text


@pytest.fixture
def causal_answer():
    import torch

    from rehearsal_torch.data.decision import Decision, Foresight
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.spaces.box import Alteration

    keep = Alteration(("a",), torch.tensor([0.5], dtype=torch.float64))
    decision = Decision(keep, 1.0, recommendation=keep)
    return (
        Foresight("0", {}, {"a": (0.0, 1.0)}),
        decision,
        Table.observed(("a", "Y"), torch.ones(1, 2, dtype=torch.float64)),
    )


def test_recovered_noise_is_shown_node_by_node():
    truth = [
        {"node": "X", "part": part, "quantity": "correlation", "value": "0.95", "true": ""}
        for part in ("fitted", "held out")
    ]
    truth += [{"node": "X", "part": "fitted", "quantity": "noise", "value": "0.5", "true": "0.4"}]
    assert "0.950" in recovery_panels.table(truth)[0]
    assert recovery_panels.table([]) == []
    with drawing():
        assert set(recovery_panels.figures(truth)) == {"recovered"}
    assert recovery_panels.figures([]) == {}
