"""Whether trainings ended well: those that were cut off by their last epoch, and those that never got going.

A training has not converged if it ran for all its epochs, its least loss lies in the last tenth of them, and
the mean loss of that tenth is below the mean of the tenth before by more than a hundredth of the whole fall.
A training that was stopped early has learnt little if its least held-out loss is that of the first or second
epoch: the weights kept are almost those drawn at the start. Held-out losses are used where there are any.

Source: ours; Prechelt (1998), Early stopping - but when?, for the criteria of stopping.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from rehearsal_torch.data.part import in_words

TRAIN, HELD_OUT = "train_loss", "held_out_loss"
TENTH, FALL, FIRST = 0.1, 0.01, 2
Readings = Mapping[str, Sequence[tuple[float, float]]]


def faults(metrics: Readings, most: int) -> list[str]:
    """What is wrong with the trainings of a fit, in sentences without full stops; empty if nothing is.

    Args:
        metrics: Name to (epoch, value): ``PART/train_loss`` and, where rows were held out,
            ``PART/held_out_loss``; others are left aside.
        most: The largest number of epochs of a training.
    """
    falling, early = list[str](), list[str]()
    held_out = False
    for name in metrics:
        part = name.removesuffix(TRAIN).rstrip("/")
        if name != TRAIN and not name.endswith(f"/{TRAIN}"):
            continue
        lead = f"{part}/" if part else ""
        trained = _values(metrics[name])
        checked = _values(metrics.get(lead + HELD_OUT, ()))
        losses = checked or trained
        if len(trained) >= most and still_falling(losses):
            falling.append(in_words(part))
            held_out = held_out or bool(checked)
        elif checked and len(checked) < most and checked.index(min(checked)) < FIRST:
            early.append(in_words(part))
    found = []
    if falling:
        what = "held-out loss" if held_out else "loss"
        found.append(
            f"training not converged: the {what} of {joined(falling)} was still falling in the last of "
            f"{most} epochs: raise trainer.max_epochs"
        )
    if early:
        found.append(
            f"training ended at once: the held-out loss of {joined(early)} was smallest in the first "
            f"{FIRST} epochs, and early stopping kept these weights: lower trainer.learning_rate, or look "
            "for held-out rows that differ from the others"
        )
    return found


def still_falling(losses: Sequence[float]) -> bool:
    """Whether losses, one for each epoch, were still falling at the end."""
    width = max(int(TENTH * len(losses)), 1)
    if len(losses) < 2 * width or len(losses) < 2:
        return False
    fall = losses[0] - min(losses)
    best = len(losses) - 1 - losses[::-1].index(min(losses))
    recent, before = fmean(losses[-width:]), fmean(losses[-2 * width : -width])
    return fall > 0 and best >= len(losses) - width and before - recent > FALL * fall


def joined(names: Sequence[str]) -> str:
    """Names in a row, those of several models of an ensemble by their numbers."""
    numbers = [name.split()[1] for name in names if name.endswith(" of the ensemble")]
    if len(numbers) == len(names) > 1:
        return f"models {', '.join(numbers[:-1])} and {numbers[-1]} of the ensemble"
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def _values(points: Sequence[tuple[float, float]]) -> list[float]:
    """The values in the order of their epochs; those of a resumed training may have been read twice."""
    return [value for _, value in sorted(dict(points).items())]
