"""Non-Syn1: nonlinear synthetic data.

    X ~ U(-1, 1),   U ~ Exp(1),   A1 = .8 X + .2 U + N(0, .5),   A2 = .5 sin U + N(0, .5),
    Y = 1.5 - (A1 - X)^2 - (A2 - ln(U + 1))^2 + .2 sin(A1 A2) + N(0, .1).

A1 and A2 may be set within [-1, 1]; the desired region is Y in [1.5, 2]. Since U is not observed before
acting, no action reaches more than about .26 on average under these equations, less than the paper's table
has (.43); an oracle that observed U would reach .45.

Source: Du et al. (2026), App. E.2.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.additive_noise_world import (
    CurvedWorld,
    Exponential,
    Normal,
    Uniform,
    std,
)
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {"X": (), "U": (), "A1": ("X", "U"), "A2": ("U",), "Y": ("X", "U", "A1", "A2")}


class NonSyn1(CurvedWorld):
    """Non-Syn1.

    Args:
        reading: How N(0, s) is read: "std" or "variance".
        candidates: Sets of variables that may be set jointly; None for {A1, A2}.
    """

    def __init__(
        self,
        reading: str = "std",
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        self.reading = reading
        box = Box.of({"A1": (-1.0, 1.0), "A2": (-1.0, 1.0)})
        sets = tuple(tuple(names) for names in candidates or (box.names,))
        task = RehearsalTask(RehearsalGraph.of(PARENTS), ("X",), box, Polytope.of({"Y": (1.5, 2.0)}), sets)
        action = Normal(std(0.5, reading))
        distributions = {
            "X": Uniform(-1.0, 1.0),
            "U": Exponential(),
            "A1": action,
            "A2": action,
            "Y": Normal(std(0.1, reading)),
        }
        super().__init__(task, distributions, size, seed, validation)

    def source(self) -> str:
        """The paper and how its noise is read."""
        return f"Du et al. (2026), App. E.2, nonlinear synthetic data 1, with noise read as {self.reading}"

    def mean(self, name: str, values: Mapping[str, Tensor]) -> Tensor | float:
        """The structural equations above."""
        if name == "A1":
            return 0.8 * values["X"] + 0.2 * values["U"]
        if name == "A2":
            return 0.5 * torch.sin(values["U"])
        if name == "Y":
            one, other = values["A1"], values["A2"]
            return (
                1.5
                - (one - values["X"]).square()
                - (other - torch.log1p(values["U"])).square()
                + 0.2 * torch.sin(one * other)
            )
        return 0.0
