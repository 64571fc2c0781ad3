"""Parts are fitted one after the other: solved where they have a solver, and trained under their names."""

import pytest
import torch

from rehearsal_torch.data.part import Solved
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.part_fits import fit_parts
from tests.toys.transitions import model, observations


class Turned(Solved):
    """Keeps its examples, turned."""

    def __init__(self):
        super().__init__()
        self.register_fitted("kept")

    def solve(self, *examples):
        self.kept = examples[0].mT


def test_what_is_solved_is_contiguous_as_after_loading():
    part, rows = Turned(), torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    fit_parts(iter([(part, (rows,))]), None, {}, None, True)
    assert torch.equal(part.kept, rows.mT)
    assert part.kept.is_contiguous()


def test_held_out_examples_are_made_for_trained_parts_alone_and_losses_have_names():
    surrogate, made = model(), []

    def steps(table):
        for part, examples in surrogate.parts(table):
            made.append((type(part).__name__, len(table)))
            yield part, examples

    names = {id(module): name for name, module in surrogate.named_modules()}
    trainer = Descent(max_epochs=2, progress=False)
    fit_parts(steps(observations()), steps(observations(10, seed=1)), names, trainer, True)
    assert [each for each in made if each[1] == 200] == [
        ("Rescale", 200),
        ("DoseLevels", 200),
        ("LocationScale", 200),
    ]
    assert made.index(("LocationScale", 200)) < made.index(("Rescale", 50)), "only when they are needed"
    assert {name for _, name, _ in trainer.history} == {"mechanism/train_loss", "mechanism/held_out_loss"}
    assert len(trainer.history) == 4


def test_a_part_without_a_solver_is_named_where_nothing_trains_it():
    surrogate = model()
    with pytest.raises(ValueError, match=r"part 'LocationScale' \(LocationScale\) is trained by gradients"):
        fit_parts(surrogate.parts(observations()), None, {}, None, True)
