"""BankExp: a bank's interest rate.

    X1, X2 ~ U(0, 1) (credit score, debt-to-income ratio; observed),
    U1 ~ Beta(2, 2) (stability of the borrower's sector),
    A2 = U1 + .5 X1 + .5 X2 - .5 + N(0, .2) (interest rate),
    Y1 = sigmoid(2 U1^1.1 - 1.5 A2 + .2 X2 + .4) + N(0, .05) (repayment),
    Y2 = .8 A2 + .5 U1 + N(0, .05) (return).

The rate may be set within [0, 1]; the desired region is Y1 >= .6 and Y2 >= .3. The sector's stability raises
both the observed rate and the repayment: it confounds them. Read as standard deviations, the noise gives the
paper's no-action and best values; as variances the best would be .57. Observed rates leave [0, 1] at times.

With `confounding` = Gamma > 1 a hidden common cause h = +-1 of strength Gamma raises the rate and adds .1 h
to Y1 (`problems.rehearsal.hidden_cause`): good prospects that no column shows go with higher rates.

Source: Du et al. (2026), Fig. 1 and App. E.2 (the loan amount A1 is left out there too); the hidden cause is
ours.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.additive_noise_world import (
    CurvedWorld,
    Normal,
    SymmetricBeta,
    Uniform,
    std,
)
from rehearsal_torch.problems.rehearsal.hidden_cause import HiddenCause
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {
    "X1": (),
    "X2": (),
    "U1": (),
    "A2": ("X1", "X2", "U1"),
    "Y1": ("X2", "U1", "A2"),
    "Y2": ("U1", "A2"),
}


class Loan(CurvedWorld):
    """BankExp.

    Args:
        reading: How N(0, s) is read: "std" or "variance".
        confounding: Gamma, the strength of a hidden common cause of A2 and Y1; 1 is none.
    """

    def __init__(
        self,
        reading: str = "std",
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        confounding: float = 1.0,
    ) -> None:
        self.reading = reading
        hidden = HiddenCause.of_strength("A2", {"Y1": 0.1}, confounding)
        task = RehearsalTask(
            RehearsalGraph.of(PARENTS),
            ("X1", "X2"),
            Box.of({"A2": (0.0, 1.0)}),
            Polytope.of({"Y1": (0.6, None), "Y2": (0.3, None)}),
        )
        rate, outcome, share = (
            Normal(std(0.2, reading)),
            Normal(std(0.05, reading)),
            Uniform(0.0, 1.0),
        )
        distributions = {
            "X1": share,
            "X2": share,
            "U1": SymmetricBeta(),
            "A2": rate,
            "Y1": outcome,
            "Y2": outcome,
        }
        super().__init__(task, distributions, size, seed, validation, hidden)

    def source(self) -> str:
        """The paper and how its noise is read."""
        return f"Du et al. (2026), App. E.2, Bank data, with noise read as {self.reading}"

    def mean(self, name: str, values: Mapping[str, Tensor]) -> Tensor | float:
        """The structural equations above."""
        if name == "A2":
            return values["U1"] + 0.5 * values["X1"] + 0.5 * values["X2"] - 0.5
        if name == "Y1":
            return torch.sigmoid(2.0 * values["U1"] ** 1.1 - 1.5 * values["A2"] + 0.2 * values["X2"] + 0.4)
        if name == "Y2":
            return 0.8 * values["A2"] + 0.5 * values["U1"]
        return 0.0
