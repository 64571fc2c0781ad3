"""Contexts: what is known before acting, and the answers as functions of it."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.trial import TrialError
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.monte_carlo import MonteCarlo
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from tests.api.test_optimiser import PLAIN, QUICK
from tests.toys.causal_toys import WrittenLaw, WrittenModel
from tests.toys.humid import HUMID, humid


def optimiser(file=None, task=HUMID):
    return CausalOptimiser(task, surrogate=PLAIN, search=QUICK, initial=6, file=file)


def rows(count=12, seed=0):
    stream = np.random.default_rng(seed)
    settings = [
        {"a": stream.uniform(), "b": stream.uniform(0, 2), "c": stream.uniform(-1, 1)} for _ in range(count)
    ]
    return pd.DataFrame([{**each, **humid(each, stream)} for each in settings])


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, r"context: expected the values for which to decide, \{c: \.\.\.\}; got none"),
        ({"c": math.nan}, "context: c: expected a finite number; got nan"),
        (
            {"a": 1, "C": 0.2},
            "c: no value for this context; did you mean 'C'?.*a: the task has no such context",
        ),
    ],
)
def test_a_context_that_is_missing_or_another_is_refused(context, message):
    begun = optimiser()
    begun.read(rows())
    for call in (begun.ask, begun.recommend):
        with pytest.raises(ValueError, match=message):
            call(context=context)
    assert begun.pending == []
    with pytest.raises(ValueError, match="c: the task has no such context"):
        optimiser(task={key: value for key, value in HUMID.items() if key != "context"}).ask(context={"c": 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context": ["c", "z"]}, "context.z: is in no edge of the graph"),
        ({"context": ["X"]}, r"graph: the context \['X'\] has parents"),
        ({"context": ["a"]}, "context.a: is an action"),
        ({"graph": "c; a -> X; {X b} -> Y"}, r"graph: context \['c'\] are not ancestors of the reward"),
    ],
)
def test_a_context_is_a_root_that_matters(changes, message):
    with pytest.raises(ValueError, match=message):
        CausalTask.of({**HUMID, **changes})


def test_trials_keep_the_context_for_which_they_were_proposed_and_the_one_that_was_measured(tmp_path):
    begun = optimiser(tmp_path / "trials.json")
    (first,), (second,) = begun.ask(context={"c": 0.5}), begun.ask(context={"c": -0.5})
    assert (first["c"], second["c"]) == (0.5, -0.5)
    begun.tell(first, {"X": 1.0, "Y": 2.0, "c": 0.45})
    begun.tell(second.trial, {"X": 1.0, "Y": 3.0}, ran={"a": 0.1, "b": 0.2})
    again = CausalOptimiser.load(tmp_path / "trials.json")
    assert again.task.context == ("c",)
    assert (again.trials[0].asked["c"], again.trials[0].ran["c"]) == (0.5, 0.45)
    assert again.trials[1].ran == {"a": 0.1, "b": 0.2, "c": -0.5}
    assert again.table.columns(["c"])[:, 0].tolist() == [0.45, -0.5]
    assert not again.table.altered[:, again.table.names.index("c")].any()
    with pytest.raises(TrialError, match="c: no value for this context"):
        again.tell(None, {"X": 0.0, "Y": 0.0}, ran={"a": 0.3, "b": 0.3})
    again.write(tmp_path / "trials.csv")
    copy = optimiser()
    copy.read(tmp_path / "trials.csv")
    assert torch.equal(copy.table.values, again.table.values)


def test_of_equal_actions_that_wait_the_context_says_which_is_meant():
    begun = optimiser()
    log = begun._store.log
    for c in (0.0, 1.0):
        log, _ = log.ask(torch.tensor([0.5, 1.0, c], dtype=torch.float64))
    points = torch.tensor([[0.5, 1.0, 1.0], [0.5, 1.0, 0.9]], dtype=torch.float64)
    assert log.contains(points, "pending").tolist() == [True, False]
    log, trial, _ = log.complete({"a": 0.5, "b": 1.0, "c": 0.9}, {"X": 1.0, "Y": 1.0})
    assert (trial.id, trial.ran["c"]) == (2, 0.9)


def test_a_row_without_its_context_teaches_nothing_of_what_it_enters(tmp_path):
    chain = {**HUMID, "graph": {"parents": {"X": ["a", "c"], "Y": ["X", "b"]}}}
    table = rows()
    table.loc[3, "c"] = None
    begun = optimiser(task=chain)
    begun.read(table)
    model = begun.model().surrogate
    assert model.rows.kept(begun.table)[3].tolist() == [False, True]
    assert begun.recommend(context={"c": 0.1}).predicted < 2


def test_what_was_tried_elsewhere_is_compared_by_what_it_would_bring_here():
    """Y = c a + b, known up to 1: of the actions tried at c = 1, where the largest a is best, at c = -1 the
    smallest one is.
    """
    task = CausalTask.of({**HUMID, "graph": {"parents": {"Y": ["a", "b", "c"]}}})
    law = WrittenLaw(lambda w: w[..., 0] * w[..., 2] + w[..., 1], lambda w: 0.1 + w[..., 0])
    model = WrittenModel(task, {"Y": law}, [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0)])
    for c, best in ((1.0, 1.0), (-1.0, 0.0)):
        case = task.case("0", {"c": (c,)})
        for objective in (PosteriorMean(model, case), MonteCarlo(model, case, "qlognei")):
            assert objective.starts(2)[:, 2].tolist() == [c, c]
            assert float(objective.starts(1)[0, 0]) == best
            assert objective.scale[0] == pytest.approx(1 + max(c, 0), abs=0.1)
        pending = torch.tensor([[0.5, 0.5, 0.3]], dtype=torch.float64)
        assert MonteCarlo(model, case, pending=pending).pending[0, 2] == c
    with pytest.raises(ValueError, match=r"\['c'\] are unknown"):
        PosteriorMean(model, task.case("0"))


@pytest.mark.slow
def test_the_recommendation_is_a_function_of_the_context():
    begun = optimiser()
    begun.read(rows(20))
    contexts = [{"c": -0.5}, {"c": 0.5}]
    low, high = begun.recommend(context=contexts)
    assert begun.recommend(context=pd.DataFrame(contexts)) == [low, high]
    assert [*begun.recommend(context={"c": 0.5})] == [*high]
    assert (low.context, str(high).count("where c = 0.5: expected reward")) == ({"c": -0.5}, 1)
    assert low.action["b"] == pytest.approx(0.5, abs=0.2)
    assert high.action["b"] == pytest.approx(1.5, abs=0.2)
    assert set(low.runner_up) == {"a", "b"}
    model = begun.model()
    at = torch.tensor([[*low.runner_up.values(), -0.5]], dtype=torch.float64)
    assert low.runner_up_predicted == pytest.approx(float(model.posterior(at).mean), abs=0.1)
    assert model.bounds[:, 2].tolist() == [rows(20)["c"].min(), rows(20)["c"].max()]
    (held,) = begun.ask(fixed={"a": 0.25}, context={"c": 0.5})
    assert (held["a"], held["c"]) == (0.25, 0.5)
    assert begun.recommend(fixed={"a": 0.25}, context={"c": 0.5}).action["a"] == 0.25


@pytest.mark.parametrize("structure", ["independent", "black_box"])
def test_without_the_graph_the_context_is_an_input_beside_the_actions(structure):
    model = ExogenousModel(HUMID, structure=structure)
    assert model.rows.inputs == (("a", "b", "c"),)
