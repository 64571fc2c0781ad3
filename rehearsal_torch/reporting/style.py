"""Style of all figures, and the names and units of a run's numbers.

Figures are equal, byte for byte, whenever their numbers are: they are made with matplotlib's objects alone,
without a window or a current figure, and with settings that hold only while something is drawn (`drawing`).
SVG files keep text as text, carry no date, and number their elements from a fixed salt. Colours are the eight
of Okabe and Ito, distinguishable for colour-blind readers; lines also differ in dash or marker.

Names and units (`wording`) come from a run's resolved configuration, the terms of its reward and the doses
that make up an action, and from its data set, which may say what its units and columns are called. A reward
of minus one variable, or minus a score or costs, is shown as that variable, summed over the episode (less is
better); any other reward is shown as the return itself (more is better).

Source: Okabe and Ito (2008), Color Universal Design.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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

from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.files.writing import write_bytes

BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#000000",
)
# The shade of places without a number.
PALE = "#F6E6D8"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
# One more than colours: where there are more lines than colours, colour and marker together stay different.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1)),
)
PNG_DPI = 150

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


def panels(
    rows: int = 1, columns: int = 1, *, width: float = 5.2, height: float = 3.6
) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure of rows x columns panels, each about width x height inches; to be called within
    `drawing`.
    """
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(line) for line in grid]


def panel_list(
    count: int, columns: int, *, width: float = 5.2, height: float = 3.6
) -> tuple[Figure, list[Axes]]:
    """`panels` one after the other, so many in a line at most; the rest of the last line stays empty."""
    across = min(count, columns)
    figure, grid = panels(-(-count // across), across, width=width, height=height)
    every = [axes for line in grid for axes in line]
    for axes in every[count:]:
        axes.set_visible(False)
    return figure, every[:count]


def line_style(index: int) -> dict[str, Any]:
    """Colour and dash of line number `index` of a figure."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)]}


def point_style(index: int) -> dict[str, Any]:
    """Colour and marker of points that no line joins, number `index` of a figure."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": "",
    }


def legend_below(figure: Figure, columns: int = 1, of: Sequence[Axes] | None = None) -> int:
    """One legend for all panels, or for some, below them, with each label once; returns the number of its
    entries.
    """
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
    """A logarithmic scale with few numbers, written plainly: 0.2, 0.5, 1, 2, 5.

    Args:
        axis: The axis, which is made logarithmic after everything was drawn on it.
    """
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = sorted(axis.get_view_interval())
    wide = high / low > 100
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes ``name.png`` and ``name.svg``; to be called within `drawing`.

    Args:
        folder: Folder to write to; created if missing.
        name: File name without its extension.
    """
    # `Figure.savefig` would solve the layout again, and draw twice, for each file.
    figure.set_dpi(PNG_DPI)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    png = BytesIO()
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    files = []
    for kind, content in (("png", png.getvalue()), ("svg", svg(figure))):
        files.append(folder / f"{name}.{kind}")
        write_bytes(files[-1], content)
    return files


def svg(figure: Figure) -> bytes:
    """A figure as an SVG file, equal for equal figures; to be called within `drawing`."""
    content = BytesIO()
    FigureCanvasSVG(figure).print_svg(content, metadata={"Date": None, "Creator": None})
    return content.getvalue()


# Doses and scores of the AI-Clinician table: column to letter, name and unit.
_DOSES = {"max_dose_vaso": ("V", "vasopressor", "mcg/kg/min"), "input_4hourly": ("F", "fluids", "mL/4 h")}
_UNITS = {"SOFA": "points", "organ SOFA": "points"}
_STEPS = {"SOFA": "4 h", "organ SOFA": "4 h"}


@dataclass(frozen=True)
class Dose:
    """Name of one coordinate of an action.

    Attributes:
        letter: Label of arrows.
        name: Name of the drug, or of whatever else is set.
        unit: Unit of the dose; empty if unknown.
        levels: The names of its levels 0, 1, ..., in order; empty for amounts, and if unknown.
        upwards: What a larger value means, in words.
    """

    letter: str
    name: str
    unit: str
    levels: tuple[str, ...] = ()
    upwards: str = "more"

    def level(self, value: object) -> str:
        """The name of a level; empty for anything that is not the number of a named level."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ""
        return next((name for number, name in enumerate(self.levels) if number == value), "")


@dataclass(frozen=True)
class Wording:
    """Names and units of the numbers of sequence decisions.

    Attributes:
        variable: The variable summed over the episode ("SOFA", or "reward"), in `unit`.
        sign: -1 if the reward is minus the variable, else 1.
        step: Length of a time step, in words; empty if unknown.
        doses: The coordinates of an action, in order; empty if unknown.
        subject: What a unit of the data is called; several are `subjects`.
        actions: What several coordinates of actions are called.
        file: The name of the figure of one unit.
        episode: What an episode is called in sentences: by its unit, where the data set names it; several are
            `episodes`.
        first: The time of the first step in the table, where steps are counted on from it; None if unknown.
    """

    variable: str = "reward"
    sign: float = 1.0
    unit: str = ""
    step: str = ""
    doses: tuple[Dose, ...] = ()
    subject: str = "patient"
    subjects: str = "patients"
    actions: str = "doses"
    file: str = "patient"
    episode: str = "episode"
    episodes: str = "episodes"
    first: int | None = None

    @property
    def total(self) -> str:
        """The axis label of an episode's outcome."""
        return f"Cumulative {self.variable}" + self._in()

    @property
    def level(self) -> str:
        """The axis label of the variable at one time."""
        return self.variable + self._in()

    @property
    def time(self) -> str:
        """The axis label of time."""
        if self.first is not None and self.step:
            return self.one_step
        return f"Time step ({self.step} each)" if self.step else "Time step"

    @property
    def start(self) -> int:
        """The number of the first step: the table's own where it is known and steps have a name, else 0."""
        return self.first if self.first is not None and self.step else 0

    def at(self, step: int) -> str:
        """A time step in words: ``Week 3`` by the time of the table, else ``Time step 2``, from 0."""
        return f"{self.one_step} {self.start + step}"

    @property
    def one_step(self) -> str:
        """What a step is called: by its name where it has the time of the table, else ``Time step``."""
        if self.first is None or not self.step:
            return "Time step"
        name = self.step.removeprefix("one ")
        return name[:1].upper() + name[1:]

    def dose(self, index: int) -> Dose:
        """The name of dose number `index`."""
        if index < len(self.doses):
            return self.doses[index]
        return Dose(str(index + 1), f"{self.actions.removesuffix('s')} {index + 1}", "")

    @property
    def an_action(self) -> str:
        """What one coordinate of an action is called, with its article."""
        return "a dose" if self.actions == "doses" else "an action"

    def titled(self, name: str) -> str:
        """The heading of one episode."""
        return f"{self.episode[:1].upper()}{self.episode[1:]} {name}"

    def _in(self) -> str:
        return f" ({self.unit})" if self.unit else ""


def worded(run: Recorded) -> Wording:
    """The names and units of a run: those of its data set, else those that its configuration determines. The
    terminal, the figures and the page of a run take them from here.
    """
    return wording(run.config, run.words)


def wording(config: Mapping[str, Any], words: Mapping[str, Any] | None = None) -> Wording:
    """The names and units for a resolved configuration; generic ones where it does not determine them.

    Args:
        words: What the data set says of its units and columns (`Recorded.words`); None or empty if nothing.
    """
    own = dict(words or {})
    # The record may have been edited: what has another form is left out.
    units_of = _mapping(own.get("units_of"))
    reward = own.get("reward")
    where = {"reward": reward} if isinstance(reward, Mapping) else config
    places = (own.get("actions"), *_find(config, "doses"))
    names = [str(name) for name in next((some for some in places if some and isinstance(some, list)), [])]
    doses = _own_doses(names, units_of, _mapping(own.get("levels"))) if own else tuple(map(_dose, names))
    words_of = _outcome(where)
    if words_of.variable in units_of:
        words_of = replace(words_of, unit=str(units_of[words_of.variable]))
    if not own:
        return replace(words_of, doses=doses)
    first = own.get("first")
    unit = str(own.get("unit") or "unit")
    units = str(own.get("units") or f"{unit}s")
    return replace(
        words_of,
        doses=doses,
        step=f"one {own['step']}" if own.get("step") else "",
        subject=unit,
        subjects=units,
        episode=unit,
        episodes=units,
        actions="actions",
        file=re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_") or "unit",
        first=first if isinstance(first, int) and not isinstance(first, bool) else None,
    )


def _outcome(config: Mapping[str, Any]) -> Wording:
    """The words for the reward alone."""
    rewards = [reward_of for reward_of in _find(config, "reward") if isinstance(reward_of, Mapping)]
    scores = [reward_of for reward_of in rewards if isinstance(reward_of.get("components"), Mapping)]
    if scores and not scores[0].get("costs") and not scores[0].get("weights"):
        name = str(scores[0].get("name") or "score")
        return Wording(name, -1.0, _UNITS.get(name, "points"), _STEPS.get(name, ""))
    name = next((str(reward_of["name"]) for reward_of in rewards if reward_of.get("name")), "")
    costly = [reward_of for reward_of in rewards if reward_of.get("costs") or reward_of.get("components")]
    if costly and not costly[0].get("weights"):
        return Wording(name or "cost", -1.0)
    weights = [
        reward_of
        for reward_of in _find(config, "weights")
        if isinstance(reward_of, Mapping) and len(reward_of) == 1
    ]
    if weights and not costly:
        ((variable, weight),) = weights[0].items()
        if isinstance(weight, int | float) and weight == -1:
            return Wording(str(variable), -1.0, _UNITS.get(variable, ""), _STEPS.get(variable, ""))
    return Wording(name or "reward")


def _own_doses(
    names: Sequence[str], units_of: Mapping[Any, Any], levels_of: Mapping[Any, Any]
) -> tuple[Dose, ...]:
    """The coordinates of an action of an own data set, with letters that differ, where they can."""
    doses: list[Dose] = []
    for index, name in enumerate(names):
        taken = {dose.letter for dose in doses}
        free = [letter for letter in name.upper() if letter.isalpha() and letter not in taken]
        letter, unit = free[0] if free else str(index + 1), str(units_of.get(name, ""))
        levels = levels_of.get(name)
        named = tuple(map(str, levels)) if isinstance(levels, list) else ()
        # Without names and unit it may be a level, of which a higher one need not be more of anything.
        upwards = f"towards {named[-1]}" if named else "more" if unit else "higher value"
        doses.append(Dose(letter, name, unit, named, upwards))
    return tuple(doses)


def _dose(name: str) -> Dose:
    return Dose(*_DOSES.get(name, (name[:1].upper(), name, "")))


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _find(node: object, key: str) -> Iterator[object]:
    """All values under a key, outermost first."""
    if isinstance(node, Mapping):
        if key in node:
            yield node[key]
        for value in node.values():
            yield from _find(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _find(value, key)
