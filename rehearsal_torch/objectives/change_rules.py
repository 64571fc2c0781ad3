"""Which changes of an episode's actions may be recommended at all.

Without rules a search may find a dose that no unit had in such a state, or the highest dose in a single step.
Searches do not consider excluded changes, and proofs hold among the others. A change is excluded if

    support       fewer units than this had the dose, with each other one, in a comparable step
                  (`surrogates.dose_support`); 5 unless another number is given
    most_levels   a dose changes by more levels than this
    boluses       the dose is the highest of several in a step between two without it, unless it is named
                  here, or its levels have names
    forbidden     the dose may not be raised, lowered, or changed

all at the observed steps; before the first and after the last one there is no dose. Where changes of other
steps make a single highest dose, the sequence is withdrawn (`claims.sequence_rules`). A sequence must gain
`least_gain` by the model that claims, in the unit of the return, or the observed one is kept.

Source: Fujimoto, Meger and Precup (2019) (actions limited to those of the records).
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
    """The rules; a ValueError if a number is out of range or a word unknown.

    Attributes:
        support: 0 asks for none; also without effect where a model keeps no steps to compare with.
        most_levels: None for any number.
        boluses: Doses.
        forbidden: Dose to the forbidden kind of change.
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
        # A configuration has lists, and null for defaults.
        values: dict[str, object] = {"support": SUPPORT if self.support is None else self.support}
        values |= {"boluses": tuple(self.boluses or ()), "named": tuple(self.named or ())}
        values |= {"forbidden": dict(self.forbidden or {}), "least_gain": self.least_gain or 0.0}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        require(self.support >= 0, "a number of units of at least 0", support=self.support)
        valid = self.most_levels is None or self.most_levels >= 1
        require(valid, "at least 1 level, or null for any number", most_levels=self.most_levels)
        require(0 <= self.least_gain < torch.inf, "a gain of at least 0", least_gain=self.least_gain)
        for name, word in self.forbidden.items():
            require(word in get_args(Forbidden), "raise, lower or change", **{f"forbidden.{name}": word})

    def check(self, names: Sequence[str]) -> None:
        """ValueError if a dose is named that is none of `names`."""
        if unknown := [name for name in (*self.boluses, *self.forbidden) if name not in names]:
            expected = f"expected some of the doses of the model, {list(names)}"
            raise ValueError(f"objective.rules: {expected}; got {', '.join(map(str, unknown))}")

    def allowed(self, names: Sequence[str], doses: Tensor, observed: Tensor) -> Tensor:
        """Actions allowed by all rules but support, (H, A) bool: doses (A, p), observed actions (H,)."""
        allowed = torch.ones(len(observed), len(doses), dtype=torch.bool, device=doses.device)
        for name, dose in zip(names, doses.T, strict=True):
            values, level = dose.unique(return_inverse=True)
            start = level[observed]
            rise = level - start.unsqueeze(1)
            if self.most_levels is not None:
                allowed &= rise.abs() <= self.most_levels
            if self._ruled(name, len(values)):
                allowed &= ~(_isolated(start).unsqueeze(1) & (level == len(values) - 1) & (rise > 0))
            rule = self.forbidden.get(name)
            allowed &= ~((rise > 0) & (rule in ("raise", "change")))
            allowed &= ~((rise < 0) & (rule in ("lower", "change")))
        return allowed

    def singles(self, names: Sequence[str], doses: Tensor, observed: Tensor, sequence: Tensor) -> bool:
        """Whether a sequence, (T,) long, raises a dose to its highest level in a step between two without."""
        for name, dose in zip(names, doses.T, strict=True):
            values, level = dose.unique(return_inverse=True)
            chosen = level[sequence]
            high = (chosen == len(values) - 1) & (chosen > level[observed])
            if self._ruled(name, len(values)) and bool((_isolated(chosen) & high).any()):
                return True
        return False

    def _ruled(self, name: str, levels: int) -> bool:
        return levels > 2 and name not in self.boluses and name not in self.named


def _isolated(levels: Tensor) -> Tensor:
    """Whether the steps beside each one have none, (T,) long -> (T,) bool."""
    none = torch.nn.functional.pad(levels == 0, (1, 1), value=True)
    return none[:-2] & none[2:]
