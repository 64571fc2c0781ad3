"""Process time and value of an acquisition function's ascent, beside plain L-BFGS-B and BoTorch's default.

On the same fitted objective (`OptimisticBound` of excbo, or another of conf/decision), at n = 100:

    ascent     `search.trials.box_ascent.ascend`, which passes the function to `optimize_acqf` with its starts
    plain      a reference in this file: the same starts, steps and tolerances, with value and gradient passed
               directly to BoTorch's `fmin_l_bfgs_b_batched`
    default    `optimize_acqf` on the objective's acquisition function, with 512 raw samples, 32 restarts and
               initial conditions and tolerances as BoTorch chooses them

`ascent` and `plain` begin at the best of 512 space-filling points under a quarter of the draws and at the
four best visited actions, 32 in all; choosing them is part of their seconds (`starts` of them). Values are
those of the function, the same for all three; two are equal within 1e-4 of the larger of 1 and their size.
`equal`, `higher` and `lower` count the seeds by their value beside that of `ascent`.

Run: python benchmarks/ascent.py [--rows 100] [--seeds 10] [--problems dropwave,alpine2] [--method excbo]
[--out DIR] Writes DIR/ascent.csv with one row per problem, seed and way.
"""

import argparse
import csv
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from botorch.optim.optimize import optimize_acqf
from numpy.typing import NDArray
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
from causal import PROBLEMS, method

from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.search.trials.box_ascent import FACTOR, GRADIENT, ascend
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.training.fit import fit

Row = dict[str, str | float]
Array = NDArray[np.float64]
RAW, STARTS, VISITED = 512, 32, 4
# Steps before starts are compared, number of starts that continue, their distance, and their further steps.
SCREENING, KEPT, APART, STEPS = 8, 4, 1e-3, 100
WAYS = ("ascent", "plain", "default")


def starts_of(objective: CausalObjective, region: CandidateRegion, seed: int) -> Tensor:
    """The points from which `ascent` and `plain` begin, (32, d), in unit coordinates."""
    spread, visited = region.spread(RAW, seed), region.unit(objective.starts(VISITED))
    first = ranked(objective.screened(region.units(spread))).topk(STARTS - len(visited)).indices
    return torch.cat([visited, spread[first]])


def by_ascent(objective: CausalObjective, region: CandidateRegion, starts: Tensor) -> float:
    """The value that the search's own ascent reaches."""
    frame = objective.frame
    found = ascend(
        lambda points: frame.standardised(objective(points)),
        region,
        starts,
        STEPS,
        SCREENING,
        KEPT,
        lambda points: frame.standardised(objective.rough(points)),
    )
    return frame.units(float(found.values[0]))


def by_plain(objective: CausalObjective, region: CandidateRegion, starts: Tensor) -> float:
    """The value that L-BFGS-B reaches on value and gradient alone."""
    frame = objective.frame

    def negative(function: Callable[[Tensor], Tensor]) -> Callable[[Array], tuple[Array, Array]]:
        def both(points: Array) -> tuple[Array, Array]:
            at = torch.from_numpy(np.array(points)).requires_grad_()
            values = -frame.standardised(function(region.units(at)))
            (gradients,) = torch.autograd.grad(values.sum(), at)
            return values.detach().numpy(), gradients.numpy()

        return both

    settings = {"bounds": [(0.0, 1.0)] * starts.shape[-1], "factr": FACTOR, "pgtol": GRADIENT}
    points, values, _ = fmin_l_bfgs_b_batched(
        negative(objective.rough), starts.numpy(), maxiter=SCREENING, **settings
    )
    kept: list[Array] = []
    for place in np.argsort(values, kind="stable"):
        if all(np.linalg.norm(points[place] - other) > APART for other in kept):
            kept.append(points[place])
        if len(kept) == KEPT:
            break
    _, values, _ = fmin_l_bfgs_b_batched(negative(objective), np.stack(kept), maxiter=STEPS, **settings)
    return frame.units(-float(values.min()))


def by_default(objective: CausalObjective, seed: int) -> float:
    """The value that BoTorch reaches by itself."""
    function = objective.acquisition
    _, value = optimize_acqf(
        function,
        objective.bounds,
        q=1,
        num_restarts=STARTS,
        raw_samples=RAW,
        options={"seed": seed},
    )
    return float(value)


def timed(call: Callable[[], float]) -> tuple[float, float]:
    """Process seconds and value."""
    began = time.process_time()
    value = call()
    return time.process_time() - began, value


def compared(problem: str, name: str, rows: int, seed: int) -> list[Row]:
    """The three on one fitted objective."""
    world = PROBLEMS[problem](seed)
    model, objective, _ = method(name, world, seed)
    stream = np.random.default_rng(seed)
    table = world.experiments(world.random_actions(rows, stream), world.noise_rows(rows, stream))
    asked = objective(fit(model, table), world.case(0))
    region = asked.region()
    began = time.process_time()
    starts = starts_of(asked, region, seed)
    screened = time.process_time() - began
    made: list[Row] = []
    for way, (seconds, value) in {
        "ascent": timed(lambda: by_ascent(asked, region, starts)),
        "plain": timed(lambda: by_plain(asked, region, starts)),
        "default": timed(lambda: by_default(asked, seed)),
    }.items():
        before = 0.0 if way == "default" else screened
        made.append(
            {
                "problem": problem,
                "seed": seed,
                "way": way,
                "starts": before,
                "seconds": seconds + before,
                "value": value,
            }
        )
    return made


def reported(problem: str, rows: list[Row]) -> None:
    """Prints a line for each way, with its ratios to the ascent."""
    columns = {
        key: {way: [float(row[key]) for row in rows if row["way"] == way] for way in WAYS}
        for key in ("starts", "seconds", "value")
    }
    own = statistics.median(columns["seconds"]["ascent"])
    for way in WAYS:
        values, seconds = columns["value"][way], statistics.median(columns["seconds"][way])
        pairs = list(zip(values, columns["value"]["ascent"], strict=True))
        near = [abs(one - other) <= 1e-4 * max(1, abs(one), abs(other)) for one, other in pairs]
        above = sum(one > other and not same for (one, other), same in zip(pairs, near, strict=True))
        print(
            f"{problem:<10} {way:<8} {statistics.median(columns['starts'][way]):7.3f} {seconds:8.3f} "
            f"{seconds / own:7.2f} {statistics.mean(values):12.4f} {sum(near):6d} {above:7d} "
            f"{len(near) - sum(near) - above:6d}",
            flush=True,
        )


def main() -> None:
    """Measures, prints a table and writes it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problems", default="dropwave,alpine2")
    parser.add_argument("--method", default="excbo")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    # Imports and the first compilations are paid for beforehand.
    compared("dropwave", chosen.method, 20, 0)
    print(
        f"{'problem':<10} {'way':<8} {'starts':>7} {'seconds':>8} {'/ascent':>7} {'mean value':>12} "
        f"{'equal':>6} {'higher':>7} {'lower':>6}   CPU seconds, "
        f"medians of {chosen.seeds} seeds, n = {chosen.rows}"
    )
    whole: list[Row] = []
    for problem in chosen.problems.split(","):
        made = [
            row for seed in range(chosen.seeds) for row in compared(problem, chosen.method, chosen.rows, seed)
        ]
        reported(problem, made)
        whole += made
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "ascent.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ("problem", "seed", "way", "starts", "seconds", "value"))
        writer.writeheader()
        writer.writerows(whole)


if __name__ == "__main__":
    main()
