"""Figure: training curves, the loss of each epoch on the training and the held-out rows."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.data.part import in_words
from rehearsal_torch.reporting.style import BLUE, VERMILION, panel_list
from rehearsal_torch.reporting.wording import Wording

TRAIN, HELD_OUT = "train_loss", "held_out_loss"
COLUMNS, MOST = 2, 12


def trained_parts(metrics: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """The parts of a model with training losses among the metrics, named by the prefix of the loss."""
    return [
        name.removesuffix(TRAIN).rstrip("/")
        for name in metrics
        if name == TRAIN or name.endswith(f"/{TRAIN}")
    ]


def draw(
    metrics: Mapping[str, Sequence[tuple[float, float]]],
    parts: str | Sequence[str],
    words: Wording | None = None,
) -> Figure:
    """The losses of one part, or of several, a panel each; to be called within `drawing`.

    Args:
        metrics: Name to (epoch, value), of a run folder.
        parts: Names of parts, of `trained_parts`; the first `MOST` are drawn.
        words: What the units of the rows are called; None for patients.
    """
    shown = [parts] if isinstance(parts, str) else list(parts)[:MOST]
    figure, every = panel_list(len(shown), COLUMNS)
    for axes, part in zip(every, shown, strict=True):
        _losses(axes, metrics, part, (words or Wording()).subjects)
    return figure


def _losses(axes: Axes, metrics: Mapping[str, Sequence[tuple[float, float]]], part: str, units: str) -> None:
    lead = f"{part}/" if part else ""
    for name, label, colour, dash in (
        (TRAIN, f"training {units}", BLUE, "-"),
        (HELD_OUT, f"held-out {units}", VERMILION, "--"),
    ):
        points = list(metrics.get(lead + name, ()))
        if points:
            epochs = [step + 1 for step, _ in points]
            axes.plot(epochs, [value for _, value in points], dash, color=colour, label=label)
    held_out = list(metrics.get(lead + HELD_OUT, ()))
    if held_out:
        step, value = min(held_out, key=lambda point: point[1])
        axes.plot(
            [step + 1], [value], "o", color=VERMILION, label=f"best: {value:.3f} (epoch {step + 1:.0f})"
        )
    axes.set(
        xlabel="Epoch",
        ylabel="Loss: negative log-likelihood\nfor each row",
        title=f"Training of {in_words(part)}",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
