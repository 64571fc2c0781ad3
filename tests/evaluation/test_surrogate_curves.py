"""Curves of a surrogate whose laws are written down: means, deviations and noise computed by hand."""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.evaluation.surrogate_curves import MOST, CurveRow, curve_rows, curve_table
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.trials.mixture_noise import MixtureNoise
from rehearsal_torch.problems.trials.user_experiments import ExperimentTable
from rehearsal_torch.problems.world_size import Rounds, SampleSize
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.causal_toys import linear_chain

DOUBLE = torch.float64
ACTION = torch.tensor([0.5, 0.4], dtype=DOUBLE)
TWO = MixtureNoise((0.7, 0.3), (-0.2, 0.4), (0.05, 0.1))


class Chain(CausalWorld):
    """X = 2 a + .5 + u, Y = 1.5 X - b - u: the model is wrong by .5, and has the noise of Y upside down."""

    def __init__(self, limits=None):
        task = CausalTask.of(linear_chain(limits=limits).task)
        super().__init__(task, {"X": TWO, "Y": TWO}, Rounds(initial=40), seed=1)

    def equation(self, node, inputs, noise):
        return 2 * inputs["a"] + 0.5 + noise if node == "X" else 1.5 * inputs["X"] - inputs["b"] - noise

    def best(self):
        action = torch.tensor([1.0, 0.0], dtype=DOUBLE)
        return action, float(self.expected(action))


def made(limits=None, trials=None):
    world = Chain(limits)
    return curve_rows(world, linear_chain(limits=limits), trials or world.observations(), ACTION, seed=3)


@pytest.fixture(scope="module")
def rows():
    return made()


def series(rows, panel, name, along, wanted):
    found = [
        row for row in rows if (row.panel, row.name, row.along, row.series) == (panel, name, along, wanted)
    ]
    assert all(isinstance(row, CurveRow) for row in found)
    return (
        np.array([row.x for row in found]),
        np.array([math.nan if row.value == "" else row.value for row in found], dtype=float),
        np.array([math.nan if row.std == "" else row.std for row in found], dtype=float),
    )


@pytest.mark.parametrize("along", ["a", "b"])
def test_the_reward_along_an_action_with_the_others_as_recommended(rows, along):
    x, mean, std = series(rows, "reward", "reward", along, "learnt")
    a, b = (x, 0.4) if along == "a" else (0.5, x)
    assert (x[0], x[-1]) == (0.0, 1.0 if along == "a" else 2.0)
    np.testing.assert_allclose(mean, 3 * a - b, atol=0.01)
    # Deviations of the two nodes are independent; 32 networks make it uncertain by a few per cent.
    expected = np.hypot(1.5 * 0.3 * (1 + a), 0.2 * (1 + b)) + 0 * x
    np.testing.assert_allclose(std, expected, rtol=0.1)
    places, true, _ = series(rows, "reward", "reward", along, "true")
    np.testing.assert_array_equal(places, x)
    np.testing.assert_allclose(true, 3 * a + 0.75 - b + 0.5 * TWO.mean, atol=3e-3)
    chosen, _, _ = series(rows, "reward", "reward", along, "recommended")
    assert chosen.tolist() == [0.5 if along == "a" else 0.4]
    assert chosen[0] in x


def test_a_node_along_its_parent(rows):
    x, mean, std = series(rows, "node", "Y", "X", "learnt")
    table = Chain().observations()
    seen = table.columns(["X"])[:, 0]
    assert (x[0], x[-1], len(x)) == (float(seen.min()), float(seen.max()), MOST)
    np.testing.assert_allclose(mean, 1.5 * x - 0.4, atol=0.005)
    np.testing.assert_allclose(std, 0.2 * 1.4)
    _, true, _ = series(rows, "node", "Y", "X", "true")
    np.testing.assert_allclose(true, 1.5 * x - 0.4 - TWO.mean, rtol=1e-9)
    chosen, _, _ = series(rows, "node", "Y", "X", "recommended")
    assert chosen[0] == pytest.approx(1.0, abs=0.005), "X is 2 a at the recommendation"


@pytest.mark.parametrize("node", ["X", "Y"])
def test_densities_of_the_noise_are_those_of_its_distributions(rows, node):
    x, learnt, _ = series(rows, "noise", node, "", "learnt")
    np.testing.assert_allclose(learnt, np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi), atol=0.015)
    _, true, _ = series(rows, "noise", node, "", "true")
    # The noise of Y enters with a minus: its density is mirrored.
    own = x if node == "X" else -x
    values = TWO.mean + TWO.variance**0.5 * own
    parts = zip(TWO.weights, TWO.means, TWO.stds, strict=True)
    density = sum(
        w * np.exp(-0.5 * ((values - m) / s) ** 2) / (s * math.sqrt(2 * math.pi)) for w, m, s in parts
    )
    np.testing.assert_allclose(true, TWO.variance**0.5 * density, atol=0.12)
    assert np.abs(true - TWO.variance**0.5 * density).mean() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("node", ["X", "Y"])
def test_draws_that_are_held_at_the_ends_of_a_range_do_not_raise_the_density_there(monkeypatch, node):
    world, model = Chain(), linear_chain()
    free = model.draws
    monkeypatch.setattr(model, "draws", lambda count, seed=0: free(count, seed).clamp(-1.5, 1.0))
    x, learnt, _ = series(
        curve_rows(world, model, world.observations(), ACTION, seed=3), "noise", node, "", "learnt"
    )
    assert learnt.max() == pytest.approx(0.4, abs=0.03)
    assert learnt.sum() * (x[1] - x[0]) == pytest.approx(0.7745, abs=0.015), "P(-1.5 < u < 1)"
    # A noise of few values keeps them all.
    monkeypatch.setattr(model, "draws", lambda count, seed=0: free(count, seed).sign())
    x, learnt, _ = series(
        curve_rows(world, model, world.observations(), ACTION, seed=3), "noise", node, "", "learnt"
    )
    assert learnt.sum() * (x[1] - x[0]) == pytest.approx(1.0)


def test_trials_near_the_curve_are_told_from_others_and_set_nodes_are_left_out():
    cells = torch.tensor(
        [
            [0.1, 0.4, 1.0, 2.0],
            [0.9, 0.59, 1.5, 1.0],
            [0.5, 0.7, 1.1, 0.5],
            [0.2, 0.35, 1.2, 0.3],
            [0, 0, 3, 4.0],
        ],
        dtype=DOUBLE,
    )
    altered = torch.zeros(5, 4, dtype=torch.bool)
    altered[:, :2] = altered[0, 3] = True
    rows = made(trials=Table(("a", "b", "X", "Y"), cells, altered))
    # b may differ by .2, a tenth of its range.
    near, rewards, _ = series(rows, "reward", "reward", "a", "trial")
    assert list(zip(near, rewards, strict=True)) == [(0.1, 2.0), (0.9, 1.0), (0.2, 0.3)]
    assert series(rows, "reward", "reward", "a", "trial elsewhere")[0].tolist() == [0.5, 0.0]
    # Y was set in the first row.
    assert series(rows, "node", "Y", "X", "trial")[0].tolist() == [1.2]
    assert series(rows, "node", "Y", "X", "trial elsewhere")[0].tolist() == [1.5, 1.1, 3.0]
    np.testing.assert_allclose(
        series(rows, "noise", "Y", "", "trial")[0],
        [(y - 1.5 * x + b) / 0.1 for _, b, x, y in cells[1:].tolist()],
    )


def test_levels_are_the_points_of_a_curve_and_own_experiments_have_no_truth(tmp_path):
    table = Chain().observations()
    lines = [",".join(table.names), *(",".join(map(str, row)) for row in table.values.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    task = {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
        "actions": {"a": {"values": [0, 0.5, 1]}, "b": [0, 2]},
        "reward": "Y",
    }
    problem = ExperimentTable(tmp_path / "rows.csv", task)
    rows = curve_rows(problem, fit(ExogenousModel(problem.task), table), table, ACTION)
    assert series(rows, "reward", "reward", "a", "learnt")[0].tolist() == [0.0, 0.5, 1.0]
    assert series(rows, "node", "X", "a", "learnt")[0].tolist() == [0.0, 0.5, 1.0]
    assert len(series(rows, "reward", "reward", "b", "learnt")[0]) > 100
    assert "true" not in {row.series for row in rows}
    assert {row.panel for row in rows} == {"reward", "node", "noise"}


@pytest.mark.slow
def test_a_run_is_shown_at_its_last_recommendation_with_all_that_it_was_answered():
    world = Chain()
    table, model = world.observations(), linear_chain()
    nodes = {"a": [0.9], "b": [0.4], "X": [2.5], "Y": [3.0]}
    line = {"index": 0, "status": "may", "value": 1.0, "alteration": {"a": 0.9, "b": 0.4}}
    answer = {"answer": {"rows": nodes, "altered": [[0, 0], [0, 1]]}}
    first = {**line, **answer, "recommendation": {"b": 0.1, "a": 0.3}}
    rows = [CurveRow(**row) for row in curve_table(world, model, [first, {**line, **answer, "index": 1}], 3)]
    assert series(rows, "reward", "reward", "a", "recommended")[0].tolist() == [0.9], "nothing but the trial"
    rows = [CurveRow(**row) for row in curve_table(world, model, [first], 3)]
    chosen = [series(rows, "reward", "reward", name, "recommended")[0].tolist() for name in "ab"]
    assert chosen == [[0.3], [0.1]], "by name, not by place"
    found = [
        place
        for wanted in ("trial", "trial elsewhere")
        for place in series(rows, "node", "Y", "X", wanted)[0]
    ]
    assert sorted(found) == sorted([*table.columns(["X"])[:, 0].tolist(), 2.5])


def test_curves_end_where_the_limits_of_the_task_do():
    rows = made({"normals": [[1.0, 1.0]], "offsets": [1.2]})
    assert series(rows, "reward", "reward", "a", "learnt")[0].max() == pytest.approx(0.8, abs=0.01)
    assert series(rows, "reward", "reward", "b", "learnt")[0].max() == pytest.approx(0.7, abs=0.02)


def test_what_is_no_run_of_trials_has_no_curves():
    line = {"index": 0, "status": "may", "value": 1.0, "alteration": {"a": 0.9, "b": 0.4}}
    assert curve_table(Chain(), linear_chain(), []) == []
    assert curve_table(Loan(size=SampleSize(rows=30)), linear_chain(), [line]) == []
    refused = {"index": 0, "status": "leave", "value": 0.0, "alteration": None}
    assert curve_table(Chain(), linear_chain(), [refused]) == []
    several = {**line, "alteration": {"a": [0.1, 0.2], "b": [0.4, 0.5]}}
    assert curve_table(Chain(), linear_chain(), [several]) == []
