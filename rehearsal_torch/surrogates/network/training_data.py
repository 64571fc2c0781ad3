"""Training data of each node of a causal system.

    graph         every node from its parents and actions,                       X_i  <-  Z_i, A_i
    independent   every node that the reward reads, from all actions alone,      X_i  <-  A
    black_box     the reward from all actions,                                   y    <-  A

A node is learnt from the rows in which it was not set. Without the structure its mechanism includes
everything between the actions and the node, so that rows in which an intermediate node was set are left out.

Inputs are scaled to the unit cube: actions by their bounds, other nodes by their observed range. Values are
standardised.

Source: Ren et al. (2025), Sec. 5; Astudillo and Frazier (2021), Sec. 3 (a function network, and the black box
that ignores it).
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.part import Sizes, Solved
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

Structure = Literal["graph", "independent", "black_box"]
STRUCTURES = ("graph", "independent", "black_box")


class NodeRows:
    """The whole task as a structure reads it, and its rows."""

    def __init__(self, task: CausalTask, structure: Structure) -> None:
        if structure not in STRUCTURES:
            raise ValueError(f"expected a structure of {list(STRUCTURES)}; got {structure!r}")
        self.task, self.structure = task, structure
        self.structured_task = task
        if structure == "independent":
            self.structured_task = task.flattened()
        elif structure == "black_box":
            name = "reward"
            while name in task.actions:
                name += "_"
            self.structured_task = CausalTask(
                RehearsalGraph.of({name: task.actions}), task.box, WeightedSum({name: 1.0}), task.limits
            )
        self.inputs = tuple(self.structured_task.inputs(node) for node in self.structured_task.nodes)
        self.max_inputs = max(1, *map(len, self.inputs))

    def values(self, table: Table) -> Tensor:
        """Node values, (n, N)."""
        if self.structure == "black_box":
            return self.task.reward_of(table).unsqueeze(-1)
        return table.columns(self.structured_task.nodes)

    def kept(self, table: Table) -> Tensor:
        """The rows from which each node is learnt, (n, N) bool."""
        masks = []
        for node in self.structured_task.nodes:
            own = self.task.reward.names if self.structure == "black_box" else (node,)
            between = frozenset(own)
            if self.structure != "graph":
                between = self.task.graph.ancestors(own) - set(self.task.actions)
            places = [table.names.index(name) for name in between if name in table.names]
            masks.append(~table.altered[:, places].any(-1))
        return torch.stack(masks, -1)

    def columns(self, table: Table) -> tuple[Tensor, Tensor]:
        """Inputs (n, N, p), padded with zeros, and values (n, N)."""
        inputs = [
            torch.nn.functional.pad(table.columns(names).double(), (0, self.max_inputs - len(names)))
            for names in self.inputs
        ]
        return torch.stack(inputs, 1), self.values(table).double()

    def examples(self, table: Table) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs (n, N, p) padded with zeros, values (n, N), and the mask of the rows used (n, N); ValueError
        if a node has fewer than 5 rows, or is constant.
        """
        inputs, values = self.columns(table)
        kept = self.kept(table)
        for node, column, rows in zip(self.structured_task.nodes, values.T, kept.T, strict=True):
            if int(rows.sum()) < MIN_ROWS:
                raise ValueError(
                    f"{node}: expected at least {MIN_ROWS} rows in which it was not set; got "
                    f"{int(rows.sum())}: add observations"
                )
            if bool((column[rows] == column[rows][0]).all()):
                raise ValueError(
                    f"{node}: all {int(rows.sum())} values that were not set are "
                    f"{float(column[rows][0]):g}: a constant says nothing"
                )
        return inputs, values, kept


class UnitCube(Solved):
    """Offsets and widths to the unit cube, of actions by their bounds, and to standardised values."""

    def __init__(self, rows: NodeRows) -> None:
        super().__init__()
        bounds, count = rows.structured_task.box.bounds(), rows.max_inputs

        def padded(values: Callable[[str], float], rest: float) -> Tensor:
            table = [
                [values(name) for name in names] + [rest] * (count - len(names)) for names in rows.inputs
            ]
            return torch.tensor(table, dtype=torch.float64).reshape(-1, count)

        known = padded(lambda name: name in bounds, True).bool()
        lower = padded(lambda name: bounds.get(name, (0.0, 1.0))[0], 0.0)
        width = padded(lambda name: bounds[name][1] - bounds[name][0] if name in bounds else 1.0, 1.0)
        self.register_buffer("known", known, persistent=False)
        self.register_buffer("low", lower, persistent=False)
        self.register_buffer("wide", width, persistent=False)
        self.register_fitted("offset", "width", "centre", "scale")

    def sizes(self) -> Sizes:
        """N nodes with at most p inputs."""
        nodes, max_inputs = tuple(self.known.shape)
        return {
            "offset": (nodes, max_inputs),
            "width": (nodes, max_inputs),
            "centre": (nodes,),
            "scale": (nodes,),
        }

    def faults(self) -> list[str]:
        """Sizes, and widths or scales that are not positive."""
        faults = super().faults()
        if not faults and not bool((self.width > 0).all() and (self.scale > 0).all()):
            faults.append("width and scale: expected numbers above 0")
        return faults

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, N, p), values (n, N) and the mask of kept rows (n, N)."""
        inputs, values, kept = examples
        rows = kept.unsqueeze(-1)
        smallest = torch.where(rows, inputs, torch.inf).amin(0)
        largest = torch.where(rows, inputs, -torch.inf).amax(0)
        span = largest - smallest
        self.offset = torch.where(self.known, self.low, smallest)
        # A constant input has width 1.
        self.width = torch.where(self.known, self.wide, torch.where(span > 0, span, 1.0))
        count = kept.sum(0)
        self.centre = torch.where(kept, values, 0.0).sum(0) / count
        self.scale = (torch.where(kept, values - self.centre, 0.0).square().sum(0) / (count - 1)).sqrt()

    def scaled(self, inputs: Tensor) -> Tensor:
        """(n, N, p) -> (n, N, p)."""
        return (inputs - self.offset) / self.width

    def standard(self, values: Tensor) -> Tensor:
        """(n, N) -> (n, N)."""
        return (values - self.centre) / self.scale


class VisitedActions(Solved):
    """The k actions of the experiments so far."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_fitted("actions")

    def sizes(self) -> Sizes:
        """(n, k)."""
        return {"actions": ("n", self.width)}

    def solve(self, *examples: Tensor) -> None:
        """Stores actions (n, k)."""
        self.actions = examples[0].detach().double().clone()
