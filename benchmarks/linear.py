"""Process time of linear Gaussian decisions, in milliseconds per decision on one core.

Two tasks: one outcome with an interval (three candidate sets), and two outcomes with an upright rectangle or
a triangle, whose two actions are set jointly. For each, 1,000 contexts are decided in one batch:

    care      the most probable success (closed form or projected Newton), with predictive probability and
              interval
    micns     the cheapest alteration under a chance constraint, its level chosen from a grid

The reference is plain SciPy, one context and one candidate set after the other: L-BFGS-B with the closed-form
value and gradient for care, SLSQP with exact derivatives for micns; it only finds actions and does not
quantify their uncertainty. For a triangle there is no closed form to give to SciPy. Ratios are of medians
over repetitions; the largest difference between the values reached is printed next to them.

Run: python benchmarks/linear.py [--contexts 1000] [--reference 50] [--repeat 3] [--out DIR]
Writes DIR/linear.csv with one row per task, method and repetition.
"""

import argparse
import csv
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.stats import chi2, norm

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit

Coefficients = dict[str, dict[str, float]]
CHAIN: Coefficients = {"x": {}, "a": {"x": 0.8}, "m": {"a": 1.5}, "y": {"m": 1.0, "x": -0.7}}
MARKET: Coefficients = {
    "cf": {},
    "ei": {},
    "crc": {"cf": 10.0},
    "raw_cost": {"ei": 10.0},
    "self_pricing": {"raw_cost": 2.0, "crc": 0.4},
    "profit": {"raw_cost": -1.0, "self_pricing": 0.9},
    "customers": {"raw_cost": 1.6, "self_pricing": -0.9},
}
TRIANGLE = {
    "names": ["profit", "customers"],
    "normals": [[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]],
    "offsets": [-0.2, -0.3, 2.0],
}


def task(
    coefficients: Coefficients,
    context: list[str],
    box: dict[str, list[float]],
    region: dict,
    sets: list[list[str]],
) -> RehearsalTask:
    """A task over a linear world."""
    graph = {"parents": {child: list(parents) for child, parents in coefficients.items()}}
    return RehearsalTask.of(
        {"graph": graph, "context": context, "box": box, "region": region, "candidates": sets}
    )


def tasks() -> dict[str, tuple[RehearsalTask, Coefficients]]:
    """The tasks with the coefficients of their worlds."""
    wide = {"raw_cost": [-6.0, 6.0], "self_pricing": [-6.0, 6.0]}
    joint = [["raw_cost", "self_pricing"]]
    upright = {"profit": [0.5, 1.9], "customers": [0.8, 2.2]}
    return {
        "interval": (
            task(
                CHAIN,
                ["x"],
                {"a": [-1.0, 1.0], "m": [-1.0, 1.0]},
                {"y": [1.0, 2.0]},
                [["a"], ["m"], ["a", "m"]],
            ),
            CHAIN,
        ),
        "rectangle": (task(MARKET, ["cf", "ei"], wide, upright, joint), MARKET),
        "triangle": (task(MARKET, ["cf", "ei"], wide, TRIANGLE, joint), MARKET),
    }


def drawn(made: RehearsalTask, coefficients: Coefficients, count: int, seed: int) -> Table:
    """Rows of the world, with noise of standard deviation 0.3 (0.2 for root nodes)."""
    stream, columns = np.random.default_rng(seed), {}
    for name in made.graph.names:
        parents = coefficients[name]
        columns[name] = sum(w * columns[p] for p, w in parents.items()) + (
            0.3 if parents else 0.2
        ) * stream.normal(size=count)
    return Table.observed(
        made.graph.names, torch.from_numpy(np.stack([columns[name] for name in made.graph.names], -1))
    )


def plain(one: GaussianSuccess) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Region, factor, effects and base means as arrays: M, d, L, B and the means (B, |Y|)."""
    response, region = one.response, one.region
    return (
        region.normals.numpy(),
        region.offsets.numpy(),
        one.root.numpy(),
        response.action.numpy(),
        response.base(one.contexts).numpy(),
    )


def scipy_care(one: GaussianSuccess, index: int) -> float:
    """log P of one set in one context by L-BFGS-B; the outcomes' noise must be uncorrelated and the region
    upright.
    """
    normals, offsets, root, effect, base = plain(one)
    scale = np.diag(root)
    upper = np.array(
        [
            min(offsets[f] / normals[f, i] for f in range(len(offsets)) if normals[f, i] > 0)
            for i in range(len(scale))
        ]
    )
    lower = np.array(
        [
            max(offsets[f] / normals[f, i] for f in range(len(offsets)) if normals[f, i] < 0)
            for i in range(len(scale))
        ]
    )

    def loss(z: np.ndarray) -> tuple[float, np.ndarray]:
        mean = base[index] + effect @ z
        low, high = (lower - mean) / scale, (upper - mean) / scale
        swap = low > 0
        far, near = np.where(swap, -high, low), np.where(swap, -low, high)
        value = norm.logcdf(near) + np.log1p(-np.exp(norm.logcdf(far) - norm.logcdf(near)))
        gradient = (np.exp(norm.logpdf(high) - value) - np.exp(norm.logpdf(low) - value)) / scale
        return -float(value.sum()), gradient @ effect

    bounds = list(zip(one.lower[index].tolist(), one.upper[index].tolist(), strict=True))
    return -float(
        minimize(loss, one.starts(1)[0][index].numpy(), jac=True, bounds=bounds, method="L-BFGS-B").fun
    )


def scipy_micns(one: ChanceCost, index: int) -> float:
    """Minus the minimum cost of one set in one context by SLSQP; minus infinity if nothing is feasible."""
    normals, offsets, root, effect, base = plain(one.success)
    room = (
        offsets
        - normals @ base[index]
        - float(chi2.ppf(one.level, normals.shape[1])) ** 0.5 * np.linalg.norm(normals @ root, axis=1)
    )
    rows, weights, reference = normals @ effect, one.weights.numpy(), one.usual.numpy()
    constraint = {"type": "ineq", "fun": lambda z: room - rows @ z, "jac": lambda _: -rows}
    bounds = list(zip(one.lower[index].tolist(), one.upper[index].tolist(), strict=True))
    start = np.clip(reference, *np.array(bounds).T)
    cost = {
        "fun": lambda z: float(weights @ (z - reference) ** 2),
        "jac": lambda z: 2 * weights * (z - reference),
    }
    found = minimize(
        cost["fun"],
        start,
        jac=cost["jac"],
        bounds=bounds,
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 200},
    )
    met = found.success and (rows @ found.x <= room + 1e-6 * (1 + np.abs(room))).all()
    return -float(found.fun) if met else -np.inf


def batched(method: str, surrogate: LinearStructural, cases: list[RehearsalCase]) -> list[Decision]:
    """The package's decisions for a batch."""
    if method == "care":
        return ProjectionNewton().batch_search(GaussianSuccess.for_cases(surrogate, cases))
    return CheapestAlteration(ProjectionNewton()).batch_search(ChanceCost.for_cases(surrogate, cases))


def beside(method: str, surrogate: LinearStructural, cases: list[RehearsalCase]) -> Callable[[], list[float]]:
    """SciPy's values in each context; what both need is computed before timing starts."""
    count = range(len(cases))
    if method == "care":
        sets = GaussianSuccess.for_cases(surrogate, cases).sets
        return lambda: [max(scipy_care(one, index) for one in sets) for index in count]
    costs = ChanceCost.for_cases(surrogate, cases).sets
    return lambda: [max(scipy_micns(one, index) for one in costs) for index in count]


def timed(call: Callable[[], list]) -> tuple[float, list]:
    """Process seconds, and the result."""
    began = time.process_time()
    answer = call()
    return time.process_time() - began, answer


def measured(
    name: str, method: str, surrogate: LinearStructural, cases: list[RehearsalCase], few: int, repeat: int
) -> tuple[list[dict[str, object]], str]:
    """Rows of one task and method, and the line to print."""
    batched(method, surrogate, cases)
    # A triangle has no closed form to give to SciPy.
    other = None if (name, method) == ("triangle", "care") else beside(method, surrogate, cases[:few])
    batch_ms, scipy_times, apart = [], [], 0.0
    for _ in range(repeat):
        seconds, decisions = timed(partial(batched, method, surrogate, cases))
        batch_ms.append(1e3 * seconds / len(cases))
        if other is not None:
            seconds, values = timed(other)
            scipy_times.append(1e3 * seconds / len(values))
            pairs = [
                (np.log(decision.trace["plug_in"]) if method == "care" else decision.value, value)
                for decision, value in zip(decisions, values, strict=False)
                if np.isfinite(value)
            ]
            apart = max([apart, *(abs(one - two) / (1 + abs(two)) for one, two in pairs)])
    rows: list[dict[str, object]] = [
        {
            "task": name,
            "method": method,
            "repetition": index,
            "ms": ms,
            "scipy_ms": scipy_times[index] if scipy_times else None,
        }
        for index, ms in enumerate(batch_ms)
    ]
    ratio = (
        f"{np.median(scipy_times):10.2f} {np.median(scipy_times) / np.median(batch_ms):7.0f} {apart:19.1e}"
        if scipy_times
        else f"{'-':>10} {'-':>7} {'-':>19}"
    )
    return rows, f"{name:<10} {method:<6} {np.median(batch_ms):14.3f} {ratio}"


def main() -> None:
    """Measures, prints a table and writes it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--reference", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    print(
        f"{'task':<10} {'method':<6} {'ms/decision':>14} {'SciPy, ms':>10} {'ratio':>7} "
        f"{'largest difference':>19}"
    )
    for name, (made, coefficients) in tasks().items():
        surrogate = fit(LinearStructural(made), drawn(made, coefficients, 1000, 0))
        contexts = drawn(made, coefficients, chosen.contexts, 1).columns(made.context)
        cases = [
            RehearsalCase(str(index), dict(zip(made.context, row, strict=True)), made.box.bounds())
            for index, row in enumerate(contexts)
        ]
        for method in ("care", "micns"):
            found, line = measured(name, method, surrogate, cases, chosen.reference, chosen.repeat)
            rows += found
            print(line, flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "linear.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ("task", "method", "repetition", "ms", "scipy_ms"))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
