"""Dose levels: continuous doses as a finite set of actions.

Each of p drugs has `count` levels: level 0 is no dose at all, the others are the quantile intervals of the
non-zero doses seen in training, each represented by its median. An action is a tuple of levels, numbered in mixed
radix with the last drug fastest (25 actions for two drugs of five levels: action = 5 * first + second).

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.1 and Table 2.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from rehearsal_torch.data.fitted import Sizes, Solved
from rehearsal_torch.data.sizes import bounded

MOST_LEVELS, MOST_ACTIONS = 1000, 2**20


class DoseLevels(Solved):
    """Levels of p drugs, learnt from doses.

    Args:
        names: The p dose columns.
        count: Levels per drug, at least 2.

    Raises:
        ValueError: if count is below 2, or there are more than 1,000 levels or a million actions.
    """

    def __init__(self, names: Sequence[str], count: int = 5) -> None:
        super().__init__()
        if count < 2:
            raise ValueError(f"expected at least 2 levels (none and some); got {count}")
        bounded("levels", count, MOST_LEVELS, 2)
        bounded("levels ** doses", count ** len(tuple(names)), MOST_ACTIONS)
        self.names, self.count = tuple(names), count
        self.register_fitted("edges", "medians")
        self.edges: Tensor
        self.medians: Tensor

    def sizes(self) -> Sizes:
        """Edges (p, count - 2) and medians (p, count)."""
        return {"edges": (len(self.names), self.count - 2), "medians": (len(self.names), self.count)}

    def faults(self) -> list[str]:
        """Sizes, edges that do not rise, and medians that do not begin at 0 or fall below it."""
        found = super().faults()
        if not found and bool((self.edges.diff(dim=-1) < 0).any()):
            found.append(f"edges: expected edges that rise along each row; got {self.edges.tolist()}")
        if not found and bool((self.medians[:, 0] != 0).any() or (self.medians < 0).any()):
            found.append(f"medians: expected doses of at least 0, the first of each row 0; got {self.medians.tolist()}")
        return found

    @property
    def actions(self) -> int:
        """How many actions there are, count ** p."""
        return int(self.count ** len(self.names))

    def solve(self, *examples: Tensor) -> None:
        """Learns edges (p, count - 2) and medians (p, count) from doses (n, p), in the doses' units.

        Raises:
            ValueError: if a dose is negative, or a drug was never given.
        """
        (doses,) = examples
        edges, medians = [], []
        for name, dose in zip(self.names, doses.to(torch.float64).T, strict=True):
            if (dose < 0).any():
                raise ValueError(f"{name}: expected doses of at least 0; got {dose.min():.4g}: clean the column")
            given = dose[dose > 0]
            if not len(given):
                raise ValueError(f"{name}: expected some non-zero doses to cut into levels; all are zero: leave the drug out")
            cuts = torch.quantile(given, torch.linspace(0, 1, self.count, dtype=given.dtype)[1:-1])
            which = torch.bucketize(given, cuts, right=True)
            inside = [given[which == level] for level in range(self.count - 1)]
            edges.append(cuts)
            medians.append(torch.stack([given.new_zeros(()), *(part.median() if len(part) else given.median() for part in inside)]))
        self.edges, self.medians = torch.stack(edges), torch.stack(medians)

    def fix(self, medians: Tensor) -> "DoseLevels":
        """Sets the levels instead of learning them: medians (p, count), rising from 0; edges half-way between."""
        if any((later <= earlier).any() for earlier, later in pairwise(medians.T)) or (medians[:, 0] != 0).any():
            raise ValueError("expected medians that rise from 0 along each row")
        self.medians = medians.to(torch.float64)
        self.edges = (self.medians[:, 1:-1] + self.medians[:, 2:]) / 2
        return self

    def digitise(self, doses: Tensor) -> Tensor:
        """Doses to action numbers, (..., p) -> (...) long."""
        number = torch.zeros(doses.shape[:-1], dtype=torch.long, device=doses.device)
        for drug in range(len(self.names)):
            dose = doses[..., drug].contiguous()
            level = torch.where(dose > 0, 1 + torch.bucketize(dose, self.edges[drug].to(dose), right=True), 0)
            number = number * self.count + level
        return number

    def levels(self, actions: Tensor) -> Tensor:
        """Action numbers to levels, (...) -> (..., p) long."""
        powers = self.count ** torch.arange(len(self.names) - 1, -1, -1, device=actions.device)
        return actions.unsqueeze(-1) // powers % self.count

    def doses(self, actions: Tensor) -> Tensor:
        """Action numbers to the levels' median doses, (...) -> (..., p), in the doses' units."""
        levels = self.levels(actions)
        return torch.stack([self.medians[drug][levels[..., drug]] for drug in range(len(self.names))], -1)

    def shown(self, actions: Tensor) -> Tensor:
        """Action numbers as a model sees them, (...) -> (..., p): level / (count - 1) - 1/2."""
        return self.levels(actions).to(torch.float64) / (self.count - 1) - 0.5
