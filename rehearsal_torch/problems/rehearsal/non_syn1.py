"""Non-Syn1: nonlinear synthetic data.

    X ~ U(-1, 1),   U ~ Exp(1),   A1 = .8 X + .2 U + N(0, .5),   A2 = .5 sin U + N(0, .5),
    Y = 1.5 - (A1 - X)^2 - (A2 - ln(U + 1))^2 + .2 sin(A1 A2) + N(0, .1).

A1 and A2 may be set within [-1, 1]; the desired region is Y in [1.5, 2]. Since U is not observed before
acting, no action reaches more than about .26 on average under these equations, less than the paper's table
has (.43); an oracle that observed U would reach .45.

Source: Du et al. (2026), App. E.2.
"""

import torch

from rehearsal_torch.problems.rehearsal.equation_world import (
    Equation,
    EquationWorld,
    Exponential,
    Normal,
    Uniform,
    WorldTable,
)


class NonSyn1(EquationWorld):
    """Non-Syn1."""

    table = WorldTable(
        equations={
            "X": Equation(noise=Uniform(-1.0, 1.0)),
            "U": Equation(noise=Exponential()),
            "A1": Equation(lambda X, U: 0.8 * X + 0.2 * U, Normal(0.5)),
            "A2": Equation(lambda U: 0.5 * torch.sin(U), Normal(0.5)),
            "Y": Equation(
                lambda X, U, A1, A2: (
                    1.5 - (A1 - X).square() - (A2 - torch.log1p(U)).square() + 0.2 * torch.sin(A1 * A2)
                ),
                Normal(0.1),
            ),
        },
        context=("X",),
        bounds={"A1": (-1.0, 1.0), "A2": (-1.0, 1.0)},
        region={"Y": (1.5, 2.0)},
        together=(("A1", "A2"),),
        source="Du et al. (2026), App. E.2, nonlinear synthetic data 1, with noise read as {reading}",
    )
