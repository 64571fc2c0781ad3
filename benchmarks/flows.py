"""Process time of Grad-Rh's decisions, by gradients of its flows and by finite differences.

The flows of one fitted model, the same losses, the same starts, the same Adam steps; only the computation of
the gradient differs:

    autograd, batched        one backward pass for all cases: what `AdamInBox` does
    autograd, one by one     one case at a time
    differences, batched     central differences, 2 k evaluations for k altered variables, all cases in one
                             tensor
    differences, one by one  the same, one case and one evaluation at a time: what a library without gradients
                             does

Printed are milliseconds of CPU time per decision, the mean loss reached, and the ratio to the first line.
Central differences need 2 k evaluations where a backward pass costs about one or two: the gain from gradients
alone grows with k.

Run: python benchmarks/flows.py [k] [cases] [steps]
"""

import sys
import time
from functools import partial

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.objectives.centre_distance import CentreDistance
from rehearsal_torch.search.alterations.adam_in_box import AdamInBox
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit


def world(k: int, rows: int = 700) -> tuple[RehearsalTask, Table]:
    """A nonlinear world x -> a_1 ... a_k -> m -> y."""
    names = [f"a{index}" for index in range(k)]
    graph = RehearsalGraph.of({**{name: ["x"] for name in names}, "m": names, "y": ["m", "x"]})
    task = RehearsalTask(
        graph,
        ("x",),
        Box.of(dict.fromkeys(names, (-1.0, 1.0))),
        Polytope.of({"y": (0.5, 1.0)}),
        (tuple(names),),
    )
    stream = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 1, generator=stream, dtype=torch.float64)
    a = 0.5 * x + 0.5 * torch.randn(rows, k, generator=stream, dtype=torch.float64)
    m = torch.sin(a).sum(-1, keepdim=True) / k**0.5 + 0.2 * torch.randn(
        rows, 1, generator=stream, dtype=torch.float64
    )
    y = m + 0.3 * x.square() - 0.3 + 0.2 * torch.randn(rows, 1, generator=stream, dtype=torch.float64)
    return task, Table.observed(("x", *names, "m", "y"), torch.cat([x, a, m, y], -1))


def differences(objective: CentreDistance, actions: Tensor, batched: bool, step: float = 1e-2) -> Tensor:
    """Central differences of the objective at actions (1, B, k), in one batch if `batched`."""
    width = actions.shape[-1]
    shifts = step * torch.eye(width, dtype=actions.dtype)
    with torch.no_grad():
        if batched:
            values = objective(torch.cat([actions + shifts.unsqueeze(1), actions - shifts.unsqueeze(1)]))
            return ((values[:width] - values[width:]) / (2 * step)).T.unsqueeze(0)
        return torch.stack(
            [(objective(actions + shift) - objective(actions - shift)) / (2 * step) for shift in shifts], -1
        )


def adam(objective: CentreDistance, steps: int, how: str) -> Tensor:
    """The loss after a number of Adam steps from the centre of the box, (B,)."""
    free = torch.zeros_like(objective.starts(1)).requires_grad_(True)
    optimiser = torch.optim.Adam([free], lr=0.1)
    middle, half = (objective.upper + objective.lower) / 2, (objective.upper - objective.lower) / 2
    for _ in range(steps):
        actions = middle + half * torch.tanh(free)
        optimiser.zero_grad()
        if how == "autograd":
            (-objective(actions).sum()).backward()
        else:
            actions.backward(-differences(objective, actions.detach(), how == "batched"))
        optimiser.step()
    with torch.no_grad():
        return -objective(middle + half * torch.tanh(free))[0]


def main(k: int = 5, count: int = 8, steps: int = 60) -> None:
    """Fits once, then times the four variants."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task, table = world(k)
    began = time.process_time()
    surrogate = fit(
        FlowStructural(task, partial(ConditionalFlow, hidden=(32, 32))),
        table,
        Descent(30, 128, 5e-3, progress=False),
    )
    print(
        f"{len(surrogate.flows)} flows fitted to {len(table)} rows in {time.process_time() - began:.1f} s of "
        "CPU, 30 epochs"
    )
    stream = torch.Generator().manual_seed(1)
    cases = [
        RehearsalCase(str(i), {"x": torch.randn((), generator=stream)}, task.box.bounds())
        for i in range(count)
    ]
    (batched_objective,) = CentreDistance.for_cases(surrogate, cases).sets
    single = [CentreDistance.for_cases(surrogate, [each]).sets[0] for each in cases]
    variants = {
        "autograd, batched": ([batched_objective], "autograd"),
        "autograd, one by one": (single, "autograd"),
        "differences, batched": ([batched_objective], "batched"),
        "differences, one by one": (single, "one by one"),
    }
    first = 0.0
    for name, (objectives, how) in variants.items():
        began = time.process_time()
        loss = torch.cat([adam(one, steps, how) for one in objectives]).mean()
        each = 1000 * (time.process_time() - began) / count
        first = first or each
        print(
            f"k={k}  {name:24s} {each:8.1f} ms per decision   loss {float(loss):.4f}   {each / first:5.1f} x"
        )
    began = time.process_time()
    AdamInBox().batch_search(CentreDistance.for_cases(surrogate, cases))
    print(
        f"k={k}  {'whole decision':24s} {1000 * (time.process_time() - began) / count:8.1f} ms (screening, "
        "two starts, fresh draws)"
    )


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:]))
