"""Wording: what a run's numbers are called, and in which unit.

A run's resolved configuration says what its reward is made of and which doses make up an action. A reward of
minus one variable is shown as that variable, summed over the episode (less is better); any other reward is
shown as the return itself (more is better).

Drawing: figures that are equal, byte for byte, whenever their numbers are.

Figures are made with matplotlib's objects alone: no window, no current figure, and settings that hold only
while something is drawn. SVG files keep their text as text, bear no date, and number their elements from a
fixed salt. Colours are Okabe and Ito's eight, which stay apart for colour-blind readers; lines differ in dash
or marker as well.

Source: Okabe and Ito (2008), Color Universal Design.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1)),
)

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


def panels(
    rows: int = 1, columns: int = 1, *, width: float = 5.2, height: float = 3.6
) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure of rows x columns panels, each about width x height inches; to be called within
    `drawing`.
    """
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


# Column to letter, name and unit of the AI-Clinician table's doses and of its scores.
_DOSES = {"max_dose_vaso": ("V", "vasopressor", "mcg/kg/min"), "input_4hourly": ("F", "fluids", "mL/4 h")}
_UNITS = {"SOFA": "points"}
_STEPS = {"SOFA": "4 h"}


@dataclass(frozen=True)
class Dose:
    """What one coordinate of an action is called.

    Attributes:
        letter: For arrows.
        name: In words.
        unit: Of the dose; empty where unknown.
    """

    letter: str
    name: str
    unit: str


@dataclass(frozen=True)
class Wording:
    """What the numbers of sequence decisions are called.

    Attributes:
        variable: What is summed over the episode ("SOFA", or "reward").
        sign: -1 where the reward is minus the variable, else 1.
        unit: The variable's unit; empty where unknown.
        step: The length of a time step in words; empty where unknown.
        doses: The coordinates of an action, in order; empty where unknown.
    """

    variable: str = "reward"
    sign: float = 1.0
    unit: str = ""
    step: str = ""
    doses: tuple[Dose, ...] = ()

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
        return f"Time step ({self.step} each)" if self.step else "Time step"

    def dose(self, index: int) -> Dose:
        """What dose number `index` is called."""
        return self.doses[index] if index < len(self.doses) else Dose(str(index + 1), f"dose {index + 1}", "")

    def _in(self) -> str:
        return f" ({self.unit})" if self.unit else ""


def wording(config: Mapping[str, Any]) -> Wording:
    """Reads the wording off a resolved configuration; neutral words where it does not say."""
    doses = next(
        (
            tuple(_dose(str(name)) for name in found)
            for found in _find(config, "doses")
            if isinstance(found, list)
        ),
        (),
    )
    weights = [found for found in _find(config, "weights") if isinstance(found, Mapping) and len(found) == 1]
    if not weights:
        return Wording(doses=doses)
    ((variable, weight),) = weights[0].items()
    if not isinstance(weight, int | float) or weight != -1:
        return Wording(doses=doses)
    return Wording(str(variable), -1.0, _UNITS.get(variable, ""), _STEPS.get(variable, ""), doses)


def _dose(name: str) -> Dose:
    return Dose(*_DOSES.get(name, (name[:1].upper(), name, "")))


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
