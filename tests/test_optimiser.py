import itertools
from functools import partial

import pytest
import torch

from rehearsal_torch.datasets.stays import TableError
from rehearsal_torch.objectives.confidence_bound import ConfidenceBound
from rehearsal_torch.optimiser import CausalOptimiser
from rehearsal_torch.search.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.exogenous_model import ExogenousModel

TASK = {"graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}}, "actions": {"a": [0, 1], "b": [0, 2]}, "reward": "Y"}
QUICK = AcquisitionSearch(raw=64, starts=8, kept=3, steps=20)
PLAIN = partial(ExogenousModel, phi="homoskedastic", components=1)


def system(action):
    x = action["a"] ** 2
    return {"X": x, "Y": 1 - (x - 0.3) ** 2 - (action["b"] - 1.2) ** 2, "unread": 7.0}


def optimiser(task=TASK, surrogate=PLAIN, **rest):
    return CausalOptimiser(task, surrogate=surrogate, search=QUICK, initial=6, **rest)


def told(made, rounds):
    for _ in range(rounds):
        (action,) = made.ask()
        made.tell(action, system(action))
    return made


def test_asking_and_telling_finds_the_best_action():
    made = told(optimiser(objective=partial(ConfidenceBound, beta=1.0)), 14)
    action, predicted = made.recommend()
    assert system(action)["Y"] > 0.98
    assert predicted == pytest.approx(1.0, abs=0.05)
    assert made.pending == []
    assert len(made.table) == 14


def test_a_file_goes_on_without_a_break(tmp_path):
    one = told(optimiser(), 8)
    one.tell({"a": 0.5, "b": 0.5}, {"X": 3.0, "Y": -1.0}, altered=["X"])
    one.write(tmp_path / "past.csv")
    other = optimiser()
    other.read(tmp_path / "past.csv")
    assert torch.equal(one.table.values, other.table.values)
    assert torch.equal(one.table.altered, other.table.altered)
    assert one.ask(2) == other.ask(2)


def test_the_same_seed_asks_the_same_and_another_seed_something_else():
    first, second, third = (told(optimiser(seed=seed), 7).table.values for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@pytest.mark.parametrize("structure", ["graph", "independent", "black_box"])
def test_a_batch_is_spread_out(structure):
    made = told(optimiser(surrogate=partial(PLAIN, structure=structure), objective=partial(ConfidenceBound, beta=4.0, propagate="optimistic")), 7)
    batch = made.ask(3)
    assert made.pending == batch
    apart = [max(abs(one["a"] - other["a"]), abs(one["b"] - other["b"]) / 2) for one, other in itertools.combinations(batch, 2)]
    assert min(apart) > 1e-3
    for action in reversed(batch):
        made.tell(action, system(action))
    assert made.pending == []
    # What is pending counts, whether it was asked for at once or one by one.
    again = told(optimiser(surrogate=partial(PLAIN, structure=structure), objective=partial(ConfidenceBound, beta=4.0, propagate="optimistic")), 7)
    for action in batch:
        assert again.ask() == [pytest.approx(action, abs=1e-4)]
    again.forget()
    assert again.pending == []


def test_pending_actions_leave_what_is_believed_as_it_is():
    made = told(optimiser(), 8)
    model = made.model()
    at = torch.tensor([[0.3, 0.4], [0.9, 1.5]], dtype=torch.float64)
    noise = model.draws(256, 0).mean(0, keepdim=True)
    before = model.network().propagate(at, noise)[0]
    made.ask()
    believing = made._believing(made._store.log)
    network = believing.network()
    pending = torch.tensor([list(made.pending[0].values())], dtype=torch.float64)
    assert network.propagate(at, noise)[0][:, 0] == pytest.approx(before[:, 0], abs=0.15)
    _, there = network.propagate(pending, noise, spread=("Y",))
    _, then = model.network().propagate(pending, noise, spread=("Y",))
    assert there["Y"].item() < then["Y"].item()


def test_limits_are_kept_from_the_first_action_on():
    made = optimiser({**TASK, "limits": {"normals": [[1.0, 1.0]], "offsets": [1.0]}})
    for action in made.ask(6):
        assert action["a"] + action["b"] <= 1 + 1e-6
        made.tell(action, system(action))
    assert sum(made.ask()[0].values()) <= 1 + 1e-6


def test_a_known_reward_is_not_learnt():
    made = told(optimiser({**TASK, "reward": {"targets": {"X": 0.5, "Y": 0.0}}}), 12)
    action, predicted = made.recommend()
    nodes = system(action)
    assert predicted == pytest.approx(-((nodes["X"] - 0.5) ** 2 + nodes["Y"] ** 2) / 2, abs=0.02)
    assert predicted > -0.02


@pytest.mark.parametrize(
    ("action", "nodes", "said"),
    [
        ({"a": 1.5, "b": 0.5}, {"X": 0.0, "Y": 0.0}, r"a may be set within \[0, 1\]; got 1.5"),
        ({"a": 0.5, "b": 0.5}, {"X": float("nan"), "Y": 0.0}, "finite numbers; got {'X': nan}"),
        ({"a": 0.5, "b": 0.5}, {"X": 0.0}, r"no value for node \['Y'\]"),
        ({"a": 0.5}, {"X": 0.0, "Y": 0.0}, r"no value for action \['b'\]"),
    ],
)
def test_what_cannot_be_is_refused(action, nodes, said):
    made = optimiser()
    with pytest.raises(ValueError, match=said):
        made.tell(action, nodes)
    assert len(made.table) == 0


def test_other_faults_are_named(tmp_path):
    made = optimiser()
    with pytest.raises(ValueError, match="no nodes of the task"):
        made.tell({"a": 0.5, "b": 0.5}, {"X": 0.0, "Y": 0.0}, altered=["Z"])
    with pytest.raises(ValueError, match="run in a circle"):
        optimiser({**TASK, "graph": {"parents": {"X": ["a", "Y"], "Y": ["X", "b"]}}})
    with pytest.raises(ValueError, match="at least 5 rows"):
        made.model()
    with pytest.raises(ValueError, match="at least 5 initial"):
        CausalOptimiser(TASK, initial=3)
    with pytest.raises(ValueError, match="at least 1 action"):
        made.ask(0)
    for action in made.ask(6):
        made.tell(action, {"X": 0.25, "Y": action["a"]})
    with pytest.raises(ValueError, match=r"X: all 6 values are 0\.25"):
        made.ask()
    (tmp_path / "short.csv").write_text("a,b,X\n" + "0.1,0.2,0.3\n" * 6, encoding="utf-8")
    with pytest.raises(TableError, match="Y"):
        made.read(tmp_path / "short.csv")


def test_a_model_before_enough_was_told_is_refused():
    optimiser = CausalOptimiser({"graph": {"parents": {"Y": ["a"]}}, "actions": {"a": [0, 1]}, "reward": "Y"})
    with pytest.raises(ValueError, match="expected at least 5 rows; got 0: try a few more actions first"):
        optimiser.ask(6)
