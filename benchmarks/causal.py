"""Process time of a round of causal Bayesian optimisation, on one core, beside BoTorch's parts alone.

The problem is Alpine2: six nodes in a chain, six actions. A round fits the model to n rows (warm-started from
n - 1, as in the loop), asks for the action to try, and claims: finds the action to recommend, its interval,
the runner-up, and what the experiments contradict. The methods are those of conf/decision.

The plain round is that of `suite.plain.node_processes` with the acquisition of `excbo`: one `SingleTaskGP`
per node, fitted one after the other by `fit_gpytorch_mll`, and sampled through the graph in 64 draws, noise
included; qUCB by `optimize_acqf` with 512 raw points and 10 restarts. It fits no noise distribution and
claims nothing, which is in its favour. With qLogNEI, which samples all tried actions jointly, it asks several
times as long.

Run: python benchmarks/causal.py [--rows 100,400] [--repeat 3] [--methods excbo,ucb] [--out DIR]
Writes DIR/causal.csv with one row per method, number of rows and repetition.
"""

import argparse
import csv
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.suite.plain.black_box import RAW, RESTARTS
from benchmarks.suite.plain.node_processes import AT_ONCE, DRAWS, NodeProcesses
from rehearsal_torch.data.table import Table
from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.problems.trials.benchmark_functions import Alpine2
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.trials.acquisition import decided, recommend
from rehearsal_torch.training.surrogate_fit import fit

PLAIN, BETA = "one process a node", 2.0
PARTS = ("fit", "ask", "claim")


def experiments(rows: int, seed: int) -> tuple[Alpine2, Table]:
    """The problem and random experiments."""
    world, stream = Alpine2(seed=seed), np.random.default_rng(seed)
    return world, world.experiments(world.random_actions(rows, stream), world.noise_rows(rows, stream))


def own_round(method: str, rows: int, seed: int) -> list[float]:
    """Seconds to fit, ask and claim of a method."""
    world, table = experiments(rows, seed)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[f"decision={method}", f"seed={seed}"])
    model = instantiate(config.surrogate, task=world.task.to_plain(), _convert_="all")
    make, search = instantiate(config.objective), instantiate(config.search)
    fit(model, Table(table.names, table.values[:-1], table.altered[:-1]))
    marks, budget = [time.process_time()], Budget(None)
    fit(model, table)
    marks.append(time.process_time())
    objective = make(model, world.case(0))
    proposal = search.propose(objective, budget)
    marks.append(time.process_time())
    decided(objective, proposal, recommend(objective, seed), budget)
    marks.append(time.process_time())
    return np.diff(marks).tolist()


def plain_round(rows: int, seed: int) -> list[float]:
    """Seconds to fit and ask of BoTorch's parts alone."""
    world, table = experiments(rows, seed)
    torch.manual_seed(seed)
    marks = [time.process_time()]
    network = NodeProcesses(world.task, table)
    marks.append(time.process_time())
    sampler = SobolQMCNormalSampler(torch.Size([DRAWS]), seed=seed)
    optimize_acqf(
        # BoTorch's beta is the square of the multiplier.
        qUpperConfidenceBound(network, BETA**2, sampler, network.reward()),
        world.bounds,
        q=1,
        num_restarts=RESTARTS,
        raw_samples=RAW,
        options={"init_batch_limit": AT_ONCE},
    )
    marks.append(time.process_time())
    return np.diff(marks).tolist()


def main() -> None:
    """Measures, prints a table and writes it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", default="100,400")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--methods", default="excbo,qlognei,qlogei,excbo_paper,mcbo,eifn,function_network,ucb"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    # Imports and the first compilations are paid for beforehand.
    own_round("ucb", 20, 0)
    plain_round(20, 0)
    made: list[dict[str, object]] = []
    print(f"{'rows':>5} {'method':<20} {'fit':>8} {'ask':>8} {'claim':>8}   CPU seconds, medians")
    for rows in map(int, given.rows.split(",")):
        for method in (*given.methods.split(","), PLAIN):
            taken = [
                plain_round(rows, seed) if method == PLAIN else own_round(method, rows, seed)
                for seed in range(given.repeat)
            ]
            medians = " ".join(f"{statistics.median(each):8.2f}" for each in zip(*taken, strict=True))
            print(f"{rows:5d} {method:<20} {medians}", flush=True)
            made += [
                {"rows": rows, "method": method, "repetition": index, **dict(zip(PARTS, each, strict=False))}
                for index, each in enumerate(taken)
            ]
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "causal.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ("rows", "method", "repetition", *PARTS))
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main()
