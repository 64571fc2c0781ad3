"""Non-Syn2: nonlinear synthetic data in which the sequential adjustment formula is needed.

    X1, X2 ~ U(0, 1),
    A1 = X1 - X2 + .2 X1^2 - .2 X2^2 + .1 X1 X2 + N(0, .1),
    U1 = -X1 + 2 X2 + 3 A1 - .2 X1^2 + .4 X2^2 + .6 A1^2 + .1 (X1 X2 + X1 A1 + X2 A1) + N(0, .1),
    U2 = -X1 + 4 U1 - .2 X1^2 + .8 U1^2 + .1 X1 U1 + N(0, .1),
    A2 = -X1 - .5 X2 + .3 U1 - .2 X1^2 - .1 X2^2 + .06 U1^2 + .1 (X1 X2 + X1 U1 + X2 U1) + N(0, .1),
    Y1 = .5 + (.2 (X1 + X1^2) - 5 (U1 + U1^2) - (U2 + U2^2) + 5 (A2 + A2^2)) / 60 + .5 sum_{i<j} p_i p_j +
    N(0, .1),

the sum over pairs of Y1's parents X1, U1, U2, A2, outside the bracket as printed. A1 and A2 may be set within
[-1, 1]; the desired region is Y1 in [.9, 1.5]. U1 lies between the actions: it transmits A1's influence and
confounds A2's, so that no single adjustment is valid for both and the sequential formula is needed.

With `confounding` = Gamma > 1 a hidden common cause h = +-1 of strength Gamma raises A2 and adds .15 h to Y1
(`problems.rehearsal.hidden_cause`).

Source: Du et al. (2026), App. E.2 and Fig. 8; the hidden cause is ours.
"""

from torch import Tensor

from rehearsal_torch.problems.rehearsal.equation_world import (
    Equation,
    EquationWorld,
    Normal,
    Uniform,
    WorldTable,
)


def _outcome(X1: Tensor, U1: Tensor, U2: Tensor, A2: Tensor) -> Tensor:
    """f of Y1, the sum over pairs with as few products as possible."""
    pairs = X1 * (U1 + U2 + A2) + U1 * (U2 + A2) + U2 * A2
    squares = 0.2 * (X1 + X1 * X1) - 5.0 * (U1 + U1 * U1) - (U2 + U2 * U2) + 5.0 * (A2 + A2 * A2)
    return 0.5 + squares / 60 + 0.5 * pairs


class NonSyn2(EquationWorld):
    """Non-Syn2."""

    table = WorldTable(
        equations={
            "X1": Equation(noise=Uniform(0.0, 1.0)),
            "X2": Equation(noise=Uniform(0.0, 1.0)),
            "A1": Equation(
                lambda X1, X2: X1 - X2 + 0.2 * X1 * X1 - 0.2 * X2 * X2 + 0.1 * X1 * X2, Normal(0.1)
            ),
            "U1": Equation(
                lambda X1, X2, A1: (
                    2.0 * X2 - X1 + 3.0 * A1 - 0.2 * X1 * X1 + 0.4 * X2 * X2 + 0.6 * A1 * A1
                    + 0.1 * (X1 * X2 + X1 * A1 + X2 * A1)
                ),
                Normal(0.1),
            ),
            "U2": Equation(
                lambda X1, U1: 4.0 * U1 - X1 - 0.2 * X1 * X1 + 0.8 * U1 * U1 + 0.1 * X1 * U1, Normal(0.1)
            ),
            "A2": Equation(
                lambda X1, X2, U1: (
                    0.3 * U1 - X1 - 0.5 * X2 - 0.2 * X1 * X1 - 0.1 * X2 * X2 + 0.06 * U1 * U1
                    + 0.1 * (X1 * X2 + X1 * U1 + X2 * U1)
                ),
                Normal(0.1),
            ),
            "Y1": Equation(_outcome, Normal(0.1)),
        },
        context=("X1", "X2"),
        bounds={"A1": (-1.0, 1.0), "A2": (-1.0, 1.0)},
        region={"Y1": (0.9, 1.5)},
        together=(("A1", "A2"),),
        hidden_shifts=("A2", {"Y1": 0.15}),
        source="Du et al. (2026), App. E.2, nonlinear synthetic data 2, with noise read as {reading}",
    )  # fmt: skip
