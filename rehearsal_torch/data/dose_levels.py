"""Dose levels: the discretisation of continuous doses into a finite set of actions.

Each of p drugs has `count` levels: level 0 is no dose, the others are the quantile intervals of the non-zero
training doses, each represented by its median. An action is a tuple of levels, numbered in mixed radix with
the last drug fastest (25 actions for two drugs of five levels: action = 5 * first + second).

If a drug was given in at most `count` - 1 different doses (integer codes, tablets), each dose is a level of
its own. If quantiles would leave a level empty because doses are repeated, the distinct doses are divided
into contiguous groups with about equal numbers of rows instead, none of them empty, and `notes` names the
doses that share a level. A level is *selectable* if its dose belongs to it; an empty level has no such dose.

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
    """The dose levels of p drugs, fitted to doses.

    Args:
        names: The p dose columns.
        count: Levels per drug, at least 2.

    Attributes:
        notes: Drug to a note for the data card, for drugs whose levels were determined by repeated doses.

    Raises:
        ValueError: if count is below 2, or there are more than 1,000 levels or a million actions.
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
        self.edges: Tensor
        self.medians: Tensor

    def sizes(self) -> Sizes:
        """Edges (p, count - 2) and medians (p, count)."""
        return {"edges": (len(self.names), self.count - 2), "medians": (len(self.names), self.count)}

    def faults(self) -> list[str]:
        """Inconsistent sizes, decreasing edges, and medians that do not start at 0 or are negative."""
        found = super().faults()
        if not found and bool((self.edges.diff(dim=-1) < 0).any()):
            found.append(f"edges: expected edges that rise along each row; got {self.edges.tolist()}")
        if not found and bool((self.medians[:, 0] != 0).any() or (self.medians < 0).any()):
            expected = "expected doses of at least 0, the first of each row 0"
            found.append(f"medians: {expected}; got {self.medians.tolist()}")
        return found

    @property
    def actions(self) -> int:
        """The number of actions, count ** p."""
        return int(self.count ** len(self.names))

    def solve(self, *examples: Tensor) -> None:
        """Fits edges (p, count - 2) and medians (p, count) to doses (n, p), in the doses' units; a negative
        dose, or a drug that was never given, is a ValueError.
        """
        (doses,) = examples
        columns = doses.detach().cpu().to(torch.float64).T.numpy()
        cuts = {
            name: DoseCuts.of(name, dose, self.count) for name, dose in zip(self.names, columns, strict=True)
        }
        self.edges, self.medians = (
            torch.from_numpy(np.stack(each)).to(doses.device)
            for each in zip(*((cut.edges, cut.medians) for cut in cuts.values()), strict=True)
        )
        self.notes = {name: cut.note for name, cut in cuts.items() if cut.note}

    def fix(self, medians: Tensor | Sequence[Sequence[float]]) -> "DoseLevels":
        """Sets the levels instead of fitting them; edges are the midpoints between doses.

        Args:
            medians: Each drug's doses, increasing from 0: (p, count), or p rows of 2 to `count` numbers. The
                levels beyond the end of a shorter row are empty, and no search selects them.
        """
        rows = [torch.as_tensor(row, dtype=torch.float64) for row in medians]
        if len(rows) != len(self.names) or not all(
            row.ndim == 1 and 2 <= len(row) <= self.count and row.isfinite().all() for row in rows
        ):
            each = f"one for each of {', '.join(self.names)}; got {[row.tolist() for row in rows]}"
            raise ValueError(f"expected {len(self.names)} rows of 2 to {self.count} finite doses, {each}")
        if any(bool((row.diff() <= 0).any()) or float(row[0]) != 0 for row in rows):
            got = [row.tolist() for row in rows]
            raise ValueError(f"expected medians that rise from 0 along each row; got {got}")
        self.medians = torch.stack([torch.cat([row, row[-1:].expand(self.count - len(row))]) for row in rows])
        edges = [padded(between(row[1:-1].numpy(), row[2:].numpy()), self.count - 2) for row in rows]
        self.edges = torch.from_numpy(np.stack(edges))
        self.notes = {}
        return self

    @property
    def selectable(self) -> Tensor:
        """Whether all levels of an action have a dose of their own, (A,) bool; empty levels have none."""
        every = torch.arange(self.count, device=self.medians.device)
        pairs = zip(self.medians, self.edges, strict=True)
        own = [_level(dose, edges) == every for dose, edges in pairs]
        levels = self.levels(torch.arange(self.actions, device=every.device))
        return torch.stack([own[drug][levels[:, drug]] for drug in range(len(self.names))]).all(0)

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
