"""Alterations: named variables set to values.

Given the variables that a decision may set, an alteration names some of them and fixes each to a value; every
other variable keeps its mechanism. "At most k changed actions of an episode" is an alteration of at most k
variables ``action[t]`` of the unrolled graph.

Source: Qin et al. (2023), Sec. 2; Tsirtsis and Gomez-Rodriguez (2023), Eq. 9.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Alteration:
    """Variables and the values that they are set to.

    Attributes:
        names: The k altered variables.
        values: Their values, (..., k), in each variable's own unit (an action's number for ``action[t]``).

    Raises:
        ValueError: if names and values disagree on k, or a name stands twice.
    """

    names: tuple[str, ...]
    values: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"an alteration names each variable once; got {self.names}: keep one of the repeated names")
        width = self.values.shape[-1] if self.values.ndim else None
        if width != len(self.names):
            raise ValueError(f"expected values of shape (..., {len(self.names)}), one for each of {self.names}; got {tuple(self.values.shape)}")


def setting_text(value: float, digits: int = 4) -> str:
    """What a variable is set to, as text: so many significant digits, and of large values three decimals, so that an offset hides nothing."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 10**digits else f"{value:.{digits}g}"
