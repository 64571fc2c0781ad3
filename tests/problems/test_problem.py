"""What a problem is by default, and what each kind of problem hands to a surrogate."""

import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Columns
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.problem import CausalProblem, Facts, Problem, RehearsalProblem, World
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior

TABLE = Table.observed(("x", "a", "y"), torch.zeros(3, 3, dtype=torch.float64))
REHEARSAL = RehearsalTask.of(
    {
        "graph": {"parents": {"a": ["x"], "y": ["x", "a"]}},
        "context": ["x"],
        "box": {"a": [0, 1]},
        "region": {"y": [0, 1]},
    }
)
CAUSAL = CausalTask.of({"graph": {"parents": {"y": ["a"]}}, "actions": {"a": [0.0, 1.0]}, "reward": "y"})


class Plain(Problem):
    """What nobody can leave out."""

    def observations(self):
        return TABLE

    held_out = observations

    def count(self):
        return 1

    def case(self, index):
        raise IndexError

    def score(self, one_case, decision):
        return {}

    def card(self):
        return {}


class Foreseen(RehearsalProblem, Plain):
    """A rehearsal problem, its graph left open."""

    task = REHEARSAL
    hypotheses = (REHEARSAL.graph, RehearsalGraph.of({"a": ["x"], "y": ["x"]}))


class Tried(CausalProblem, Plain):
    """A problem of trials."""

    task = CAUSAL


def test_by_default_a_problem_looks_back_at_the_columns_of_its_observations():
    made = Plain()
    assert made.kind == "look_back"
    assert made.question() == Columns(("x", "a", "y"))
    assert made.facts() == Facts()


def test_a_rehearsal_problem_asks_its_task_and_hands_a_surrogate_the_graphs_that_may_be_true():
    made = Foreseen()
    assert made.kind == "rehearse"
    assert made.question() is REHEARSAL
    surrogate = StructuralPosterior(**made.facts().surrogate)
    assert [each.graph for each in surrogate.hypotheses] == list(Foreseen.hypotheses)
    assert surrogate.question().to_plain() == REHEARSAL.to_plain()


def test_a_problem_of_trials_asks_its_task_and_hands_it_on():
    made = Tried()
    assert made.kind == "optimise"
    assert made.question() is CAUSAL
    assert ExogenousModel(**made.facts().surrogate).question().to_plain() == CAUSAL.to_plain()


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (Problem, {"observations", "held_out", "count", "case", "score", "card"}),
        (World, {"observations", "held_out", "count", "case", "score", "card", "respond", "optimum"}),
    ],
)
def test_what_every_problem_must_say(kind, missing):
    assert kind.__abstractmethods__ == missing
    with pytest.raises(TypeError, match="abstract"):
        kind()
