"""Market: profit and customers that must not fall, under drift or not.

Raw cost and own price may be set within [-3, 3], each by itself or both. Wanted are profit >= -.3, customers >= -.3, and a sum of
at least .05. With drift, three coefficients move by sines of the round.

Source: Du et al. (2024), Sec. 5 and released code; the equations: see `linear_market`.
"""

from collections.abc import Sequence

import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.datasets.linear_law import Drift
from rehearsal_torch.datasets.linear_market import CONTEXT, market_graph, market_law
from rehearsal_torch.datasets.linear_world import LinearWorld
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

DRIFT = (
    Drift("self_pricing", "custom_number", -0.05, 80.0, 10.0),
    Drift("raw_cost", "self_pricing", 0.5, 12.0),
    Drift("raw_cost", "custom_number", 0.1, 80.0, 10.0),
)


class Market(LinearWorld):
    """The company in a market.

    Args:
        order: Which released code's order of the variances: "neurips24" or "icml".
        drift: Whether coefficients move from round to round.
        candidates: Sets of variables that may be set together; None for each by itself and both.
        rows: N, observations in all; with drift, the rounds 1 ... N.
        contexts: How many situations there are; with drift, all at round N + 1.
        seed: Decides observations and contexts.
        validation: Share of the N rows that is kept from `observations`.
    """

    def __init__(
        self,
        order: str = "neurips24",
        drift: bool = False,
        candidates: Sequence[Sequence[str]] | None = None,
        rows: int = 1000,
        contexts: int = 20,
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        self.order, self.drift = order, drift
        box = Box.of({"raw_cost": (-3.0, 3.0), "self_pricing": (-3.0, 3.0)})
        sets = tuple(tuple(names) for names in candidates or (("raw_cost",), ("self_pricing",), box.names))
        normals = torch.tensor([[-1.0, 0.0], [0.0, -1.0], [-1.0, -1.0]], dtype=torch.float64)
        region = Polytope(("total_profit", "custom_number"), normals, torch.tensor([0.3, 0.3, -0.05], dtype=torch.float64))
        task = RehearsalTask(market_graph(), CONTEXT, box, region, sets)
        super().__init__(task, market_law(order, (0.01, 0.04), DRIFT if drift else ()), rows, contexts, seed, validation)

    def source(self) -> str:
        """The paper, the order and whether it drifts."""
        return f"Du et al. (2024), Market, variances in the order of the {self.order} code, {'with' if self.drift else 'without'} drift"
