"""Names and units of a run's numbers, for its terminal, its figures and its page.

They come from its resolved configuration, the terms of its reward and the doses that make up an action, and
from its data set, which may say what its units and columns are called. A reward of minus one variable, or
minus a score or costs, is shown as that variable, summed over the episode (less is better); any other reward
is shown as the return itself (more is better).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rehearsal_torch.evaluation.run_record import Recorded

# AI-Clinician table: column of a dose to letter, name and unit; units and steps of scores.
_DOSES = {"max_dose_vaso": ("V", "vasopressor", "mcg/kg/min"), "input_4hourly": ("F", "fluids", "mL/4 h")}
_UNITS = {"SOFA": "points", "organ SOFA": "points"}
_STEPS = {"SOFA": "4 h", "organ SOFA": "4 h"}


@dataclass(frozen=True)
class Dose:
    """One coordinate of an action, a drug or whatever else is set; names are empty where unknown.

    Attributes:
        letter: Label of arrows.
        levels: The names of its levels 0, 1, ..., in order; empty for amounts.
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
        subject: A unit of the data; several are `subjects`.
        actions: Several coordinates of actions.
        file: The name of the figure of one unit.
        episode: An episode in sentences: its unit, where the data set names it; several are `episodes`.
        first: The time of the first step in the table, where steps are counted on from it; None if unknown.
        units: Variable to its unit.
        clock: The column of time; empty if unknown.
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
    units: Mapping[str, str] = field(default_factory=dict)
    clock: str = ""

    @property
    def total(self) -> str:
        """The axis label of an episode's outcome."""
        return with_unit(f"Cumulative {self.variable}", self.unit)

    @property
    def level(self) -> str:
        """The axis label of the variable at one time."""
        return with_unit(self.variable, self.unit)

    @property
    def time(self) -> str:
        """The axis label of time."""
        return f"Step ({self.step} each)" if self.step and self.first is None else self.one_step

    @property
    def start(self) -> int:
        """The number of the first step: the table's own where it is known, else 1."""
        return 1 if self.first is None else self.first

    def at(self, step: int) -> str:
        """Step number `step`, from 0, in words: ``Week 3`` by the time of the table, else ``Step 3``."""
        return f"{self.one_step} {self.start + step}"

    @property
    def one_step(self) -> str:
        """A time step without its number: as it is called, else as the column of time, such as ``Week``."""
        name = "" if self.first is None else self.step.removeprefix("one ") or self.clock.replace("_", " ")
        return name[:1].upper() + name[1:] or "Step"

    def dose(self, index: int) -> Dose:
        """Coordinate number `index` of an action."""
        if index < len(self.doses):
            return self.doses[index]
        return Dose(str(index + 1), f"{self.actions.removesuffix('s')} {index + 1}", "")

    @property
    def an_action(self) -> str:
        """One coordinate of an action, with its article."""
        return "a dose" if self.actions == "doses" else "an action"

    def titled(self, name: str) -> str:
        """The heading of one episode."""
        return f"{self.episode[:1].upper()}{self.episode[1:]} {name}"


def with_unit(name: str, unit: str) -> str:
    """A name with its unit in brackets, unless it ends in it, such as ``Hb (g/dl)``."""
    has_unit = re.search(rf"(^|[\s(\[,_]){re.escape(unit)}[)\]]?$", name)
    return f"{name} ({unit})" if unit and not has_unit else name


def worded(run: Recorded) -> Wording:
    """The names and units of a run: those of its data set, else those that its configuration determines."""
    return wording(run.config, run.words)


def wording(config: Mapping[str, Any], words: Mapping[str, Any] | None = None) -> Wording:
    """Names and units by a resolved configuration and the `Recorded.words` of a data set, else generic."""
    data = dict(words or {})
    # The record may have been edited: what has another form is left out.
    units_of = _mapping(data.get("units_of"))
    reward = data.get("reward")
    source = {"reward": reward} if isinstance(reward, Mapping) else config
    candidates = (data.get("actions"), *_find(config, "doses"))
    names = [str(name) for name in next((item for item in candidates if item and isinstance(item, list)), [])]
    doses = tuple(Dose(*_DOSES.get(name, (name[:1].upper(), name, ""))) for name in names)
    if data:
        doses = _data_doses(names, units_of, _mapping(data.get("levels")))
    words_of = _reward_wording(source)
    if words_of.variable in units_of:
        words_of = replace(words_of, unit=str(units_of[words_of.variable]))
    if not data:
        return replace(words_of, doses=doses)
    first = data.get("first")
    unit = str(data.get("unit") or "unit")
    units = str(data.get("units") or f"{unit}s")
    return replace(
        words_of,
        doses=doses,
        step=f"one {data['step']}" if data.get("step") else "",
        clock=str(data.get("time") or ""),
        subject=unit,
        subjects=units,
        episode=unit,
        episodes=units,
        actions="actions",
        units={str(name): str(unit) for name, unit in units_of.items() if unit},
        file=re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_") or "unit",
        first=first if isinstance(first, int) and not isinstance(first, bool) else None,
    )


def _reward_wording(config: Mapping[str, Any]) -> Wording:
    """The words for the reward alone."""
    rewards = [reward for reward in _find(config, "reward") if isinstance(reward, Mapping)]
    scores = [reward for reward in rewards if isinstance(reward.get("components"), Mapping)]
    if scores and not scores[0].get("costs") and not scores[0].get("weights"):
        name = str(scores[0].get("name") or "score")
        return Wording(name, -1.0, _UNITS.get(name, "points"), _STEPS.get(name, ""))
    name = next((str(reward["name"]) for reward in rewards if reward.get("name")), "")
    costly = [reward for reward in rewards if reward.get("costs") or reward.get("components")]
    if costly and not costly[0].get("weights"):
        return Wording(name or "cost", -1.0)
    weights = [terms for terms in _find(config, "weights") if isinstance(terms, Mapping) and len(terms) == 1]
    if weights and not costly:
        ((variable, weight),) = weights[0].items()
        if isinstance(weight, int | float) and weight == -1:
            return Wording(str(variable), -1.0, _UNITS.get(variable, ""), _STEPS.get(variable, ""))
    return Wording(name or "reward")


def _data_doses(
    names: Sequence[str], units_of: Mapping[Any, Any], levels_of: Mapping[Any, Any]
) -> tuple[Dose, ...]:
    """The coordinates of an action of a user's data set, with letters that differ, where they can."""
    doses: list[Dose] = []
    for index, name in enumerate(names):
        letters = {dose.letter for dose in doses}
        unused = [letter for letter in name.upper() if letter.isalpha() and letter not in letters]
        letter, unit = unused[0] if unused else str(index + 1), str(units_of.get(name, ""))
        levels = levels_of.get(name)
        level_names = tuple(map(str, levels)) if isinstance(levels, list) else ()
        # Without names and unit, a higher number need not be more of anything.
        upwards = f"towards {level_names[-1]}" if level_names else "more" if unit else "higher value"
        doses.append(Dose(letter, name, unit, level_names, upwards))
    return tuple(doses)


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _find(node: object, key: str) -> Iterator[object]:
    """All values under a key, outermost first."""
    if isinstance(node, Mapping) and key in node:
        yield node[key]
    for value in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        yield from _find(value, key)


def telling_gap(gap: float | None, value: float | None, observed: float | None) -> float | None:
    """The largest possible advantage of another sequence over one with a return of `value`; None if it is not
    known, or exceeds the gain on the observed one, which says nothing.
    """
    if gap is None or value is None or observed is None:
        return None
    return gap if gap <= max(0.0, value - observed) else None


def claimed_ends(trajectory: Mapping[str, Any]) -> str:
    """The interval of an improvement in brackets, in per cent; empty where none is claimed."""
    ends = trajectory.get("improvement_ends")
    if not isinstance(ends, list) or len(ends) != 2:
        return ""
    return f" (95% interval {100 * ends[0]:.1f}% to {100 * ends[1]:.1f}%)"
