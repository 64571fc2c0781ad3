"""What every surrogate does by itself: refusing before it is fitted, and refusing other questions."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Columns, OtherQuestionError
from rehearsal_torch.data.trainable_part import NotFittedError, Solved
from rehearsal_torch.surrogates.surrogate import Surrogate, sample
from tests.toys.second_device import second_device

TASK = RehearsalTask.of(
    {
        "graph": {"parents": {"a": ["x"], "b": ["x"], "y": ["a", "b"]}},
        "context": ["x"],
        "box": {"a": [0, 1], "b": [0, 2]},
        "region": {"y": [0, 1]},
    }
)


class Mean(Solved):
    """The mean of what it is shown."""

    def __init__(self, needed=True):
        super().__init__()
        self.needed = needed
        self.register_fitted("mean")

    def sizes(self):
        return {"mean": (2,)}

    def solve(self, *examples):
        self.mean = examples[0].mean(0)


class Means(Surrogate):
    """Several means, for a question that is given."""

    def __init__(self, count=1, question=None, used=("graph", "actions")):
        super().__init__()
        self.means = torch.nn.ModuleList(Mean() for _ in range(count))
        self.extra = Mean(needed=False)
        self._question, self._used = question, used

    def parts(self, table):
        for part in (*self.means, self.extra):
            yield part, (table,)

    def question(self):
        return self._question

    def used(self):
        return self._used

    def _take(self, question):
        self._question = question


class Silent(Surrogate):
    """Says nothing of itself."""

    def parts(self, table):
        yield from ()


def fitted(made):
    for part, examples in made.parts(torch.arange(6.0).reshape(3, 2)):
        part.solve(*examples)
    return made


def plain(**changes):
    return TASK.to_plain() | changes


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "means.0"),
        (4, "means.0, means.1, means.2, means.3"),
        (5, "means.0, means.1, means.2, means.3, ..."),
    ],
)
def test_what_was_not_fitted_is_named_with_the_remedy(count, shown):
    made = Means(count)
    with pytest.raises(
        NotFittedError,
        match=rf"^this Means has not been fitted yet \({shown}\): fit it first \(rt.fit\(surrogate, table"
        r"\)\), or load a checkpoint \(rt.load\(folder\)\)$",
    ):
        made.require_fitted()
    assert made.faults() == [f"means.{place}: not fitted" for place in range(count)]
    fitted(made).require_fitted()
    assert made.faults() == []


def test_numbers_that_are_not_finite_and_wrong_sizes_are_faults_of_the_part():
    made = fitted(Means(2))
    made.means[0].mean[1] = torch.nan
    made.means[1].mean = torch.zeros(3)
    assert made.faults() == [
        "means.0.mean: 1 of 2 numbers are not finite",
        "means.1.mean: expected the size (2); got (3,)",
    ]


def test_a_question_that_differs_in_nothing_that_was_used_is_taken():
    made = Means(question=TASK)
    made.adopt(plain(box={"b": [0, 5], "a": [-3, 3]}, region={"y": [2, 3]}))
    taken = made.question()
    assert taken.box.bounds() == {"a": (-3.0, 3.0), "b": (0.0, 5.0)}, "in the order that was fitted"
    assert taken.region.contains(torch.tensor([[2.5], [0.5]], dtype=torch.float64)).tolist() == [True, False]


def test_each_field_that_was_used_and_differs_is_named_and_nothing_is_taken():
    made = Means(question=TASK, used=("graph", "actions", "region"))
    other = {
        "graph": {"parents": {"a": ["x"], "b": ["x"], "y": ["a"]}},
        "box": {"a": [0, 1]},
        "region": {"y": [0, 2]},
    }
    with pytest.raises(OtherQuestionError) as told:
        made.adopt(plain(**other, candidates=[["a"]]))
    said = str(told.value)
    assert said.startswith("the surrogate was fitted for another question. ")
    assert said.endswith(". Fit again for this question, or ask the one that was fitted for")
    assert all(f"{field}: it was fitted with" in said for field in ("graph", "actions", "region"))
    assert made.question() is TASK
    assert made.question().box.names == ("a", "b")


def test_columns_may_be_more_than_are_needed_and_not_fewer():
    made = Means(question=Columns(("x", "a")), used=("columns",))
    made.adopt(["a", "more", "x"])
    with pytest.raises(OtherQuestionError, match=r"it needs \['x', 'a'\]; the data have no \['x'\]"):
        made.adopt(["a"])


def test_a_surrogate_that_does_not_say_what_it_is_for_can_be_asked_nothing_else():
    with pytest.raises(
        OtherQuestionError,
        match=r"^Silent does not record the question that it was fitted for \(`question`\): it cannot be "
        r"compared with",
    ):
        Silent().adopt(plain())
    assert (Silent().question(), Silent().used(), Silent.kind) == (None, (), None)


def test_it_says_on_which_device_it_is_and_copies_itself_to_the_cpu():
    assert Silent().device == torch.device("cpu"), "it holds nothing that could be elsewhere"
    made = fitted(Means())
    assert made.on_cpu() is made
    with second_device() as device:
        there = fitted(Means()).to(device)
        assert there.device == device
        back = there.on_cpu()
        assert (back.device.type, there.device) == ("cpu", device)
        assert torch.equal(back.means[0].mean, made.means[0].mean)


def test_a_sample_holds_evenly_spaced_rows_or_whole_units():
    values = torch.arange(100, dtype=torch.float64).unsqueeze(1)
    table = Table.observed(("x",), values)
    assert sample(table, 4).values[:, 0].tolist() == [0, 33, 66, 99]
    assert sample(table, 200).values[:, 0].tolist() == list(range(100))
    # Units of ten rows, the numbers of which mean nothing.
    several = replace(table, units=torch.tensor([7, 3, 9, 1, 8, 2, 6, 0, 5, 4]).repeat_interleave(10))
    found = sample(several, 35)
    assert found.units.unique_consecutive().tolist() == [7, 8, 4]
    assert found.values[:, 0].tolist() == [*range(10), *range(40, 50), *range(90, 100)]
    assert len(sample(several, 3)) == 10, "one unit at least"
    assert len(sample(several, 100)) == 100
