"""Style of all figures: colours, dashes, markers, panels, and their files.

Figures are equal, byte for byte, whenever their numbers are: they are made with matplotlib's objects alone,
without a window or a current figure, and with settings that hold only while something is drawn (`drawing`).
SVG files keep text as text, carry no date, and number their elements from a fixed salt. Colours are the eight
of Okabe and Ito (2008, Color Universal Design), for colour-blind readers; lines differ in dash or marker.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rehearsal_torch.files.atomic_write import write_bytes

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
VERMILION, SKY, BLACK = "#D55E00", "#56B4E9", "#000000"
# The shade of values without a number.
PALE = "#F6E6D8"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
# One more than colours: where there are more lines than colours, colour and marker together stay different.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...]
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
PNG_DPI = 150
# The range of an axis of chances, so that no mark at its ends is cut.
CHANCES = (-0.04, 1.04)

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
}


@contextmanager
def drawing() -> Iterator[None]:
    """Context manager that applies the settings of all figures."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def given_or_new(axes: Axes | None) -> Axes:
    """The axes, or those of a new figure of matplotlib.pyplot, which a notebook shows."""
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1] if axes is None else axes


def panels(
    rows: int = 1, columns: int = 1, *, width: float = 5.2, height: float = 3.6
) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure of rows x columns panels of about width x height inches; call it within `drawing`."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(line) for line in grid]


def panel_list(
    count: int, columns: int, *, width: float = 5.2, height: float = 3.6
) -> tuple[Figure, list[Axes]]:
    """`count` panels one after the other, `columns` in a line at most."""
    in_line = min(count, columns)
    figure, grid = panels(-(-count // in_line), in_line, width=width, height=height)
    axes_list = [axes for line in grid for axes in line]
    for axes in axes_list[count:]:
        axes.set_visible(False)
    return figure, axes_list[:count]


def line_style(index: int) -> dict[str, Any]:
    """Colour and dash of line number `index` of a figure."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)]}


def point_style(index: int) -> dict[str, Any]:
    """Colour and marker of points that no line joins, number `index` of a figure."""
    marker = MARKERS[index % len(MARKERS)]
    return {"color": COLOURS[index % len(COLOURS)], "marker": marker, "linestyle": ""}


def legend_below(figure: Figure, columns: int = 1, of: Sequence[Axes] | None = None) -> int:
    """One legend below all panels, or some, with each label once; returns the number of its entries."""
    handles: dict[str, Artist] = {}
    for axes in figure.axes if of is None else of:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)
    return len(handles)


def diagonal(axes: Axes, label: str) -> None:
    """The line on which both coordinates are equal, over the range shown."""
    low, high = min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], "-", color="#777777", linewidth=1, label=label)


def logarithmic(axis: XAxis | YAxis) -> None:
    """A logarithmic scale with a few plain numbers (0.2, 0.5, 1, 2, 5), after everything was drawn."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = sorted(axis.get_view_interval())
    wide = high / low > 100
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes ``name.png`` and ``name.svg`` into a folder, created if missing; call it within `drawing`."""
    # `Figure.savefig` would solve the layout again, and draw twice, for each file.
    figure.set_dpi(PNG_DPI)
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
        # The last bits of solved positions depend on where the solver's objects lie in memory.
        for axes in figure.axes:
            left, bottom, width, height = axes.get_position(original=True).bounds
            axes.set_position((round(left, 6), round(bottom, 6), round(width, 6), round(height, 6)))
    png = BytesIO()
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    contents = {"png": png.getvalue(), "svg": svg(figure)}
    return [write_bytes(folder / f"{name}.{kind}", content) for kind, content in contents.items()]


def svg(figure: Figure) -> bytes:
    """A figure as an SVG file, equal for equal figures; call it within `drawing`."""
    content = BytesIO()
    FigureCanvasSVG(figure).print_svg(content, metadata={"Date": None, "Creator": None})
    return content.getvalue()
