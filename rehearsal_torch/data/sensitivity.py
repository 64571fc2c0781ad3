"""What would overturn a recommendation: the strength that a hidden common cause would need.

Of an action. The strength Gamma of a hidden cause h is the largest factor by which it changes the density
f(a | x, u) of the action a that is set, upwards or downwards, beyond the observed covariates x, u
(`estimators.marginal_sensitivity`). A recommendation carries

    tipping     the smallest Gamma at which P(desired | a) may be no larger than P(desired) with nothing
                altered, or, where present values are known, than with these; 1 if the interval contains
                that already
    yardstick   the strength of the strongest observed covariate that is adjusted for, in the same sense, in
                95 % of the rows

Of an action sequence. The strength of h is measured by two partial R^2: the share of the remaining variance
of h that the doses of a step explain, given the observed covariates, and the share of the remaining variance
of each next state that h explains, given covariates and doses (`estimators.omitted_variable`). Then

    tipping     the smallest common value of both at which a hidden cause leaves no improvement; 1 if none
                does
    covariate   the strongest observed covariate, with its own two partial R^2
    yardstick   the common value of both at which a hidden cause could do as much as this covariate

The bias grows with sqrt(R2_y R2_d / (1 - R2_d)), so that this yardstick is the root rho of
rho^2 / (1 - rho) = R2_y R2_d / (1 - R2_d).

If the tipping strength is below the yardstick, a hidden cause weaker than one of the observed ones suffices.
In JSON, an infinite number is null: no strength suffices, or the covariate determines the action.

Source: Cinelli and Hazlett (2020), Making sense of sensitivity: extending omitted variable bias.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Basis = Literal["interval", "certificate", "point"]
Against = Literal["no action", "the present values"]
BASES, COMPARED = get_args(Basis), get_args(Against)


@dataclass(frozen=True)
class Sensitivity:
    """The strengths for one recommendation. A ValueError if a strength is below 1 or NaN, the basis is
    unknown, or only one of yardstick and covariate is given.

    Attributes:
        tipping: The tipping strength, at least 1; infinite if no strength suffices.
        basis: Where it starts: the lower end of ``interval`` or ``certificate``, or the ``point`` estimate.
        yardstick: The strength of the strongest observed covariate; None without one.
        note: Why there is no yardstick; empty if there is one.
        against: What the action is compared with.
    """

    tipping: float
    basis: Basis
    yardstick: float | None = None
    covariate: str = ""
    note: str = ""
    against: Against = "no action"

    def __post_init__(self) -> None:
        strengths = [self.tipping, *([] if self.yardstick is None else [self.yardstick])]
        if not all(strength >= 1 for strength in strengths):
            raise ValueError(f"expected strengths of at least 1; got {strengths}")
        if self.basis not in BASES:
            raise ValueError(f"expected a basis among {list(BASES)}; got {self.basis!r}")
        if self.against not in COMPARED:
            raise ValueError(f"expected against {' or '.join(COMPARED)}; got {self.against!r}")
        if (self.yardstick is None) != (not self.covariate):
            raise ValueError(f"a yardstick names its covariate; got {self.yardstick} and {self.covariate!r}")

    def sentence(self) -> str:
        """Both strengths in words."""
        if math.isinf(self.tipping):
            text = "no hidden common cause of the action and the outcome can overturn this"
        elif self.tipping == 1:
            verb = "gives" if self.against == "no action" else "give"
            text = (
                f"even without a hidden common cause, this may be no better than {self.against}: the "
                f"interval of the estimate contains what {self.against} {verb}"
                if self.basis != "point"
                else f"even without a hidden common cause, this is no better than {self.against}"
            )
        else:
            text = (
                f"a hidden common cause would have to make this action {factor(self.tipping)} times as "
                "likely, or as unlikely, to overturn this"
            )
        if self.basis == "point":
            text += " (by the estimate alone: the method has no interval)"
        if self.yardstick is None:
            return f"{text}; {self.note}" if self.note else text
        if math.isinf(self.yardstick):
            influence = "determines the action"
        else:
            influence = f"makes the action {factor(self.yardstick)} times as likely, or as unlikely"
        return f"{text}; the strongest recorded variable, {self.covariate}, {influence}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; empty texts and a missing yardstick are left out."""
        plain: dict[str, Any] = {"tipping": self.tipping, "basis": self.basis}
        if self.yardstick is not None:
            plain |= {"yardstick": self.yardstick, "covariate": self.covariate}
        plain |= {"note": self.note} if self.note else {}
        return plain | ({"against": self.against} if self.against != "no action" else {})

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Sensitivity":
        """The inverse of `to_dict`, with null read as infinite."""
        covariate = str(plain.get("covariate", ""))
        return cls(
            _number(plain["tipping"]),
            plain["basis"],
            _number(plain["yardstick"]) if covariate else None,
            covariate,
            str(plain.get("note", "")),
            plain.get("against", "no action"),
        )


def factor(strength: float) -> str:
    """A strength in words: two decimals below 10, whole above; "unlimited" if infinite."""
    if math.isinf(strength):
        return "unlimited"
    return f"{strength:.2f}" if strength < 9.995 else f"{strength:,.0f}" if strength < 1e4 else "over 10,000"


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)


@dataclass(frozen=True)
class HiddenCause:
    """The strengths for one recommended sequence. A ValueError if a strength is out of range.

    Attributes:
        tipping: The tipping strength, in (0, 1]; 1 if no strength suffices.
        covariate: The strongest observed covariate; empty without one.
        doses: The partial R^2 of the covariate with the doses of its step.
        state: The next state variable that it explains most, in this comparison; empty without one.
        explained: The partial R^2 of the covariate with that variable.
        parts: Changed action to the tipping strength of the part that it carries.
    """

    tipping: float
    covariate: str = ""
    doses: float = 0.0
    state: str = ""
    explained: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 0 < self.tipping <= 1 or not 0 <= self.doses <= 1 or not 0 <= self.explained <= 1:
            shown = f"{self.tipping}, {self.doses} and {self.explained}"
            raise ValueError(f"expected a tipping strength in (0, 1] and partial R^2 in [0, 1]; got {shown}")

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
            text = f"no hidden common cause of {actions} and states, however strong, leaves no improvement"
        else:
            text = (
                f"a hidden common cause that explains {share(self.tipping)} of what the recorded variables "
                f"leave open, of the {actions} and of every next state, can overturn this"
            )
        if self.yardstick is None:
            return text
        return (
            f"{text}; the strongest recorded variable, {self.covariate}, which explains "
            f"{share(self.doses)} of the {actions} and {share(self.explained)} of {self.state}, is as strong "
            f"as one with {share(self.yardstick)} of both"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; without a covariate, the tipping strengths alone."""
        plain = asdict(self)
        omitted = {"parts"} if not self.parts else set[str]()
        omitted |= set() if self.covariate else set(plain) - {"tipping", "parts"}
        return {name: value for name, value in plain.items() if name not in omitted}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "HiddenCause":
        """The inverse of `to_dict`."""
        doses, explained = (float(plain.get(key, 0.0)) for key in ("doses", "explained"))
        covariate, state = (str(plain.get(key, "")) for key in ("covariate", "state"))
        parts = {str(name): float(strength) for name, strength in (plain.get("parts") or {}).items()}
        return cls(float(plain["tipping"]), covariate, doses, state, explained, parts)


def share(strength: float) -> str:
    """A partial R^2 in words, in percent."""
    return "less than 0.1%" if 0 < strength < 0.001 else f"{100 * strength:.1f}%"
