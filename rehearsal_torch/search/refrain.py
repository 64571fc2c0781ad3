"""Refraining: nothing is altered; what every other method is compared with.

Source: Du et al. (2026), Table 1 (no action).
"""

import time

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.alternatives import Alternatives
from rehearsal_torch.search.many import ManySearch


class Refrain(ManySearch[Alternatives]):
    """Alters nothing."""

    def many(self, objective: Alternatives) -> list[Decision]:
        """A decision to do nothing, for each situation."""
        began = time.perf_counter()
        count = len(objective.situations)
        each = (time.perf_counter() - began) / max(count, 1)
        return [
            Decision(None, 0.0, status="no_action", reason="nothing is altered by choice", trace={"search": "none", "altered": []}, seconds=each)
            for _ in range(count)
        ]
