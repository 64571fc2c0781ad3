"""Trainings that did not end well are named, and those that did are not."""

import pytest

from rehearsal_torch.training.convergence import faults, still_falling

FALLING = [3.0 - 0.1 * epoch for epoch in range(20)]
FLAT = [1.0 + 2.0 * 0.5**epoch for epoch in range(20)]
RISING = [1.0, 0.9, *(1.0 + 0.01 * epoch for epoch in range(10))]


def metrics(losses, part="mechanism"):
    return {f"{part}/{name}": list(enumerate(losses)) for name in ("train_loss", "held_out_loss")}


@pytest.mark.parametrize(
    ("losses", "falls"),
    [
        (FALLING, True),
        (FLAT, False),
        (RISING, False),
        ([2.0, 1.0], True),
        ([1.0, 2.0], False),
        ([1.0], False),
        ([1.0, 1.0, 1.0], False),
        # The last tenth is two epochs: 0.02 below the two before, of a fall of 1.
        ([1.0] + [0.02] * 17 + [0.0, 0.0], True),
        ([1.0] + [0.005] * 17 + [0.0, 0.0], False),
    ],
)
def test_a_loss_falls_if_its_last_tenth_is_a_hundredth_of_the_fall_below_the_tenth_before(losses, falls):
    assert still_falling(losses) is falls


def test_a_training_that_was_cut_off_is_named_by_its_part():
    assert faults(metrics(FALLING, "models.0.mechanism.blind"), 20) == [
        "training not converged: the held-out loss of model 1 of the ensemble was still falling in the last "
        "of 20 epochs: raise trainer.max_epochs"
    ]
    (told,) = faults({"train_loss": list(enumerate(FALLING))}, 20)
    assert told.startswith(
        "training not converged: the loss of the model was still falling in the last of 20"
    )
    assert faults(metrics(FLAT), 20) == []


def test_a_training_that_ended_by_itself_converged_unless_it_ended_at_once():
    assert faults(metrics(FALLING), 30) == [], "stopped early for a reason of its own"
    (told,) = faults(metrics(RISING), 30)
    assert told.startswith(
        "training ended at once: the held-out loss of the model was smallest in the first 2"
    )
    assert faults(metrics([3.0, 2.0, 1.0, 2.0, 3.0]), 30) == []


def test_parts_of_one_kind_share_a_sentence_and_other_metrics_are_left_aside():
    several = metrics(FALLING, "models.0.m") | metrics(FLAT, "models.1.m") | metrics(FALLING, "models.2.m")
    (told,) = faults(several | {"decision/seconds": [(0.0, 1.0)]}, 20)
    assert "of models 1 and 3 of the ensemble was" in told
