"""The graph is a belief: under which candidate graphs a decision is still better than no action.

Scenario i of K belongs to a graph G_i, drawn in proportion to the posterior weights p(G | D). With w_i the
indicator of a desired outcome when a is set, and v_i when nothing is altered, the gain under graph g is

    gain_g = mean of w_i - v_i over the scenarios with G_i = g,

with the same models for both. Recorded are

    stand   sum of p(g | D) over the graphs with gain_g > 0
    worst   the smallest gain_g, its graph (index among the hypotheses), and p(g | D)
    judged  sum of p(g | D) over the graphs with at least `LEAST` scenarios; only these are compared, since
            the standard error of a gain is up to 1 / sqrt(scenarios) = .22 there and more below

`stand` and `worst` are estimates from these scenarios. A decision can be right on average over graphs and
wrong under each that is true with a sizeable probability: the probability of success, which is such an
average, does not show it.

Source: Qin et al. (2023), Eq. 6 and 7 (the posterior over graphs); the comparison graph by graph is ours.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LEAST = 20


@dataclass(frozen=True)
class GraphBelief:
    """Scenarios by graph.

    Attributes:
        graphs: The graph of each scenario, (K,), indices of the hypotheses.
        weights: p(G | D), (H,).
        unaltered: Whether each scenario is desired when nothing is altered, (K, B).
    """

    graphs: Tensor
    weights: Tensor
    unaltered: Tensor

    def judged(self, desired: Tensor) -> list[dict[str, Any]]:
        """What becomes of a decision under each graph, for B cases.

        Args:
            desired: Whether each scenario is desired after the decision, (K, B).

        Returns:
            For each case ``stand``, ``worst``, ``worst_graph``, ``worst_weight``, ``judged`` and ``graphs``,
            the number of hypotheses; nothing but ``judged`` and ``graphs`` if no graph has enough scenarios.
        """
        weights = self.weights.to(torch.float64)
        member = torch.nn.functional.one_hot(self.graphs, len(weights)).to(torch.float64)
        counts = member.sum(0)
        difference = desired.to(torch.float64) - self.unaltered.to(torch.float64)
        gains = (member.mT @ difference) / counts.clamp_min(1.0).unsqueeze(-1)
        enough = counts >= LEAST
        judged = float(weights[enough].sum())
        known: dict[str, Any] = {"judged": round(judged, 6), "graphs": len(weights)}
        if not bool(enough.any()):
            return [dict(known) for _ in range(desired.shape[1])]
        stand = weights @ ((gains > 0) & enough.unsqueeze(-1)).to(torch.float64)
        worst, which = gains.masked_fill(~enough.unsqueeze(-1), torch.inf).min(0)
        rows = zip(stand.tolist(), worst.tolist(), which.tolist(), strict=True)
        return [
            {
                "stand": round(share, 6),
                "worst": round(gain, 6),
                "worst_graph": graph,
                "worst_weight": round(float(weights[graph]), 6),
                **known,
            }
            for share, gain, graph in rows
        ]
