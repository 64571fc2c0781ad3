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


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes ``name.png`` and ``name.svg``; to be called within `drawing`.

    Args:
        figure: The figure.
        folder: Folder to write to; created if missing.
        name: File name without its extension.

    Returns:
        The two files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(files[0], metadata={"Software": None})
    figure.savefig(files[1], metadata={"Date": None, "Creator": None})
    return files


# Doses and scores of the AI-Clinician table: column to letter, name and unit.
_DOSES = {"max_dose_vaso": ("V", "vasopressor", "mcg/kg/min"), "input_4hourly": ("F", "fluids", "mL/4 h")}
_UNITS = {"SOFA": "points", "organ SOFA": "points"}
_STEPS = {"SOFA": "4 h", "organ SOFA": "4 h"}


@dataclass(frozen=True)
class Dose:
    """Name of one coordinate of an action.

    Attributes:
        letter: Label of arrows.
        name: Name of the drug.
        unit: Unit of the dose; empty if unknown.
    """

    letter: str
    name: str
    unit: str


@dataclass(frozen=True)
class Wording:
    """Names and units of the numbers of sequence decisions.

    Attributes:
        variable: The variable summed over the episode ("SOFA", or "reward").
        sign: -1 if the reward is minus the variable, else 1.
        unit: Unit of the variable; empty if unknown.
        step: Length of a time step, in words; empty if unknown.
        doses: The coordinates of an action, in order; empty if unknown.
        subject: What one unit of the data is called.
        subjects: What several are called.
        actions: What several coordinates of actions are called.
        file: The name of the figure of one unit.
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
        """The name of dose number `index`."""
        return self.doses[index] if index < len(self.doses) else Dose(str(index + 1), f"dose {index + 1}", "")

    def _in(self) -> str:
        return f" ({self.unit})" if self.unit else ""


def wording(config: Mapping[str, Any], words: Mapping[str, Any] | None = None) -> Wording:
    """The names and units for a resolved configuration; generic ones where it does not determine them.

    Args:
        config: The configuration.
        words: What the data set says of its units and columns (`Recorded.words`); None or empty if nothing.
    """
    said = dict(words or {})
    units_of = said.get("units_of") or {}
    reward = said.get("reward")
    where = {"reward": reward} if isinstance(reward, Mapping) else config
    names = said.get("actions") or next(
        (each for each in _find(config, "doses") if isinstance(each, list)), ()
    )
    doses = _doses([str(name) for name in names], units_of, own=bool(said))
    found = _outcome(where)
    if found.variable in units_of:
        found = replace(found, unit=str(units_of[found.variable]))
    if not said:
        return replace(found, doses=doses)
    unit = str(said.get("unit") or "unit")
    return replace(
        found,
        doses=doses,
        step=f"one {said['step']}" if said.get("step") else "",
        subject=unit,
        subjects=str(said.get("units") or f"{unit}s"),
        actions="actions",
        file=re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_") or "unit",
    )


def _outcome(config: Mapping[str, Any]) -> Wording:
    """The words for the reward alone."""
    rewards = [found for found in _find(config, "reward") if isinstance(found, Mapping)]
    scores = [found for found in rewards if isinstance(found.get("components"), Mapping)]
    if scores and not scores[0].get("costs") and not scores[0].get("weights"):
        name = str(scores[0].get("name") or "score")
        return Wording(name, -1.0, _UNITS.get(name, "points"), _STEPS.get(name, ""))
    name = next((str(found["name"]) for found in rewards if found.get("name")), "")
    costly = [found for found in rewards if found.get("costs") or found.get("components")]
    if costly and not costly[0].get("weights"):
        return Wording(name or "cost", -1.0)
    weights = [found for found in _find(config, "weights") if isinstance(found, Mapping) and len(found) == 1]
    if weights and not costly:
        ((variable, weight),) = weights[0].items()
        if isinstance(weight, int | float) and weight == -1:
            return Wording(str(variable), -1.0, _UNITS.get(variable, ""), _STEPS.get(variable, ""))
    return Wording(name or "reward")


def _doses(names: Sequence[str], units_of: Mapping[str, str], *, own: bool) -> tuple[Dose, ...]:
    """The coordinates of an action; those of an own data set have letters that differ, where they can."""
    if not own:
        return tuple(_dose(name) for name in names)
    found: list[Dose] = []
    for place, name in enumerate(names):
        taken = {each.letter for each in found}
        free = [letter for letter in name.upper() if letter.isalpha() and letter not in taken]
        found.append(Dose(free[0] if free else str(place + 1), name, str(units_of.get(name, ""))))
    return tuple(found)


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
