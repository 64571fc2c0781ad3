"""YesNo: a drug that helps some patients and harms others, and an outcome that is yes or no.

    age, marker ~ N(0, 1) (observed),
    P(frail) = Phi(.5 age - .3),
    P(drug) = Phi(.6 marker + frail - .4),
    P(well) = Phi(.3 - .4 age - frail + drug (.3 + 1.5 marker - .8 age)).

Phi is the standard normal distribution function; frail, drug and well are 0 or 1. The drug may be given or
not; desired is well = 1. Frailty makes the drug more likely and recovery less likely: among patients alike in
age and marker, those with the drug do worse than it makes them. Who should get it depends on the sign of .3 +
1.5 marker - .8 age.
"""

from torch.special import ndtr

from rehearsal_torch.problems.rehearsal.equation_world import Equation, EquationWorld, Normal, WorldTable, yes


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
        source="a simulated drug, rehearsal_torch/problems/rehearsal/yes_no.py",
    )
