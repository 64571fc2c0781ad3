"""Outcome constraints of experiments: limits that measured nodes must keep with a probability.

    impurity <= 0.3 with 90 %            in at least 90 % of experiments at the setting
    pressure <= 8                        in at least 95 %
    65 <= level <= 80 and 2*a - b <= 1   all of these at once

The sides are linear in the nodes (`spaces.inequalities`). The probability is that of one experiment, over its
noise and what is not known of the mechanisms. It has a lower bound, by what is not known of them, with 95 %
confidence; a setting is feasible if this is at least the probability that is asked for, as by a tolerance
limit. By the probability itself, in 14 reactors by seed (0 to 13, `reproduction.campaigns`),
two settings were infeasible after 12 experiments, and two after 28; with the bound none was, at .07 to .10 of
the range of rewards.

Source: Gelbart et al. (2014), Sec. 3 (probabilistic constraints); Wilks (1941) (tolerance limits).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rehearsal_torch.spaces.inequalities import Inequalities, inequalities

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT, LEAST, MOST = 0.95, 0.5, 0.99
# A larger probability than `MOST` is decided by tails of the noise, which tens of experiments do not show.
INFEASIBLE = (
    "no setting is known to keep the constraints as asked; the most probable one is the one to keep, and "
    "experiments look for one first"
)
_WITH = re.compile(r"(?P<limits>.*\S)\s+with\s+(?P<number>[\d.]+)\s*(?P<percent>%?)\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class OutcomeConstraint:
    """Inequalities of nodes, and the probability with which an experiment must keep all of them."""

    text: str
    limits: Inequalities
    probability: float = DEFAULT

    @classmethod
    def of(cls, written: str) -> Self:
        """Reads a text; a ValueError for a probability outside [.5, .99], or what is no inequality."""
        match, probability = _WITH.match(written), DEFAULT
        if match is not None:
            try:
                probability = float(match["number"]) / (100 if match["percent"] else 1)
            except ValueError:
                probability = float("nan")
            if not LEAST <= probability <= MOST:
                got = written[match.start("number") :].strip()
                raise ValueError(f"expected a probability from 50 % to 99 %, as 90 % or 0.9; got {got}")
        text = written.strip() if match is None else match["limits"].strip()
        return cls(text, inequalities(text), probability)

    def __str__(self) -> str:
        """The text that `of` reads."""
        return f"{self.text} with {100 * self.probability:g} %"

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that it limits."""
        return self.limits.names

    def excess(self, values: "Tensor") -> "Tensor":
        """How far each face is exceeded, negative where it is kept, (..., m) -> (..., faces)."""
        normals = values.new_tensor(self.limits.normals)
        return values @ normals.mT - values.new_tensor(self.limits.offsets)


@dataclass(frozen=True)
class ConstraintChance:
    """The probability that an experiment keeps a constraint, and its lower bound with 95 % confidence."""

    constraint: str
    asked: float
    probability: float
    low: float

    @property
    def kept(self) -> bool:
        """Whether the lower bound is at least what is asked for."""
        return self.low >= self.asked

    def __str__(self) -> str:
        """In words."""
        low = f"at least {math.floor(1000 * min(self.low, MOST)) / 10:g} % with 95 % confidence"
        probability = f"{100 * min(self.probability, 0.999):.1f} %"
        return f"{self.constraint} with {probability} ({low}; asked {100 * self.asked:g} %)"


def constrained_names(constraints: Sequence[OutcomeConstraint]) -> tuple[str, ...]:
    """The nodes that some constraint limits, each once."""
    return tuple(dict.fromkeys(name for constraint in constraints for name in constraint.names))
