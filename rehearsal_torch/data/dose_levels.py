"""Dose levels: the discretisation of continuous doses into a finite set of actions.

Each of p drugs has `count` levels: level 0 is no dose, the others are the quantile intervals of the non-zero
training doses, each represented by its median. An action is a tuple of levels, numbered in mixed radix with
the last drug fastest (25 actions for two drugs of five levels: action = 5 * first + second).

If a drug was given in at most `count` - 1 different doses (integer codes, tablets), each dose is a level of
its own. If quantiles would leave a level empty because doses are repeated, the distinct doses are divided
into contiguous groups with about equal numbers of rows, and `notes` names the doses that share a level. A
level is *selectable* if its dose belongs to it; an empty level has no such dose.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.1 and Table 2.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.dose_cuts import DoseCuts, between, padded
from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.trainable_part import Sizes, Solved

MAX_LEVELS, MAX_ACTIONS = 1000, 2**20


class DoseLevels(Solved):
    """`count` dose levels of each of p drugs; `notes` tell, for the data card, of levels that repeated doses
    determined. A ValueError outside 2 to 1,000 levels, or above a million actions.
    """

    def __init__(self, names: Sequence[str], count: int = 5) -> None:
        super().__init__()
        if count < 2:
            raise ValueError(f"expected at least 2 levels (none and some); got {count}")
        bounded("levels", count, MAX_LEVELS, 2)
        bounded("levels ** doses", count ** len(tuple(names)), MAX_ACTIONS)
        self.names, self.count = tuple(names), count
        self.notes: dict[str, str] = {}
        self.register_fitted("edges", "medians")

    def sizes(self) -> Sizes:
        """Edges (p, count - 2) and medians (p, count)."""
        return {"edges": (len(self.names), self.count - 2), "medians": (len(self.names), self.count)}

    def faults(self) -> list[str]:
        """Inconsistent sizes, decreasing edges, and medians that do not start at 0 or are negative."""
        faults = super().faults()
        if not faults and bool((self.edges.diff(dim=-1) < 0).any()):
            faults.append(f"edges: expected edges that rise along each row; got {self.edges.tolist()}")
        if not faults and bool((self.medians[:, 0] != 0).any() or (self.medians < 0).any()):
            expected = "expected doses of at least 0, the first of each row 0"
            faults.append(f"medians: {expected}; got {self.medians.tolist()}")
        return faults

    @property
    def actions(self) -> int:
        """The number of actions, count ** p."""
        return int(self.count ** len(self.names))

    def solve(self, *examples: Tensor) -> None:
        """Fits levels to doses (n, p). A ValueError if one is negative, or a drug was never given."""
        (doses,) = examples
        columns = doses.detach().cpu().to(torch.float64).T.numpy()
        cuts = {
            name: DoseCuts.of(name, dose, self.count) for name, dose in zip(self.names, columns, strict=True)
        }
        self.edges, self.medians = (
            torch.from_numpy(np.stack(arrays)).to(doses.device)
            for arrays in zip(*((cut.edges, cut.medians) for cut in cuts.values()), strict=True)
        )
        self.notes = {name: cut.note for name, cut in cuts.items() if cut.note}

    def fix(self, medians: Tensor | Sequence[Sequence[float]]) -> "DoseLevels":
        """Sets rising doses from 0, (p, count) or p shorter rows, whose missing levels stay empty."""
        rows = [torch.as_tensor(row, dtype=torch.float64) for row in medians]
        if len(rows) != len(self.names) or not all(
            row.ndim == 1 and 2 <= len(row) <= self.count and row.isfinite().all() for row in rows
        ):
            words = f"one for each of {', '.join(self.names)}; got {[row.tolist() for row in rows]}"
            raise ValueError(f"expected {len(self.names)} rows of 2 to {self.count} finite doses, {words}")
        if any(bool((row.diff() <= 0).any()) or float(row[0]) != 0 for row in rows):
            doses = [row.tolist() for row in rows]
            raise ValueError(f"expected medians that rise from 0 along each row; got {doses}")
        self.medians = torch.stack([torch.cat([row, row[-1:].expand(self.count - len(row))]) for row in rows])
        edges = [padded(between(row[1:-1].numpy(), row[2:].numpy()), self.count - 2) for row in rows]
        self.edges = torch.from_numpy(np.stack(edges))
        self.notes = {}
        return self

    @property
    def selectable(self) -> Tensor:
        """Whether all levels of an action have a dose of their own, (A,) bool."""
        all_levels = torch.arange(self.count, device=self.medians.device)
        pairs = zip(self.medians, self.edges, strict=True)
        own_dose = [_level(dose, edges) == all_levels for dose, edges in pairs]
        levels = self.levels(torch.arange(self.actions, device=all_levels.device))
        return torch.stack([own_dose[drug][levels[:, drug]] for drug in range(len(self.names))]).all(0)

    def digitise(self, doses: Tensor) -> Tensor:
        """Doses to action numbers, (..., p) -> (...) long."""
        number = torch.zeros(doses.shape[:-1], dtype=torch.long, device=doses.device)
        for drug in range(len(self.names)):
            dose = doses[..., drug].contiguous()
            number = number * self.count + _level(dose, self.edges[drug].to(dose))
        return number

    def levels(self, actions: Tensor) -> Tensor:
        """Action numbers to levels, (...) -> (..., p) long."""
        powers = self.count ** torch.arange(len(self.names) - 1, -1, -1, device=actions.device)
        return actions.unsqueeze(-1) // powers % self.count

    def doses(self, actions: Tensor) -> Tensor:
        """Action numbers to the levels' median doses, (...) -> (..., p), in the doses' units."""
        levels = self.levels(actions)
        return torch.stack([self.medians[drug][levels[..., drug]] for drug in range(len(self.names))], -1)

    def encoded(self, actions: Tensor) -> Tensor:
        """Action numbers as model inputs, (...) -> (..., p): level / (count - 1) - 1/2."""
        return self.levels(actions).to(torch.float64) / (self.count - 1) - 0.5


def _level(dose: Tensor, edges: Tensor) -> Tensor:
    return torch.where(dose > 0, 1 + torch.bucketize(dose, edges, right=True), 0)
