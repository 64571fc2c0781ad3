"""Drawing: figures that are equal, byte for byte, whenever their numbers are.

Figures are made with matplotlib's objects alone: no window, no current figure, and settings that hold only while
something is drawn. SVG files keep their text as text, bear no date, and number their elements from a fixed salt.
Colours are Okabe and Ito's eight, which stay apart for colour-blind readers; lines differ in dash or marker as well.

Source: Okabe and Ito (2008), Color Universal Design.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, YELLOW, BLACK = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#000000"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))

_SETTINGS: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "rehearsal_torch",
    "savefig.dpi": 150,
}


@contextmanager
def drawing() -> Iterator[None]:
    """The settings of all figures, for as long as the block lasts."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def panels(rows: int = 1, columns: int = 1, *, width: float = 5.2, height: float = 3.6) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure of rows x columns panels, each about width x height inches; to be called within `drawing`."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(line) for line in grid]


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes ``name.png`` and ``name.svg``; to be called within `drawing`.

    Args:
        figure: What was drawn.
        folder: Where to; made if missing.
        name: The file's name without its ending.

    Returns:
        The two files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(files[0], metadata={"Software": None})
    figure.savefig(files[1], metadata={"Date": None, "Creator": None})
    return files
