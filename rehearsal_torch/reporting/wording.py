"""Wording: what a run's numbers are called, and in which unit.

A run's resolved configuration says what its reward is made of and which doses make up an action. A reward of minus
one variable is shown as that variable, summed over the episode (less is better); any other reward is shown as the
return itself (more is better).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    doses = next((tuple(_dose(str(name)) for name in found) for found in _find(config, "doses") if isinstance(found, list)), ())
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
