"""What would overturn a recommended action sequence: the strength that a hidden common cause would need.

The strength of a hidden common cause h is measured by two partial R^2: the share of the remaining variance of
h that the doses of a step explain, given the observed covariates, and the share of the remaining variance of
each next state that h explains, given covariates and doses (`estimators.omitted_variable`). A recommendation
carries

    tipping     the smallest common value of both at which a hidden cause leaves no improvement; 1 if none
                does
    covariate   the strongest observed covariate, with its own two partial R^2
    yardstick   the common value of both at which a hidden cause could do as much as this covariate

If the tipping strength is below the yardstick, a hidden cause weaker than one of the observed covariates
suffices. The bias grows with sqrt(R2_y R2_d / (1 - R2_d)), so that the yardstick is the root rho of
rho^2 / (1 - rho) = R2_y R2_d / (1 - R2_d).

In JSON, numbers without a value are left out.

Source: Cinelli and Hazlett (2020), Making sense of sensitivity: extending omitted variable bias.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HiddenCause:
    """The strengths for one recommended sequence.

    Attributes:
        tipping: The tipping strength, in (0, 1]; 1 if no strength suffices.
        covariate: The strongest observed covariate; empty without one.
        doses: The partial R^2 of the covariate with the doses of its step.
        state: The next state variable that it explains most, in this comparison; empty without one.
        explained: The partial R^2 of the covariate with that variable.

    Raises:
        ValueError: if a strength is out of range.
    """

    tipping: float
    covariate: str = ""
    doses: float = 0.0
    state: str = ""
    explained: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.tipping <= 1 or not 0 <= self.doses <= 1 or not 0 <= self.explained <= 1:
            raise ValueError(
                "expected a tipping strength in (0, 1] and partial R^2 in [0, 1]; got "
                f"{self.tipping}, {self.doses} and {self.explained}"
            )

    @property
    def yardstick(self) -> float | None:
        """The common strength that matches the covariate, in [0, 1]; None without one."""
        if not self.covariate:
            return None
        if self.doses == 1:
            return 1.0 if self.explained else 0.0
        square = self.explained * self.doses / (1 - self.doses)
        return (math.sqrt(square * square + 4 * square) - square) / 2

    def sentence(self, actions: str = "doses") -> str:
        """Both strengths in words."""
        if self.tipping == 1:
            first = f"no hidden common cause of {actions} and states, however strong, leaves no improvement"
        else:
            first = (
                f"a hidden common cause that explains {share(self.tipping)} of what the observed covariates "
                f"leave open, of the {actions} and of every next state, can overturn this"
            )
        if self.yardstick is None:
            return first
        return (
            f"{first}; the strongest observed covariate, {self.covariate}, which explains "
            f"{share(self.doses)} of the {actions} and {share(self.explained)} of {self.state}, is as strong "
            f"as one with {share(self.yardstick)} of both"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; without a covariate, the tipping strength alone."""
        found: dict[str, Any] = {"tipping": self.tipping}
        if self.covariate:
            found |= {
                "covariate": self.covariate,
                "doses": self.doses,
                "state": self.state,
                "explained": self.explained,
            }
        return found

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "HiddenCause":
        """The inverse of `to_dict`.

        Raises:
            KeyError: if the tipping strength is missing.
            ValueError: see the class.
        """
        return cls(
            float(plain["tipping"]),
            str(plain.get("covariate", "")),
            float(plain.get("doses", 0.0)),
            str(plain.get("state", "")),
            float(plain.get("explained", 0.0)),
        )


def share(strength: float) -> str:
    """A partial R^2 in words, in percent."""
    return "less than 0.1%" if 0 < strength < 0.001 else f"{100 * strength:.1f}%"
