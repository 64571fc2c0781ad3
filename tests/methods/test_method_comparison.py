"""Methods compared on halves of the rows: predictions, decisions and judges."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch import task_pool
from rehearsal_torch.data.costs import ActionCost
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.methods import method_comparison
from rehearsal_torch.methods.method_comparison import (
    Candidate,
    Comparison,
    Limits,
    OneSplit,
    compared,
    forecast,
    panel_weights,
    row_weights,
)
from rehearsal_torch.progress import Progress
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.training.surrogate_fit import fit, folds_of
from tests.claims.test_cross_fitting import LEVELS, TASK, Best, Share, Shares, rows

FEW = Limits(rows=1000, cases=5, repeats=2)


class Blind(Shares):
    """Says the same of every action."""

    def parts(self, table):
        yield from super().parts(table)
        self.shares = torch.full((LEVELS,), 0.5, dtype=torch.float64)


class Silent(Share):
    """Has no estimate."""

    def __call__(self, actions):
        return super().__call__(actions) + torch.nan


class Clock:
    """A clock that goes on only where something takes time."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def take(self, seconds):
        self.now += seconds


def table_of(count, seed=0):
    """Rows in which the probability of a desired outcome rises with the action."""
    table = rows(count, seed)
    draws = torch.rand(count, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    table.values[:, 2] = (draws < table.values[:, 1] / LEVELS).double()
    return table


def candidate(name, surrogate=Shares, objective=Share):
    return Candidate(name, lambda table: fit(surrogate(), table), objective, Best())


def refusing(name, words):
    def fitted(table):
        raise ValueError(words)

    return Candidate(name, fitted, Share, Best())


def halves(count, repeat, seed=0):
    found = folds_of(count, None, 2, round_seed(seed, f"choose a method, halves {repeat}"))
    return [fold.held_out for fold in found]


def shares_of(table, part):
    level, desired = table.values[part, 1].long(), table.values[part, 2]
    return torch.stack([desired[level == each].mean() for each in range(LEVELS)])


@pytest.mark.slow
def test_decisions_of_one_half_are_judged_by_the_other():
    table = table_of(400)
    found = compared(table, None, TASK, [candidate("share")], FEW)
    values, nothing = [], []
    for repeat in range(2):
        parts = halves(400, repeat)
        for one, other in ((0, 1), (1, 0)):
            best = int(shares_of(table, parts[one]).argmax())
            values.append(float(shares_of(table, parts[other])[best]))
            nothing.append(float(table.values[parts[other], 2].mean()))
    assert found.values[0, :, 0].tolist() == pytest.approx(values)
    assert found.nothing[:, 0].tolist() == pytest.approx(nothing)
    assert (found.methods, found.panel.tolist(), found.cases) == (("share",), [1.0], 5)


def test_rows_are_predicted_at_their_actions_by_models_that_have_not_seen_them():
    table = table_of(400)
    found = compared(table, None, TASK, [candidate("share")], FEW)
    one, other = halves(400, 1)
    expected = shares_of(table, other)[table.values[one, 1].long()]
    assert torch.allclose(found.predicted[1, 0, one], expected)
    assert torch.allclose(found.untouched[1, 0, one], table.values[other, 2].mean())
    assert torch.allclose(found.constant[1, one], table.values[other, 2].mean())
    assert torch.equal(found.desired, table.values[:, 2])
    assert torch.equal(found.weights, torch.ones(400, dtype=torch.float64))


def test_a_method_that_predicts_badly_hardly_judges():
    found = compared(table_of(400), None, TASK, [candidate("share"), candidate("blind", Blind)], FEW)
    assert found.methods == ("share", "blind")
    assert float(found.panel[0]) > 0.8
    # Blind's estimates are never above what no action gives by more than chance; share's choice is better.
    means = (found.values @ found.panel).mean(1)
    assert float(means[0]) > float(means[1]) + 0.1


def test_methods_that_cannot_be_fitted_or_say_nothing_are_named_with_the_reason():
    others = [refusing("other", "a bow is in the graph"), candidate("silent", objective=Silent)]
    found = compared(table_of(80), None, TASK, [candidate("share"), *others], FEW)
    assert found.methods == ("share",)
    assert found.refused == {
        "other": "it cannot be fitted to half of the rows: a bow is in the graph",
        "silent": "it has no estimate of the probability of a desired outcome for every action",
    }
    with pytest.raises(
        ValueError, match=r"no method can be compared on these rows: other: .* a bow is in the"
    ):
        compared(table_of(80), None, TASK, others[:1], FEW)


def test_rows_are_drawn_by_unit_up_to_the_limit_and_the_same_each_time():
    table = table_of(300)
    units = [f"unit {row // 3}" for row in range(300)]
    limits = Limits(rows=60, cases=4, repeats=2)
    first, second = (compared(table, units, TASK, [candidate("share")], limits, seed=5) for _ in range(2))
    assert len(first.desired) == 60
    assert first.units.bincount().tolist() == [3] * 20
    assert torch.equal(first.values, second.values)
    assert torch.equal(first.predicted, second.predicted)
    other = compared(table, units, TASK, [candidate("share")], limits, seed=6)
    assert not torch.equal(first.desired, other.desired)


def test_what_is_compared_is_said_first_and_then_the_time_that_is_left(capsys):
    progress = Progress("comparing", clock=lambda: 0.0)
    compared(table_of(80), None, TASK, [candidate("share")], FEW, progress=progress)
    plan, first, second = capsys.readouterr().out.splitlines()
    assert plan == "auto compares share: 2 times, each fitted to two halves of 80 rows"
    assert first == "auto: 1 of 2 compared, 0 s, about 0 s left"
    assert second == "auto: 2 of 2 compared, 0 s"


@pytest.mark.parametrize(("workers", "splits"), [(1, 3), (2, 2)])
def test_a_small_comparison_foretells_how_long_the_whole_takes(workers, splits, monkeypatch):
    # Fits take a second for a hundred rows, and decisions three seconds for all cases.
    clock = Clock()
    monkeypatch.setattr(method_comparison, "time", clock)
    monkeypatch.setattr(OneSplit, "_decide", lambda *_: (clock.take(1.5), ({}, {}))[1])
    slow = replace(
        candidate("slow"), fitted=lambda table: (clock.take(len(table) / 100), fit(Shares(), table))[1]
    )
    work = Comparison(table_of(1000), TASK, [("a",)] * 1000, [slow], Limits(1000, 5, 3), 0)
    assert forecast(work, workers) == pytest.approx(13 * splits)
    assert forecast(replace(work, candidates=[refusing("other", "a bow")]), 1) is None
    assert forecast(replace(work, table=table_of(300)), 1) is None


def test_too_few_rows_for_two_halves_are_refused():
    with pytest.raises(
        ValueError, match=r"at least 10 rows; got a half of 7 \(of 15 rows\): name the method"
    ):
        compared(table_of(15), None, TASK, [candidate("share")], FEW)


def test_decisions_are_by_net_value_where_costs_are_weighed():
    # Half the chance of success rises with the action; each step up from the usual one costs as much.
    table = table_of(400)
    priced = replace(TASK, costs={"a": ActionCost(up=60.0, usual=0.0)}, worth=100.0)

    class Chance(Share):
        of_success = True

    class Weighing(Best):
        weighs = True

    some = [Candidate("share", lambda rows: fit(Shares(), rows), Chance, Weighing())]
    free, dear = (compared(table, None, task, some, FEW) for task in (TASK, priced))
    assert (free.worth, dear.worth) == (None, 100.0)
    assert torch.equal(free.nothing, dear.nothing)
    # A step costs .6 of the worth: the best is to stay at 0, or to do what is usual, which costs nothing.
    assert bool((dear.values < free.values).all())
    assert bool((dear.values >= dear.nothing - 1e-12).all())
    # Costs that only each case states are not those of rows.
    asked = replace(priced, costs={"a": ActionCost(column="price", usual=0.0)})
    assert torch.equal(compared(table, None, asked, some, FEW).values, free.values)


@pytest.mark.bench
def test_splits_that_are_shared_change_no_bit(monkeypatch):
    table, some = table_of(120), [candidate("share"), candidate("blind", Blind), refusing("never", "no fit")]
    limits = Limits(rows=1000, cases=5, repeats=3)
    alone = compared(table, None, TASK, some, limits)
    asked, inner = [], method_comparison.results

    def noted(work, common, tasks, workers, **how):
        asked.append((len(tasks), workers))
        return inner(work, common, tasks, workers, **how)

    monkeypatch.setattr(method_comparison, "results", noted)
    compared(table, None, TASK, some, limits, workers=2)
    monkeypatch.setattr(task_pool, "PAYS", 0.0)
    shared = compared(table, None, TASK, some, limits, workers=2)
    assert asked == [(2, 1), (2, 2)], "it pays from the first split on, or not at all"
    assert shared.methods == alone.methods == ("share", "blind")
    assert shared.refused == alone.refused == {"never": "it cannot be fitted to half of the rows: no fit"}
    for name in ("values", "nothing", "panel", "predicted", "untouched", "constant", "weights", "units"):
        assert torch.equal(getattr(shared, name), getattr(alone, name)), name
    assert all(shared.seconds[name] > 0 for name in shared.methods)


def test_a_method_that_only_a_later_split_refuses_is_left_out_with_its_reason():
    seen = []

    def once(table):
        seen.append(len(table))
        if len(seen) > 2:
            raise ValueError("not these rows")
        return fit(Shares(), table)

    both = [candidate("share"), Candidate("once", once, Share, Best())]
    found = compared(table_of(80), None, TASK, both, FEW)
    assert found.methods == ("share",)
    assert found.refused == {"once": "it cannot be fitted to half of the rows: not these rows"}
    assert found.values.shape == (1, 4, 1)


def drawn(methods, rows, seed):
    stream = torch.Generator().manual_seed(seed)
    predicted = torch.rand(methods, rows, generator=stream, dtype=torch.float64)
    desired = (torch.rand(rows, generator=stream, dtype=torch.float64) < predicted[0]).double()
    return predicted, desired, 0.5 + torch.rand(rows, generator=stream, dtype=torch.float64)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(2, 40), st.integers(0, 10_000))
def test_the_mixture_is_a_mixture_and_no_worse_than_any_method(methods, rows, seed):
    predicted, desired, weights = drawn(methods, rows, seed)
    found = panel_weights(predicted, desired, weights)
    assert bool((found >= 0).all())
    assert float(found.sum()) == pytest.approx(1.0)
    score = (weights * (found @ predicted - desired).square()).mean()
    alone = (weights * (predicted - desired).square()).mean(1)
    assert float(score) <= float(alone.min()) + 1e-6


def task(parents, actions):
    return RehearsalTask(
        RehearsalGraph.of(parents),
        ("x",),
        Box.of(dict.fromkeys(actions, (-9.0, 9.0))),
        Polytope.of({"y": (0.0, None)}),
        (actions,),
    )


def weighted_rows(count, seed=0):
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).unbind(1)


def slope(values, outcome, weights):
    inputs = torch.stack([torch.ones_like(values[0]), *values], 1)
    gram = inputs.mT @ (weights[:, None] * inputs)
    return torch.linalg.solve(gram, inputs.mT @ (weights * outcome))[1:]


def test_a_covariate_that_drives_action_and_outcome_is_made_up_for():
    x, u, e, f, _ = weighted_rows(40_000)
    a = 0.5 * x + 0.4 * u + e
    y = a + 2 * u + f
    table = Table.observed(("x", "u", "a", "y"), torch.stack([x, u, a, y], 1))
    asked = task({"x": (), "u": (), "a": ("x", "u"), "y": ("a", "u")}, ("a",))
    weights = row_weights(table, asked, ("a",))
    assert float(weights.mean()) == pytest.approx(1.0)
    # Given x, the rows' slope of y in a is 1 + 2 * .4 / 1.16; setting a changes y by 1.
    assert float(slope((a, x), y, torch.ones_like(x))[0]) == pytest.approx(1 + 0.8 / 1.16, abs=0.03)
    assert float(slope((a, x), y, weights)[0]) == pytest.approx(1.0, abs=0.06)


def test_actions_with_covariates_between_them_have_one_factor_each():
    x, e, f, g, h = weighted_rows(40_000)
    a = x + e
    v = 0.6 * a + f
    b = 0.6 * v + g
    y = a + b + v + h
    table = Table.observed(("x", "a", "v", "b", "y"), torch.stack([x, a, v, b, y], 1))
    parents = {"x": (), "a": ("x",), "v": ("a",), "b": ("v",), "y": ("a", "b", "v")}
    weights = row_weights(table, task(parents, ("a", "b")), ("a", "b"))
    # Setting a and b changes y by 1 + .6 through v, and by 1.
    found = slope((a, b, x), y, weights)[:2]
    assert found.tolist() == pytest.approx([1.6, 1.0], abs=0.08)
