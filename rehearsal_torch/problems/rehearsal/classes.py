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

from collections.abc import Mapping

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.discrete_world import Among, DiscreteWorld, Gaussian
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {
    "clay": (),
    "moisture": (),
    "load": ("clay",),
    "heat": ("load",),
    "grade": ("clay", "moisture", "load", "heat"),
}
HEATS, GRADES = (1.0, 2.0, 3.0, 4.0), (0.0, 1.0, 2.0, 3.0)


class Classes(DiscreteWorld):
    """An action with four levels and an outcome with four classes."""

    def __init__(self, size: SampleSize = SampleSize(), seed: int = 0, validation: float = 0.0) -> None:
        task = RehearsalTask(
            RehearsalGraph.of(PARENTS),
            ("clay", "moisture"),
            Box.of({"heat": {"values": list(HEATS)}}),
            Polytope.of({"grade": (1.5, 2.5)}),
        )
        super().__init__(task, size, seed, validation)

    def source(self) -> str:
        """Our own."""
        return "simulated tiles, rehearsal_torch/problems/rehearsal/classes.py"

    def law(self, name: str, values: Mapping[str, Tensor]) -> Among | Gaussian:
        """The equations above."""
        if name in ("clay", "moisture"):
            return Gaussian(torch.zeros((), dtype=torch.float64), 1.0)
        if name == "load":
            return Gaussian(0.3 * values["clay"], 0.7)
        load = values["load"]
        if name == "heat":
            between = torch.tensor([1.5, 2.5, 3.5], dtype=torch.float64)
            below = torch.special.ndtr(between - (2.5 - 0.7 * load).unsqueeze(-1))
            ends = torch.zeros_like(below[..., :1])
            return Among(
                torch.tensor(HEATS, dtype=torch.float64), torch.cat([ends, below, 1 + ends], -1).diff(dim=-1)
            )
        heat, wanted = values["heat"], 2.5 + 0.8 * values["clay"] + 0.5 * load
        scores = torch.broadcast_tensors(
            torch.zeros_like(heat),
            1.2 * (heat - 3 - load),
            2 - 1.2 * (heat - wanted).square(),
            1.2 * (2 - heat + 0.8 * values["moisture"]),
        )
        return Among(torch.tensor(GRADES, dtype=torch.float64), torch.softmax(torch.stack(scores, -1), -1))
