"""Trials: experiments with a number and a state, from suggestion to result; and recommendations.

    pending     suggested, without a report of the reward; what was measured so far is fitted
    completed   run, and every node measured
    failed      run (or started) without a usable measurement; its settings are not suggested again
    stopped     ended after a part of its measurements, which are fitted; it may be suggested again
    abandoned   not run, or withdrawn; not used for fitting, and its settings may be suggested again

Suggested settings and the settings actually used are stored separately: if an operator rounds 62.4487 to 63,
the experiment is one at 63. A trial that was not suggested (such as an earlier experiment) has no suggested
settings. Nothing of a trial ever changes, its number least of all: a change makes another trial.

A recommendation is an action, its expected reward, and the best tried action beside it:

    action, expected = optimiser.recommend()
    found = optimiser.recommend()
    found.std, found.runner_up, found.chance

Source: the states are those of Ax (Bakshy et al., 2018, "AE: A domain-agnostic platform for adaptive
experimentation"), predictions with a standard deviation as in Ax and BayBE.
"""

import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, model_validator

from rehearsal_torch.data.outcome_constraint import INFEASIBLE, ConstraintChance
from rehearsal_torch.files.bounded_yaml import is_tensor
from rehearsal_torch.files.redaction import InputError, beginning
from rehearsal_torch.files.schema import LARGEST, suggested
from rehearsal_torch.spaces.box import setting_text

State = Literal["pending", "completed", "failed", "stopped", "abandoned"]
STATES: tuple[State, ...] = ("pending", "completed", "failed", "stopped", "abandoned")
# The largest number of a trial, and of experiments before the first model: a file holds no more.
MOST = 10**6
Values = Annotated[Mapping[str, float], AfterValidator(MappingProxyType), PlainSerializer(dict)]
# Numbers, and texts of actions and contexts that have them.
Settings = Mapping[str, float | str]
Set = Annotated[Settings, AfterValidator(MappingProxyType), PlainSerializer(dict)]


HALF = r"expected whole signs; got a text with half of one, such as \ud800 alone: leave it out"


class TrialError(InputError):
    """A report that cannot be recorded; the message lists every fault, and nothing has changed."""


class TrialWarning(UserWarning):
    """A report that was recorded, but should be reviewed."""


class Trial(BaseModel):
    """One experiment. A ValueError if fields are invalid or contradict each other.

    Attributes:
        id: From 1 to a million; never reused.
        asked: The suggested settings, action to value, in the actions' units, and the context for which they
            were suggested; None if it was not suggested.
        ran: The settings used, if they differ from the suggested ones or there are none; else None.
        nodes: The measurements, node to value; those of a completed trial have the reward.
        altered: Nodes that were also set by hard interventions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    id: Annotated[int, Field(ge=1, le=MOST)]
    state: State
    asked: Set | None = None
    ran: Set | None = None
    nodes: Annotated[Values, Field(validate_default=True)] = {}
    altered: Annotated[tuple[str, ...], Field(strict=False)] = ()
    reason: str = ""

    @model_validator(mode="after")
    def _coherent(self) -> "Trial":
        if self.asked is None and self.ran is None:
            raise ValueError("expected settings in `asked`, `ran` or both; got neither")
        if self.state == "pending" and self.asked is None:
            raise ValueError("expected `asked` of a pending trial")
        if self.state in ("completed", "stopped") and not self.nodes:
            raise ValueError(f"expected `nodes` of a {self.state} trial; got none")
        if not whole(self.line):
            raise ValueError(HALF)
        return self

    @property
    def settings(self) -> dict[str, float | str]:
        """The settings of the experiment: `ran` if reported, otherwise `asked`."""
        settings = self.asked if self.ran is None else self.ran
        assert settings is not None
        return dict(settings)

    @cached_property
    def line(self) -> str:
        """JSON in one line, made once: a file of trials is written anew with each of them."""
        return json.dumps(self.to_plain(), ensure_ascii=False, allow_nan=False)

    def with_changes(self, **changes: Any) -> "Trial":
        """The trial with some fields replaced; the result is validated."""
        return Trial(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Trial":
        """As `with_changes`: validated, where pydantic's own would take anything; a copy is always deep."""
        del deep
        return self.with_changes(**(update or {}))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Trial":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).model_validate, (self.to_plain(),)

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON; empty fields are left out."""
        plain = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            name: list(value) if name == "altered" else dict(value) if isinstance(value, Mapping) else value
            for name, value in plain.items()
            if value is not None and (value not in ({}, (), "") or name in ("asked", "ran"))
        }


class Suggestion(dict[str, Any]):
    """Suggested settings, action and context to value: a dictionary with the number of its trial.

    When it is passed back with a report, it identifies its trial; values changed in the meantime are the
    settings actually used.
    """

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.settings)
        self.trial, self.asked = trial.id, trial.settings


def named_numbers(
    given: Any, wanted: Iterable[str], what: str, faults: list[str], others: bool = False, gaps: Any = ()
) -> dict[str, float]:
    """The wanted values as floats, complete unless `faults` grew, apart from those named in `gaps` that are
    None or NaN; further names pass with `others`.
    """
    names = list(wanted)
    if isinstance(given, pd.Series):
        given = given.to_dict()
    if not isinstance(given, Mapping):
        example = ", ".join(f"{name!r}: ..." for name in names[:2])
        faults.append(f"{what}s: expected name to value, such as {{{example}}}; got {_shown(given)}")
        return {}
    numbers = {}
    unknown = [name for name in given if name not in names]
    for name in names:
        if name not in given:
            remedy = ", None for what was not measured beside the reward" if what == "node" else ""
            hint = _hint(name, unknown) or f": every {what} is required{remedy}"
            faults.append(f"{name}: no value for this {what}{hint}")
            continue
        value, number = given[name], finite(given[name])
        if name in gaps and (value is None or (isinstance(value, float) and math.isnan(value))):
            continue
        if number is None:
            faults.append(f"{name}: expected a finite number; got {_shown(given[name])}")
        elif abs(number) > LARGEST:
            expected = f"expected a number of at most {LARGEST:g} in size"
            faults.append(f"{name}: {expected}; got {number:g}: use another unit")
        else:
            numbers[name] = number
    if not others:
        fault = f"the task has no such {what}"
        faults += [f"{name}: {fault}{_hint(name, names) or f'; it has {names}'}" for name in unknown]
    return numbers


def finite(value: Any) -> float | None:
    """A finite number, also of NumPy and torch, as a float; None for anything else: texts, Booleans, NaN."""
    if is_tensor(value) or isinstance(value, np.ndarray | np.generic):
        value = value.item() if math.prod(value.shape) == 1 else None
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def whole(text: str) -> bool:
    """Whether every sign of a text can be written, which half of one cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def number_after(last: int) -> int:
    """The number of the next trial; a TrialError if there is none left."""
    if last >= MOST:
        raise refused("nothing is recorded", [f"trials end at number {MOST:,}: start another file"])
    return last + 1


def reason_faults(reason: Any) -> list[str]:
    """A fault of a reason that cannot be recorded."""
    if not isinstance(reason, str):
        return [f"reason: expected a string; got {beginning(repr(reason), 60)}"]
    return [] if whole(reason) else [f"reason: {HALF}"]


def unknown_names(names: Iterable[Any], known: Iterable[str], what: str) -> list[str]:
    """A fault for each unknown name."""
    choices = list(known)
    return [
        f"{name}: {what}{_hint(name, choices) or f'; there are {choices}'}"
        for name in names
        if name not in choices
    ]


def refused(what: str, faults: list[str]) -> TrialError:
    """One error with all faults."""
    count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    if len(faults) == 1:
        return TrialError(f"{what}: {faults[0]}")
    return TrialError(f"{what}: {count}\n" + "\n".join(f"- {fault}" for fault in faults))


def _hint(name: Any, choices: Iterable[Any]) -> str:
    near = suggested(str(name), map(str, choices))
    return f"; did you mean {near!r}?" if near else ""


def _shown(value: Any) -> str:
    kind = "" if isinstance(value, int | float | str | type(None)) else f"{type(value).__name__} "
    return f"{kind}{beginning(repr(value), 60)}"


WIDTH = 1.959964  # Standard deviations to either side of a 95 % interval.


class ExpectedReward:
    """A posterior mean of the expected reward, with its epistemic standard deviation."""

    predicted: float
    std: float

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval of the expected reward."""
        return self.predicted - WIDTH * self.std

    @property
    def high(self) -> float:
        """Its upper end."""
        return self.predicted + WIDTH * self.std


class Recommended(ExpectedReward, tuple[dict[str, Any], float]):
    """An action and its expected reward: a pair with further attributes.

    Attributes:
        action: The recommended settings, action to value, in the actions' units.
        predicted: Posterior mean of its expected reward, in the reward's unit.
        std: The epistemic standard deviation of that, without the noise of a single experiment.
        runner_up: The settings of the completed trial that would be recommended next; None without another.
        runner_up_predicted: The posterior mean of its expected reward.
        chance: The probability that it beats the runner-up, by a normal approximation.
        tried: Whether the recommended settings were tried themselves, up to a thousandth of their ranges.
        contradicted: The nodes whose mechanisms the experiments contradict: predictions may err.
        context: What all of this holds for, name to value.
        constraints: The probability of keeping each constraint; of settings that keep all of them as asked,
            the best is recommended, and where none is known to, the most probable.
        nearly: Of each action, the lowest and the highest value, or the texts, that do nearly as well, the
            others unmoved: the constraints are kept as asked, and it is no more likely than not that the
            expected reward falls by more than `loss`; empty if no setting is known to keep them.
        rewards: Of two rewards, each with its posterior mean and 95 % interval; `predicted` is of the first.
        loss: One standard deviation, or a hundredth of the range of expected rewards if that is more.
    """

    action: dict[str, Any]
    runner_up: dict[str, Any] | None = None
    runner_up_predicted: float | None = None
    chance: float | None = None
    tried: bool = False
    contradicted: tuple[str, ...] = ()
    context: Settings = MappingProxyType({})
    constraints: tuple[ConstraintChance, ...] = ()
    nearly: Mapping[str, tuple[float, ...] | tuple[str, ...]] = MappingProxyType({})
    loss: float | None = None
    rewards: Mapping[str, tuple[float, float, float]] = MappingProxyType({})

    def __new__(cls, action: Settings, predicted: float, std: float, **further: Any) -> Self:
        """The pair, with any of the further attributes."""
        pair = super().__new__(cls, (dict(action), predicted))
        vars(pair).update(further, action=pair[0], predicted=predicted, std=std)
        return pair

    def __getnewargs__(self) -> tuple[Any, ...]:
        """For copies."""
        return self.action, self.predicted, self.std

    @property
    def feasible(self) -> bool:
        """Whether all constraints are known to be kept with the probability that is asked for."""
        return all(each.kept for each in self.constraints)

    def __str__(self) -> str:
        """One sentence."""
        predicted, low, high = map(setting_text, (self.predicted, self.low, self.high))
        reward = f"expected reward {predicted} ({low} to {high})"
        if self.rewards:
            numbers = {name: [*map(setting_text, ends)] for name, ends in self.rewards.items()}
            reward = ", ".join(
                f"{name} = {at} ({low} to {high})" for name, (at, low, high) in numbers.items()
            )
        context = f" where {_listed(self.context)}" if self.context else ""
        sentence = f"{_listed(self.action)}{' (tried)' if self.tried else ''}{context}: {reward}"
        if self.constraints:
            sentence += (
                f"; {'' if self.feasible else INFEASIBLE + ': '}{', '.join(map(str, self.constraints))}"
            )
        if self.contradicted:
            nodes = ", ".join(self.contradicted)
            sentence += f"; the experiments contradict what the model assumes of {nodes}"
        ranges = [
            f"{name} {(' or ' if isinstance(ends[0], str) else ' to ').join(map(setting_text, ends))}"
            for name, ends in self.nearly.items()
            if len({*ends}) > 1
        ]
        if ranges and self.loss is not None:
            sentence += f"; nearly as good, up to {self.loss:.2g}, one at a time: {', '.join(ranges)}"
        if self.runner_up is None or self.runner_up_predicted is None or self.chance is None:
            return sentence
        return (
            f"{sentence}; the best {'other ' if self.tried else ''}tried action is {_listed(self.runner_up)} "
            f"(expected {setting_text(self.runner_up_predicted)}); the recommended one is better with a "
            f"probability of {_percent(self.chance)}"
        )


def _percent(chance: float) -> str:
    if 0.01 <= chance <= 0.99:
        return f"{chance:.0%}"
    return "less than 1%" if chance < 0.5 else "more than 99%"


def _listed(action: Settings) -> str:
    return ", ".join(f"{name} = {setting_text(value)}" for name, value in action.items())
