"""Experiments that set some nodes, and leave the others to arise."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.trial import TrialError
from rehearsal_torch.problems.trials.user_experiments import ExperimentTable, start_points
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.api.test_optimiser import PLAIN, QUICK

TOY = {"graph": "X -> Z; Z -> Y", "settable": {"X": [-5, 5], "Z": [-5, 20]}, "reward": {"weights": {"Y": -1}}}


def toy(setting, stream):
    x = setting.get("X", stream.normal())
    z = setting.get("Z", math.exp(-x) + 0.1 * stream.normal())
    return {"X": x, "Z": z, "Y": math.cos(z) - math.exp(-z / 20) + 0.1 * stream.normal()}


def begun(rows=12, file=None):
    stream = np.random.default_rng(1)
    optimiser = CausalOptimiser(TOY, surrogate=PLAIN, search=QUICK, initial=6, file=file)
    optimiser.read(pd.DataFrame([toy({}, stream) for _ in range(rows)]))
    return optimiser, stream


def test_a_campaign_finds_which_node_to_set():
    optimiser, stream = begun()
    for _ in range(14):
        (action,) = optimiser.ask()
        assert len(action) <= 1, "X has no effect once Z is set"
        optimiser.tell(action, toy(action, stream))
    best = optimiser.recommend()
    assert best.action.keys() == {"Z"}
    # Y is -2.17 at most, at Z = -3.2.
    assert math.cos(best.action["Z"]) - math.exp(-best.action["Z"] / 20) < -1.8
    assert best.nearly.keys() == {"Z"}
    assert optimiser.stopping().reason != "no_model"
    assert optimiser.recommend(fixed={"X": 1}).action["X"] == 1


def test_what_setting_a_node_brings_about_is_not_known_where_no_rows_are():
    """Beyond the rows a mechanism was as sure as among them."""
    optimiser, _ = begun()
    model = fit(ExogenousModel(optimiser.task), optimiser.table)
    network = model.plausible(64)
    bare = replace(network, mechanisms=tuple(replace(each, slopes=None) for each in network.mechanisms))
    settings = torch.tensor([[[-5.0, torch.nan]], [[0.0, torch.nan]]], dtype=torch.float64)
    far, near = (
        [float(each.propagate(at, model.draws(16))[..., 1].mean(-1).std()) for each in (bare, network)]
        for at in settings
    )
    assert far[1] > 1.2 * far[0]
    assert near[1] == near[0]
    assert network.mechanisms[1].slopes is not None, "X may be set, but also arises"
    optimiser.tell({"X": -5.0}, {"X": -5.0, "Z": 148.0, "Y": -1.0})
    reward = fit(ExogenousModel(optimiser.task), optimiser.table).plausible(4).mechanisms[-1]
    assert reward.tabulated() is reward, "Z lies far beyond the table of those that may be set"


def test_the_start_design_sets_every_set_in_turn():
    optimiser = CausalOptimiser(TOY, surrogate=PLAIN, search=QUICK, initial=6)
    assert [[*action] for action in optimiser.ask(3)] == [[], ["X"], ["Z"]]
    task = CausalTask.of({**TOY, "graph": "X -> Y; Z -> Y"})
    first = start_points(task, 32, 0)[:, 0].reshape(8, 4)
    alone, with_other = first[:, ~first.isnan().all(0)].mT
    assert not set(alone.tolist()) & set(with_other.tolist())
    for values in (alone, with_other):
        assert values.min() < -2.5, "every set is spread over the whole range"
        assert values.max() > 2.5
    optimiser.tell({}, {"X": 0.1, "Z": 0.9, "Y": 1.0})
    assert optimiser.ask() == [{}]
    optimiser.tell(2, {"Z": 0.3, "Y": 0.2})
    with pytest.raises(TrialError, match="Z: no value for this node"):
        optimiser.tell({"X": 4.0}, {"Y": 1.0})
    table = optimiser.table
    assert table.names == ("X", "Z", "Y")
    assert table.altered.tolist() == [[False] * 3, [True, False, False]]
    assert table.values[1].tolist() == [optimiser.trials[1].asked["X"], 0.3, 0.2]


def test_what_was_only_seen_is_shown_saved_and_leaves_the_start_design_to_come():
    optimiser, _ = begun()
    assert fit(PLAIN(optimiser.task), optimiser.table).faults() == []
    rows = optimiser.to_frame()[:3].assign(**{"set:X": [0, 1, 0], "state": ["", "running", ""]})
    table = ExperimentTable(rows, TOY)
    assert [entry["set"] for entry in table.last()] == [[], ["X"], []]
    assert "1 row waits for its result (line 3)" in table.read_notes[0]
    assert {(*action,) for action in optimiser.ask(6)} == {(), ("X",), ("Z",)}


def test_sets_are_stored_written_and_read(tmp_path):
    optimiser, stream = begun(file=tmp_path / "trials.json")
    for setting in ({"X": 1.0}, {"Z": -3.0}, {}):
        optimiser.tell(None, toy(setting, stream), ran=setting)
    for action in optimiser.ask(2):
        assert len(action) <= 1
    optimiser.write(tmp_path / "table.csv")
    again = CausalOptimiser(TOY)
    again.read(tmp_path / "table.csv")
    loaded = CausalOptimiser.load(tmp_path / "trials.json")
    for other in (again, loaded):
        assert [trial.settings for trial in other.trials] == [trial.settings for trial in optimiser.trials]
        assert torch.equal(other.table.values, optimiser.table.values)
        assert torch.equal(other.table.altered, optimiser.table.altered)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settable": {"X": [-5, 5], "Y": [0, 1]}}, r"reward: .*Y"),
        ({"settable": {"X": [5, -5]}}, "settable.X"),
        ({"settable": {"X": [-5, 5]}, "actions": {"X": [0, 1]}}, "settable.X: is an action"),
        ({"settable": {}}, "settable: expected"),
        ({"settable": {"X": [-5, 5]}, "limits": {"normals": [[1]], "offsets": [1]}}, "limits"),
    ],
)
def test_what_cannot_be_settable_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        CausalTask.of({**TOY, **changes})


def test_methods_without_the_graph_refuse_settable_nodes():
    with pytest.raises(ValueError, match="need a model that uses the graph"):
        CausalOptimiser(TOY, method="ucb").ask()


def test_what_was_seen_is_told_apart_from_what_was_set():
    # A hidden U moves B and Y: E[Y | B = 1] is 2.3, and E[Y | do(B = 1)] = .5.
    stream = np.random.default_rng(0)
    hidden, noise = stream.normal(size=80), 0.1 * stream.normal(size=(3, 80))
    b = hidden + 3 * noise[0]
    c = 0.5 * b + noise[1]
    rows = pd.DataFrame({"B": b, "C": c, "Y": c + 2 * hidden + noise[2]})
    graph = "B -> C; C -> Y; B <-> Y"
    optimiser = CausalOptimiser({"graph": graph, "settable": {"B": [-2, 2], "C": [-2, 2]}, "reward": "Y"})
    optimiser.read(rows)
    assert optimiser.task.inputs("Y") == ("C", "B (arising)")
    settings = torch.tensor([[1.0, math.nan], [math.nan, 1.0]], dtype=torch.float64)
    means = optimiser.model().posterior(settings.unsqueeze(-2)).mean.flatten()
    assert means.tolist() == pytest.approx([0.5, 1.0], abs=0.3)


def test_a_hidden_cause_makes_what_comes_before_it_an_input():
    graph = "F -> A; A -> E; {D E} -> Y; A <-> Y; D <-> A"
    task = CausalTask.of({"graph": graph, "actions": {"F": [0, 1]}, "settable": {"D": [0, 1]}, "reward": "Y"})
    assert {name: task.inputs(name) for name in task.nodes} == {
        "A": ("F",),
        "E": ("A",),
        "D": ("F", "A"),
        "Y": ("F", "A", "E", "D", "D (arising)"),
    }
    with pytest.raises(ValueError, match=r"no hidden cause moves an action, .* got F <-> Y: leave it out"):
        CausalTask.of({**TOY, "graph": "F -> Y; X -> Z; Z -> Y; F <-> Y", "actions": {"F": [0, 1]}})
