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

Non-Syn1: nonlinear synthetic data.

    X ~ U(-1, 1),   U ~ Exp(1),   A1 = .8 X + .2 U + N(0, .5),   A2 = .5 sin U + N(0, .5),
    Y = 1.5 - (A1 - X)^2 - (A2 - ln(U + 1))^2 + .2 sin(A1 A2) + N(0, .1).

A1 and A2 may be set within [-1, 1]; the desired region is Y in [1.5, 2]. Since U is not observed before
acting, no action reaches more than about .26 on average under these equations, less than the paper's table
has (.43); an oracle that observed U would reach .45.

Source: Du et al. (2026), App. E.2.

BankExp: a bank's interest rate.

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

Classes: the grade of a fired tile, one of four classes without an order, after one of four heats.

    clay, moisture ~ N(0, 1) (observed),
    load ~ N(.3 clay, .7^2),
    heat in {1, 2, 3, 4}, the nearest to N(2.5 - .7 load, 1),
    P(grade = g) ~ exp(s_g):    s_0 = 0 (plain),    s_1 = 1.2 (heat - 3 - load) (burnt),
                                s_2 = 2 - 1.2 (heat - 2.5 - .8 clay - .5 load)^2 (premium),
                                s_3 = 1.2 (2 - heat + .8 moisture) (raw).

The heat may be set to one of its levels; desired is grade 2. The codes of the classes are names: grade 2 is
neither more than 1 nor less than 3. The load lowers the heat that was set and raises the one that is needed.

Source: Luce (1959) (the choice among classes); the world is ours.

Visits: how many emergency visits follow, a count, after a home nurse and a number of calls.

    risk, distance ~ N(0, 1) (observed),
    habit ~ N(.4 risk, .6^2),
    P(nurse) = Phi(.8 habit + .3 distance),
    calls ~ N(2 + .5 habit, 1),
    visits ~ Poisson(lambda),    log lambda = 1 + .3 risk + .5 habit - .5 nurse (1 - distance)
                                              + .2 (calls - 2 - .8 risk)^2.

The nurse (0 or 1) and the calls (0 to 4) may be set together; desired are at most 2 visits. Habit makes help
and visits more likely. The nurse is of use where the distance is below 1, and the best number of calls grows
with the risk: too many are as bad as too few.

lambda is at most 30, and counts end at 80, where less than 1e-13 of the probability is left.

YesNo: a drug that helps some patients and harms others, and an outcome that is yes or no.

    age, marker ~ N(0, 1) (observed),
    P(frail) = Phi(.5 age - .3),
    P(drug) = Phi(.6 marker + frail - .4),
    P(well) = Phi(.3 - .4 age - frail + drug (.3 + 1.5 marker - .8 age)).

Phi is the standard normal distribution function; frail, drug and well are 0 or 1. The drug may be given or
not; desired is well = 1. Frailty makes the drug more likely and recovery less likely: among patients alike in
age and marker, those with the drug do worse than it makes them. Who should get it depends on the sign of .3 +
1.5 marker - .8 age.
"""

import torch
from torch import Tensor
from torch.special import ndtr

from rehearsal_torch.problems.rehearsal.equation_world import (
    Equation,
    EquationWorld,
    Exponential,
    Normal,
    SymmetricBeta,
    Uniform,
    WorldTable,
    yes,
)


class YesNo(EquationWorld):
    """A yes/no action and a yes/no outcome."""

    table = WorldTable(
        equations={
            "age": Equation(noise=Normal(1.0)),
            "marker": Equation(noise=Normal(1.0)),
            "frail": yes(lambda age: ndtr(0.5 * age - 0.3)),
            "drug": yes(lambda marker, frail: ndtr(0.6 * marker + frail - 0.4)),
            "well": yes(
                lambda age, marker, frail, drug: ndtr(
                    0.3 - 0.4 * age - frail + drug * (0.3 + 1.5 * marker - 0.8 * age)
                )
            ),
        },
        context=("age", "marker"),
        bounds={"drug": {"values": [0, 1]}},
        region={"well": (0.5, None)},
        source="a simulated drug, rehearsal_torch/problems/rehearsal/nonlinear_worlds.py",
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
    """A count as outcome, after a yes/no action and one with bounds."""

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
        source="simulated emergency visits, rehearsal_torch/problems/rehearsal/nonlinear_worlds.py",
    )


def _heat(load: Tensor) -> Tensor:
    below = ndtr(torch.tensor([1.5, 2.5, 3.5], dtype=torch.float64) - (2.5 - 0.7 * load).unsqueeze(-1))
    ends = torch.zeros_like(below[..., :1])
    return torch.cat([ends, below, 1 + ends], -1).diff(dim=-1)


def _grade(clay: Tensor, moisture: Tensor, load: Tensor, heat: Tensor) -> Tensor:
    scores = torch.broadcast_tensors(
        torch.zeros_like(heat),
        1.2 * (heat - 3 - load),
        2 - 1.2 * (heat - (2.5 + 0.8 * clay + 0.5 * load)).square(),
        1.2 * (2 - heat + 0.8 * moisture),
    )
    return torch.softmax(torch.stack(scores, -1), -1)


class Classes(EquationWorld):
    """An action with four levels and an outcome with four classes."""

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
        source="simulated tiles, rehearsal_torch/problems/rehearsal/nonlinear_worlds.py",
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
