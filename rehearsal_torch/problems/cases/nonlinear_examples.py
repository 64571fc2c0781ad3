"""Worlds of nonlinear equations: each is a table of its equations, with what is known of it.

Non-Syn1, Non-Syn2 and BankExp are the nonlinear worlds of Du et al. (2026); YesNo, Visits and Classes, whose
outcome is yes or no, a count or a class, are ours; `ndtr` is the standard normal distribution function. With
`confounding` = Gamma > 1 a hidden common cause h = +-1 of strength Gamma raises an action and adds a multiple
of h to an outcome (`problems.cases.hidden_cause`; ours).

Source: Du et al. (2026), Fig. 1, Fig. 8 and App. E.2; Luce (1959) (the choice among classes).
"""

import torch
from torch import Tensor
from torch.special import ndtr

from rehearsal_torch.problems.cases.equation_world import (
    Equation,
    EquationWorld,
    Exponential,
    Normal,
    SymmetricBeta,
    Uniform,
    WorldTable,
    yes,
)


def _well(age: Tensor, marker: Tensor, frail: Tensor, drug: Tensor) -> Tensor:
    return ndtr(0.3 - 0.4 * age - frail + drug * (0.3 + 1.5 * marker - 0.8 * age))


class YesNo(EquationWorld):
    """A drug that helps some patients and harms others, and an outcome that is yes or no; desired is yes.

    Frailty makes the drug more likely and recovery less likely: among patients alike in age and marker, those
    with the drug do worse than it makes them. Who should get it depends on the sign of .3 + 1.5 marker - .8
    age.
    """

    table = WorldTable(
        equations={
            "age": Equation(noise=Normal(1.0)),
            "marker": Equation(noise=Normal(1.0)),
            "frail": yes(lambda age: ndtr(0.5 * age - 0.3)),
            "drug": yes(lambda marker, frail: ndtr(0.6 * marker + frail - 0.4)),
            "well": yes(_well),
        },
        context=("age", "marker"),
        bounds={"drug": {"values": [0, 1]}},
        region={"well": (0.5, None)},
        source="a simulated drug, rehearsal_torch/problems/cases/nonlinear_examples.py",
    )


MOST_OFTEN, MOST = 30.0, 80


def poisson(rate: Tensor) -> Tensor:
    """The chances of the counts 0 ... 80 of Poisson variables with rates (...), (..., 81)."""
    rate = rate.clamp_max(MOST_OFTEN).unsqueeze(-1)
    counts = torch.arange(MOST + 1, dtype=torch.float64)
    return (counts * rate.log() - rate - torch.lgamma(counts + 1)).exp()


def _visits(risk: Tensor, distance: Tensor, habit: Tensor, nurse: Tensor, calls: Tensor) -> Tensor:
    helped = 0.5 * nurse * (1 - distance)
    return poisson((1 + 0.3 * risk + 0.5 * habit - helped + 0.2 * (calls - 2 - 0.8 * risk).square()).exp())


class Visits(EquationWorld):
    """The number of emergency visits, a Poisson count, after a home nurse (yes/no) and a number of calls;
    desired are at most 2.

    Habit makes help and visits more likely. The nurse is of use where the distance is below 1, and the best
    number of calls grows with the risk: too many are as bad as too few. The rate is at most 30, and counts
    end at 80, where less than 1e-13 of the probability is left.
    """

    table = WorldTable(
        equations={
            "risk": Equation(noise=Normal(1.0)),
            "distance": Equation(noise=Normal(1.0)),
            "habit": Equation(lambda risk: 0.4 * risk, Normal(0.6)),
            "nurse": yes(lambda habit, distance: ndtr(0.8 * habit + 0.3 * distance)),
            "calls": Equation(lambda habit: 2 + 0.5 * habit, Normal(1.0)),
            "visits": Equation(_visits, levels=tuple(map(float, range(MOST + 1)))),
        },
        context=("risk", "distance"),
        bounds={"nurse": {"values": [0, 1]}, "calls": [0.0, 4.0]},
        region={"visits": (None, 2.0)},
        together=(("nurse", "calls"),),
        source="simulated emergency visits, rehearsal_torch/problems/cases/nonlinear_examples.py",
    )


def _heat(load: Tensor) -> Tensor:
    cumulative = ndtr(torch.tensor([1.5, 2.5, 3.5], dtype=torch.float64) - (2.5 - 0.7 * load).unsqueeze(-1))
    ends = torch.zeros_like(cumulative[..., :1])
    return torch.cat([ends, cumulative, 1 + ends], -1).diff(dim=-1)


def _grade(clay: Tensor, moisture: Tensor, load: Tensor, heat: Tensor) -> Tensor:
    scores = torch.broadcast_tensors(
        torch.zeros_like(heat),
        1.2 * (heat - 3 - load),
        2 - 1.2 * (heat - (2.5 + 0.8 * clay + 0.5 * load)).square(),
        1.2 * (2 - heat + 0.8 * moisture),
    )
    return torch.softmax(torch.stack(scores, -1), -1)


class Classes(EquationWorld):
    """The grade of a fired tile, one of four classes without an order, after one of four heats.

    Grades are 0 (plain), 1 (burnt), 2 (premium, which is desired) and 3 (raw), with P(grade = g) ~ exp(s_g).
    The heat is the nearest level to N(2.5 - .7 load, 1): the load lowers the heat that was set and raises the
    one that is needed.
    """

    table = WorldTable(
        equations={
            "clay": Equation(noise=Normal(1.0)),
            "moisture": Equation(noise=Normal(1.0)),
            "load": Equation(lambda clay: 0.3 * clay, Normal(0.7)),
            "heat": Equation(_heat, levels=(1.0, 2.0, 3.0, 4.0)),
            "grade": Equation(_grade, levels=(0.0, 1.0, 2.0, 3.0)),
        },
        context=("clay", "moisture"),
        bounds={"heat": {"values": [1.0, 2.0, 3.0, 4.0]}},
        region={"grade": (1.5, 2.5)},
        source="simulated tiles, rehearsal_torch/problems/cases/nonlinear_examples.py",
    )


def _repaid(X2: Tensor, U1: Tensor, A2: Tensor) -> Tensor:
    return torch.sigmoid(2.0 * U1**1.1 - 1.5 * A2 + 0.2 * X2 + 0.4)


class Loan(EquationWorld):
    """BankExp: a bank's interest rate A2, given credit score X1 and debt-to-income ratio X2; outcomes are
    repayment Y1 and return Y2.

    The stability U1 of the borrower's sector raises both the observed rate and the repayment: it confounds
    them. Read as standard deviations, the noise gives the paper's no-action and best values; as variances the
    best would be .57. Observed rates leave [0, 1] at times. The hidden cause makes good prospects, which no
    column shows, go with higher rates. The loan amount A1 is left out in the paper too.
    """

    table = WorldTable(
        equations={
            "X1": Equation(noise=Uniform(0.0, 1.0)),
            "X2": Equation(noise=Uniform(0.0, 1.0)),
            "U1": Equation(noise=SymmetricBeta()),
            "A2": Equation(lambda X1, X2, U1: U1 + 0.5 * X1 + 0.5 * X2 - 0.5, Normal(0.2)),
            "Y1": Equation(_repaid, Normal(0.05)),
            "Y2": Equation(lambda U1, A2: 0.8 * A2 + 0.5 * U1, Normal(0.05)),
        },
        context=("X1", "X2"),
        bounds={"A2": (0.0, 1.0)},
        region={"Y1": (0.6, None), "Y2": (0.3, None)},
        hidden_shifts=("A2", {"Y1": 0.1}),
        source="Du et al. (2026), App. E.2, Bank data, with noise read as {reading}",
    )


def _near(X: Tensor, U: Tensor, A1: Tensor, A2: Tensor) -> Tensor:
    return 1.5 - (A1 - X).square() - (A2 - torch.log1p(U)).square() + 0.2 * torch.sin(A1 * A2)


class NonSyn1(EquationWorld):
    """Non-Syn1: nonlinear synthetic data.

    Since U is not observed before acting, no action reaches more than about .26 on average under these
    equations, less than the paper's table has (.43); an oracle that observed U would reach .45.
    """

    table = WorldTable(
        equations={
            "X": Equation(noise=Uniform(-1.0, 1.0)),
            "U": Equation(noise=Exponential()),
            "A1": Equation(lambda X, U: 0.8 * X + 0.2 * U, Normal(0.5)),
            "A2": Equation(lambda U: 0.5 * torch.sin(U), Normal(0.5)),
            "Y": Equation(_near, Normal(0.1)),
        },
        context=("X",),
        bounds={"A1": (-1.0, 1.0), "A2": (-1.0, 1.0)},
        region={"Y": (1.5, 2.0)},
        together=(("A1", "A2"),),
        source="Du et al. (2026), App. E.2, nonlinear synthetic data 1, with noise read as {reading}",
    )


def _outcome(X1: Tensor, U1: Tensor, U2: Tensor, A2: Tensor) -> Tensor:
    """f of Y1: a bracket / 60, and .5 sum_{i<j} p_i p_j over its parents, outside the bracket as printed."""
    pairs = X1 * (U1 + U2 + A2) + U1 * (U2 + A2) + U2 * A2
    squares = 0.2 * (X1 + X1 * X1) - 5.0 * (U1 + U1 * U1) - (U2 + U2 * U2) + 5.0 * (A2 + A2 * A2)
    return 0.5 + squares / 60 + 0.5 * pairs


class NonSyn2(EquationWorld):
    """Non-Syn2: nonlinear synthetic data in which the sequential adjustment formula is needed: U1 transmits
    the influence of A1 and confounds that of A2, so that no single adjustment is valid for both.
    """

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
