"""Which changes of an episode's actions may be recommended at all.

A search is free to find what nobody does: a dose that no unit had in such a state, the highest dose in a
single step. What is excluded here, no search considers, and a proof holds among what is left. A change is
excluded if

    support       fewer units than this had the dose, with each other one, in a comparable step
                  (`surrogates.dose_support`); 5 unless another number is given
    most_levels   a dose changes by more levels than this
    boluses       the dose is the highest of several in a step between two without it, unless it is named
                  here, or its levels have names
    forbidden     the dose may not be raised, lowered, or changed

all of it judged at the observed steps; before the first and after the last one is none. Where changes of
other steps make a single highest dose, the sequence is withdrawn (`claims.sequence_rules`). What is found
must gain `least_gain` by the model that claims, in the unit of the return, or everything stays as it was
observed.

Source: ours; Fujimoto, Meger and Precup (2019) (actions limited to those of the records).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from rehearsal_torch.data.size_limits import require

Forbidden = Literal["raise", "lower", "change"]
SUPPORT = 5


@dataclass(frozen=True)
class ChangeRules:
    """The rules; ValueError if a number is out of range or there is no such word.

    Attributes:
        support: 0 asks for none; also without effect where a model keeps no steps to compare with.
        most_levels: None for any number.
        boluses: Doses.
        forbidden: Dose to what is forbidden.
        least_gain: At least 0.
        named: Doses whose levels have names.
    """

    support: int = SUPPORT
    most_levels: int | None = None
    boluses: Sequence[str] = ()
    forbidden: Mapping[str, Forbidden] = field(default_factory=dict)
    least_gain: float = 0.0
    named: Sequence[str] = ()

    def __post_init__(self) -> None:
        # As a configuration has them: lists, and null for what is not said.
        said: dict[str, object] = {"support": SUPPORT if self.support is None else self.support}
        said |= {"boluses": tuple(self.boluses or ()), "named": tuple(self.named or ())}
        said |= {"forbidden": dict(self.forbidden or {}), "least_gain": self.least_gain or 0.0}
        for name, value in said.items():
            object.__setattr__(self, name, value)
        require(self.support >= 0, "a number of units of at least 0", support=self.support)
        few = self.most_levels is None or self.most_levels >= 1
        require(few, "at least 1 level, or null for any number", most_levels=self.most_levels)
        require(0 <= self.least_gain < torch.inf, "a gain of at least 0", least_gain=self.least_gain)
        for name, word in self.forbidden.items():
            require(word in get_args(Forbidden), "raise, lower or change", **{f"forbidden.{name}": word})

    def check(self, names: Sequence[str]) -> None:
        """ValueError if a dose is named that is none of `names`."""
        if unknown := [name for name in (*self.boluses, *self.forbidden) if name not in names]:
            known = f"expected some of the doses of the model, {list(names)}"
            raise ValueError(f"objective.rules: {known}; got {', '.join(map(str, unknown))}")

    def allowed(self, names: Sequence[str], doses: Tensor, observed: Tensor) -> Tensor:
        """Which actions the rules allow beside that of support, (H, A) bool, by the doses of all actions,
        (A, p), and the observed actions, (H,) long.
        """
        allowed = torch.ones(len(observed), len(doses), dtype=torch.bool, device=doses.device)
        for name, dose in zip(names, doses.T, strict=True):
            values, level = dose.unique(return_inverse=True)
            given = level[observed]
            rise = level - given.unsqueeze(1)
            if self.most_levels is not None:
                allowed &= rise.abs() <= self.most_levels
            if self._single(name, len(values)):
                allowed &= ~(_alone(given).unsqueeze(1) & (level == len(values) - 1) & (rise > 0))
            word = self.forbidden.get(name)
            allowed &= ~(
                (rise > 0) & (word in ("raise", "change")) | (rise < 0) & (word in ("lower", "change"))
            )
        return allowed

    def singles(self, names: Sequence[str], doses: Tensor, observed: Tensor, sequence: Tensor) -> bool:
        """Whether a sequence, (T,) long, raises a dose to its highest level in a step between two without."""
        for name, dose in zip(names, doses.T, strict=True):
            values, level = dose.unique(return_inverse=True)
            chosen = level[sequence]
            high = (chosen == len(values) - 1) & (chosen > level[observed])
            if self._single(name, len(values)) and bool((_alone(chosen) & high).any()):
                return True
        return False

    def _single(self, name: str, levels: int) -> bool:
        return levels > 2 and name not in self.boluses and name not in self.named


def _alone(levels: Tensor) -> Tensor:
    """Whether the steps beside each one have none, (T,) long -> (T,) bool."""
    none = torch.nn.functional.pad(levels == 0, (1, 1), value=True)
    return none[:-2] & none[2:]
