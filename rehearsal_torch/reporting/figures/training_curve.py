"""Figure: training curves, the loss of each epoch on the training and the held-out rows."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.reporting.style import BLUE, VERMILION, Wording, panels

TRAIN, HELD_OUT = "train_loss", "held_out_loss"


def trained_parts(metrics: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """The parts of a model with training losses among the metrics, named by the prefix of the loss."""
    return [
        name.removesuffix(TRAIN).rstrip("/")
        for name in metrics
        if name == TRAIN or name.endswith(f"/{TRAIN}")
    ]


def draw(
    metrics: Mapping[str, Sequence[tuple[float, float]]], part: str, words: Wording | None = None
) -> Figure:
    """The losses of one part.

    Args:
        metrics: Name to (epoch, value), of a run folder.
        part: Name of the part, one of `trained_parts`.
        words: What the units of the rows are called; None for patients.
    """
    figure, [[axes]] = panels()
    units = (words or Wording()).subjects
    lead = f"{part}/" if part else ""
    for name, label, colour, dash in (
        (TRAIN, f"training {units}", BLUE, "-"),
        (HELD_OUT, f"held-out {units}", VERMILION, "--"),
    ):
        points = list(metrics.get(lead + name, ()))
        if points:
            axes.plot(
                [step + 1 for step, _ in points],
                [value for _, value in points],
                dash,
                color=colour,
                label=label,
            )
    held_out = list(metrics.get(lead + HELD_OUT, ()))
    if held_out:
        step, value = min(held_out, key=lambda point: point[1])
        axes.plot(
            [step + 1], [value], "o", color=VERMILION, label=f"best: {value:.3f} (epoch {step + 1:.0f})"
        )
    axes.set(
        xlabel="Epoch",
        ylabel="Negative log-likelihood\n(nats per transition)",
        title=f"Training: {part or 'the model'}",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure
