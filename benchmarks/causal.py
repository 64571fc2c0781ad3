"""Process time of a round of causal Bayesian optimisation at n = 100 experiments, on one core.

A round is: fit the model to n rows (warm-started from n - 1, as in the loop), make the objective, find the
action to try and the action to recommend. `fit` and `decide` are the medians of these parts over the
repetitions. The methods are those of conf/decision.

The reference is a plain implementation of the same round as EXCBO: one `SingleTaskGP` per node, fitted one
after the other by `fit_gpytorch_mll`; Eq. 5 with posterior means before the reward, by GPyTorch posteriors,
under the same 64 draws of the noise; `optimize_acqf` with 512 raw points and 32 restarts, two restarts per
call. It fits no noise distribution and recommends nothing, which is in its favour. For a like-for-like
comparison EXCBO is set to one noise scale and posterior means here (`excbo, plain`). The actions of both are
evaluated by the same function, EXCBO's bound: `bound` and `plain bound` must agree, or the ratio compares
different things.

Run: python benchmarks/causal.py [--rows 100] [--repeat 5] [--reference 2] [--problems dropwave,alpine2]
[--methods excbo,ucb] [--out DIR] Writes DIR/causal.csv with one row per method, problem and repetition.
"""

import argparse
import csv
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from torch import Tensor

from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.problems.causal.benchmark_functions import Alpine2, Dropwave
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.search.search import Search
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.fit import fit

Row = dict[str, object]
CONF = Path(__file__).resolve().parents[1] / "conf"
METHODS = (
    "random_actions",
    "ucb",
    "eicf",
    "eifn",
    "mcbo",
    "excbo",
    "excbo_paper",
    "qlognei",
    "qlogei",
    "qucb",
)
PROBLEMS: dict[str, Callable[[int], CausalWorld]] = {
    "dropwave": lambda seed: Dropwave(seed=seed),
    "alpine2": lambda seed: Alpine2(seed=seed),
}
BETA, DRAWS, RAW, RESTARTS = 2.0, 64, 512, 32
PLAIN = "excbo, plain"


def method(
    name: str, world: CausalWorld, seed: int
) -> tuple[ExogenousModel, Callable[..., CausalObjective], Search]:
    """The parts that a decision of conf/decision builds."""
    decision, over = (
        ("excbo", [f"objective.beta={BETA}", "objective.propagate=mean", "surrogate.phi=homoskedastic"])
        if name == PLAIN
        else (name, [])
    )
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", overrides=[f"decision={decision}", f"seed={seed}", *over])
    return (
        instantiate(config.surrogate, task=world.task.to_plain(), _convert_="all"),
        instantiate(config.objective),
        instantiate(config.search),
    )


def rounds(
    name: str, problem: str, rows: int, repeat: int
) -> tuple[list[Row], list[tuple[CausalWorld, CausalObjective, float]]]:
    """Seconds of the rounds of a method, and their actions."""
    made, found = [], []
    for index in range(repeat):
        world = PROBLEMS[problem](index)
        model, objective, search = method(name, world, index)
        stream = np.random.default_rng(index)
        table = world.experiments(world.random_actions(rows, stream), world.noise_rows(rows, stream))
        before = type(table)(table.names, table.values[:-1], table.altered[:-1])
        fit(model, before)
        marks = [time.process_time()]
        fit(model, table)
        marks.append(time.process_time())
        asked = objective(model, world.case(0))
        decision = search(asked)
        marks.append(time.process_time())
        made.append(
            {
                "problem": problem,
                "method": name,
                "rows": rows,
                "repetition": index,
                "fit": marks[1] - marks[0],
                "decide": marks[2] - marks[1],
            }
        )
        found.append((world, asked, decision.value))
    return made, found


def plain_round(world: CausalWorld, rows: int, index: int, noise: Tensor) -> tuple[float, float, Tensor]:
    """Seconds to fit and to decide, and the action, of the plain implementation."""
    from botorch.acquisition import AcquisitionFunction
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    stream, task = np.random.default_rng(index), world.task
    table = world.experiments(world.random_actions(rows, stream), world.noise_rows(rows, stream))
    marks, processes = [time.process_time()], []
    for node in task.nodes:
        inputs, values = table.columns(task.inputs(node)), table.columns([node])
        lower, width = inputs.amin(0), inputs.amax(0) - inputs.amin(0)
        process = SingleTaskGP((inputs - lower) / width, values)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
        process.eval()
        processes.append(
            (
                process,
                lower,
                width,
                (process.likelihood.noise.detach().sqrt() * process.outcome_transform.stdvs).reshape(()),
            )
        )
    marks.append(time.process_time())

    class Bound(AcquisitionFunction):
        """Eq. 5 by GPyTorch posteriors."""

        def forward(self, X: Tensor) -> Tensor:
            known = {
                name: X[:, 0, place, None].expand(-1, len(noise)) for place, name in enumerate(task.actions)
            }
            std = X.new_zeros(())
            for place, (node, (process, lower, width, scale)) in enumerate(
                zip(task.nodes, processes, strict=True)
            ):
                inputs = (torch.stack([known[name] for name in task.inputs(node)], -1) - lower) / width
                posterior = process.posterior(inputs)
                known[node] = posterior.mean.squeeze(-1) + scale * noise[:, place]
                if node in task.reward.names:
                    std = posterior.variance.squeeze(-1).sqrt()
            return known[task.reward.names[0]].mean(-1) + BETA * std.mean(-1)

    options = {"batch_limit": 2, "init_batch_limit": 64, "maxiter": 100, "seed": index}
    action, _ = optimize_acqf(
        Bound(processes[-1][0]), world.bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW, options=options
    )
    marks.append(time.process_time())
    return marks[1] - marks[0], marks[2] - marks[1], action


def beside(found: list[tuple[CausalWorld, CausalObjective, float]], problem: str, rows: int) -> list[Row]:
    """The plain implementation on the same rounds, with both actions evaluated by the same bound."""
    made: list[Row] = []
    for index, (world, objective, value) in enumerate(found):
        fitted, decided, action = plain_round(world, rows, index, objective.noise)
        with torch.no_grad():
            reference = float(objective(action))
        made.append(
            {
                "problem": problem,
                "method": "one process a node",
                "rows": rows,
                "repetition": index,
                "fit": fitted,
                "decide": decided,
                "bound": value,
            }
            | {"plain bound": reference}
        )
    return made


def middle(rows: list[Row], what: str) -> float:
    """The median of a column."""
    return statistics.median(float(str(row[what])) for row in rows)


def main() -> None:
    """Measures, prints a table and writes it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--reference", type=int, default=2, help="repetitions of the plain implementation; 0 leaves it out"
    )
    parser.add_argument("--problems", default="dropwave,alpine2")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    # Imports and the first compilations are paid for beforehand.
    rounds("ucb", "dropwave", 20, 1)
    whole: list[Row] = []
    print(
        f"{'problem':<10} {'method':<20} {'fit':>7} {'decide':>8} {'round':>8}   CPU seconds, medians, n = "
        f"{chosen.rows}"
    )

    def reported(made: list[Row]) -> float:
        whole.extend(made)
        fitted, decided = middle(made, "fit"), middle(made, "decide")
        print(
            f"{made[0]['problem']!s:<10} {made[0]['method']!s:<20} {fitted:7.3f} {decided:8.3f} "
            f"{fitted + decided:8.3f}",
            flush=True,
        )
        return fitted + decided

    for problem in chosen.problems.split(","):
        for name in chosen.methods.split(","):
            reported(rounds(name, problem, chosen.rows, chosen.repeat)[0])
        if chosen.reference:
            made, found = rounds(PLAIN, problem, chosen.rows, chosen.reference)
            own = reported(made)
            plain = beside(found, problem, chosen.rows)
            reference = reported(plain)
            bounds = ", ".join(
                f"{float(str(row['bound'])):.4f} and {float(str(row['plain bound'])):.4f}" for row in plain
            )
            print(
                f"{problem:<10} the plain implementation takes {reference / own:.1f} times as long; bounds "
                f"reached by EXCBO and by the plain one: {bounds}",
                flush=True,
            )
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "causal.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(
            stream, ("problem", "method", "rows", "repetition", "fit", "decide", "bound", "plain bound")
        )
        writer.writeheader()
        writer.writerows(whole)


if __name__ == "__main__":
    main()
