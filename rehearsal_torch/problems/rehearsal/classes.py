"""Classes: the grade of a fired tile, one of four classes without an order, after one of four heats.

    clay, moisture ~ N(0, 1) (observed),
    load ~ N(.3 clay, .7^2),
    heat in {1, 2, 3, 4}, the nearest to N(2.5 - .7 load, 1),
    P(grade = g) ~ exp(s_g):    s_0 = 0 (plain),    s_1 = 1.2 (heat - 3 - load) (burnt),
                                s_2 = 2 - 1.2 (heat - 2.5 - .8 clay - .5 load)^2 (premium),
                                s_3 = 1.2 (2 - heat + .8 moisture) (raw).

The heat may be set to one of its levels; desired is grade 2. The codes of the classes are names: grade 2 is
neither more than 1 nor less than 3. The load lowers the heat that was set and raises the one that is needed.

Source: Luce (1959) (the choice among classes); the world is ours.
"""

import torch
from torch import Tensor
from torch.special import ndtr

from rehearsal_torch.problems.rehearsal.equation_world import Equation, EquationWorld, Normal, WorldTable


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
        source="simulated tiles, rehearsal_torch/problems/rehearsal/classes.py",
    )
