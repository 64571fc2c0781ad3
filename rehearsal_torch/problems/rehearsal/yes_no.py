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

from collections.abc import Mapping

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.discrete_world import Among, DiscreteWorld, Gaussian, yes
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {
    "age": (),
    "marker": (),
    "frail": ("age",),
    "drug": ("marker", "frail"),
    "well": ("age", "marker", "frail", "drug"),
}


class YesNo(DiscreteWorld):
    """A yes/no action and a yes/no outcome."""

    def __init__(self, size: SampleSize = SampleSize(), seed: int = 0, validation: float = 0.0) -> None:
        task = RehearsalTask(
            RehearsalGraph.of(PARENTS),
            ("age", "marker"),
            Box.of({"drug": {"values": [0, 1]}}),
            Polytope.of({"well": (0.5, None)}),
        )
        super().__init__(task, size, seed, validation)

    def source(self) -> str:
        """Our own."""
        return "a simulated drug, rehearsal_torch/problems/rehearsal/yes_no.py"

    def law(self, name: str, values: Mapping[str, Tensor]) -> Among | Gaussian:
        """The equations above."""
        if name in ("age", "marker"):
            return Gaussian(torch.zeros((), dtype=torch.float64), 1.0)
        if name == "frail":
            return yes(torch.special.ndtr(0.5 * values["age"] - 0.3))
        if name == "drug":
            return yes(torch.special.ndtr(0.6 * values["marker"] + values["frail"] - 0.4))
        effect = 0.3 + 1.5 * values["marker"] - 0.8 * values["age"]
        latent = 0.3 - 0.4 * values["age"] - values["frail"] + values["drug"] * effect
        return yes(torch.special.ndtr(latent))
