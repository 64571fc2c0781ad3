"""Lin-Syn1: linear synthetic data.

    X1, X2 ~ N(0, s);   U2 = 10 X2 + N(0, s);   A1 = 10 X1 + N(0, s);
    U1 = 0.5 A1 + 1.3 U2 + N(0, s);   A2 = 2 A1 + 0.4 U2 + N(0, s);
    Y1 = -A1 + 0.9 A2 + N(0, s);      Y2 = 1.6 A1 - 0.9 A2 + N(0, s),       s = 0.1,

A1, A2 in [-3, 3]; the desired region is Y1 and Y2 in [0, 2]. Read as a variance, s = 0.1 gives the no-action
and the best probability of the paper's table; as a standard deviation the best would be 1. A1 is correlated
with X1 so closely that for most contexts few other actions were observed.

With `confounding` = Gamma > 1 a hidden common cause h = +-1 of strength Gamma raises A2 and adds .4 h to Y1
(`problems.rehearsal.hidden_cause`).

Source: Du et al. (2026), App. E.1; the hidden cause is ours.
"""

from collections.abc import Sequence

from rehearsal_torch.problems.rehearsal.equation_world import std
from rehearsal_torch.problems.rehearsal.hidden_cause import HiddenCause
from rehearsal_torch.problems.rehearsal.linear_world import LinearEquations, LinearWorld
from rehearsal_torch.problems.rehearsal.world import task_of
from rehearsal_torch.problems.world_size import SampleSize

WEIGHTS = {
    "X1": {},
    "X2": {},
    "U2": {"X2": 10.0},
    "A1": {"X1": 10.0},
    "U1": {"A1": 0.5, "U2": 1.3},
    "A2": {"A1": 2.0, "U2": 0.4},
    "Y1": {"A1": -1.0, "A2": 0.9},
    "Y2": {"A1": 1.6, "A2": -0.9},
}


class LinSyn1(LinearWorld):
    """Lin-Syn1.

    Args:
        reading: How N(0, 0.1) is read: "variance" or "std".
        candidates: Sets of variables that may be set jointly; None for {A1, A2}.
        confounding: Gamma, the strength of a hidden common cause of A2 and Y1; 1 is none.
    """

    def __init__(
        self,
        reading: str = "variance",
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        confounding: float = 1.0,
    ) -> None:
        bounds = {"A1": (-3.0, 3.0), "A2": (-3.0, 3.0)}
        region = {"Y1": (0.0, 2.0), "Y2": (0.0, 2.0)}
        task = task_of(WEIGHTS, ("X1", "X2"), bounds, region, candidates or (("A1", "A2"),))
        system = LinearEquations.of(WEIGHTS, dict.fromkeys(WEIGHTS, std(0.1, reading) ** 2))
        read = "variance" if reading == "variance" else "standard deviation"
        source = f"Du et al. (2026), App. E.1, Lin-Syn1, with 0.1 read as a {read}"
        hidden = HiddenCause.of_strength("A2", {"Y1": 0.4}, confounding)
        super().__init__(task, system, source, size, seed, validation, hidden=hidden)
