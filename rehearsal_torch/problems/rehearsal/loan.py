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

import torch

from rehearsal_torch.problems.rehearsal.equation_world import (
    Equation,
    EquationWorld,
    Normal,
    SymmetricBeta,
    Uniform,
    WorldTable,
)


class Loan(EquationWorld):
    """BankExp."""

    table = WorldTable(
        equations={
            "X1": Equation(noise=Uniform(0.0, 1.0)),
            "X2": Equation(noise=Uniform(0.0, 1.0)),
            "U1": Equation(noise=SymmetricBeta()),
            "A2": Equation(lambda X1, X2, U1: U1 + 0.5 * X1 + 0.5 * X2 - 0.5, Normal(0.2)),
            "Y1": Equation(
                lambda X2, U1, A2: torch.sigmoid(2.0 * U1**1.1 - 1.5 * A2 + 0.2 * X2 + 0.4), Normal(0.05)
            ),
            "Y2": Equation(lambda U1, A2: 0.8 * A2 + 0.5 * U1, Normal(0.05)),
        },
        context=("X1", "X2"),
        bounds={"A2": (0.0, 1.0)},
        region={"Y1": (0.6, None), "Y2": (0.3, None)},
        hidden_shifts=("A2", {"Y1": 0.1}),
        source="Du et al. (2026), App. E.2, Bank data, with noise read as {reading}",
    )
