"""Manage: profit and customers inside a circle.

Raw cost and own price may be set within [-6, 6], both together unless said otherwise; profit and customers are to come to lie within
1 of (1.2, 1.5). Methods are told a polygon with corners on that circle, since they take convex polytopes; what they reach is scored
on the circle itself. Its centre would need an own price of 6.33, beyond the box.

Source: Qin et al. (2025b), Sec. 5; the equations: see `linear_market`.
"""

from collections.abc import Sequence

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.datasets.linear_market import CONTEXT, market_graph, market_law
from rehearsal_torch.datasets.linear_world import LinearWorld
from rehearsal_torch.datasets.normal_region import Disc
from rehearsal_torch.spaces.box import Box

WANTED = Disc(("total_profit", "custom_number"), (1.2, 1.5), 1.0)


class Manage(LinearWorld):
    """The company that wants to stay inside a circle.

    Args:
        order: Which released code's order of the variances: "icml" or "neurips24".
        faces: Of the polygon that methods are told.
        candidates: Sets of variables that may be set together; None for both together.
        rows: N, observations in all.
        contexts: How many situations there are.
        seed: Decides observations and contexts.
        validation: Share of the N rows that is kept from `observations`.
    """

    def __init__(
        self,
        order: str = "icml",
        faces: int = 16,
        candidates: Sequence[Sequence[str]] | None = None,
        rows: int = 1000,
        contexts: int = 20,
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        self.order = order
        box = Box.of({"raw_cost": (-6.0, 6.0), "self_pricing": (-6.0, 6.0)})
        sets = tuple(tuple(names) for names in candidates or (box.names,))
        task = RehearsalTask(market_graph(), CONTEXT, box, WANTED.polygon(faces), sets)
        super().__init__(task, market_law(order, (0.04, 0.12)), rows, contexts, seed, validation, WANTED)

    def source(self) -> str:
        """The paper and the order."""
        return f"Qin et al. (2025b), Manage, variances in the order of the {self.order} code; desired: within {WANTED.radius} of {WANTED.centre}"
