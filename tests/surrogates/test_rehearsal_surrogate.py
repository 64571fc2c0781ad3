"""What surrogates of a rehearsal task share: the task, where its rows lie, and which other task they take."""

from dataclasses import replace

import torch

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from tests.toys.linear_truth import chain

WORLD = chain()


class Rows(RehearsalSurrogate):
    """Where the rows of a task lie, and nothing else."""

    def parts(self, table):
        yield self.overlap, self.overlap.examples(table)


def fitted(task=WORLD.task, graphs=None):
    made = Rows(task, graphs)
    for part, examples in made.parts(WORLD.table(80)):
        part.solve(*examples)
    return made


def test_plain_data_of_a_task_are_as_good_as_the_task():
    one, other = fitted(WORLD.task), fitted(WORLD.task.to_plain())
    assert other.question().to_plain() == one.question().to_plain()
    assert one.kind == Candidates.kind == "rehearse"
    for name, value in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)


def test_the_graphs_that_may_be_true_are_the_tasks_own_unless_others_are_given():
    cut = RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["x"]})
    assert fitted().overlap.graphs == (WORLD.task.graph,)
    assert fitted().overlap.unlinked == ()
    assert fitted(graphs=[cut]).overlap.unlinked == ("a", "m")
    assert fitted(graphs=[cut, WORLD.task.graph]).overlap.unlinked == ()


def test_rows_need_not_be_known_before_an_answer():
    made = Rows(WORLD.task)
    made.require_fitted()
    assert not made.overlap.known
    assert made.faults() == []


def test_bounds_region_and_candidate_sets_may_change_after_the_fit():
    made = fitted()
    alone, both = made.overlap.limit(("m",)), made.overlap.limit(("a", "m"))
    assert both > alone
    asked = replace(WORLD.task, region=Polytope.of({"y": (5.0, 6.0)}), candidates=(("a", "m"), ("m",)))
    made.adopt(asked.to_plain())
    assert made.task.candidates == (("a", "m"), ("m",))
    assert made.overlap.task is made.task is made.question()
    assert made.task.region.contains(torch.tensor([[5.5]], dtype=torch.float64)).all()
    # Limits belong to candidate sets, and have moved with them.
    assert len(made.overlap.limits) == 2
    assert made.overlap.limit(("m",)) == alone
    assert made.overlap.limit(("a", "m")) == both
