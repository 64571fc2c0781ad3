"""How often the trials of a network leave Branin's wrong edge, beside plain BoTorch.

On the network of Branin's function (`dataset=branin`) the edge a0 = 1 is .031 worse than the three best
places. A run has left it when an action was tried whose expected reward is less than half of that below the
optimum. All ways have the same start design and the same noise in every round:

    excbo               the default of decision=excbo
    optimistic, normal  the same with `objective.propagate=optimistic`, or with plain normal noise
    qlognei             BoTorch's qLogNEI on the network (decision=qlognei)
    botorch             without the graph: `SingleTaskGP` of the rewards, with normalised actions and
                        standardised rewards, qLogNEI, and `optimize_acqf` with 512 raw samples, 10 restarts

Run: python benchmarks/branin_trap.py [--rounds 50] [--seeds 740,741] [--ways excbo,botorch] [--out DIR]
Writes DIR/branin_trap.csv with one row per way and seed.
"""

import argparse
import csv
import statistics
import time
import warnings
from pathlib import Path

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.loop import rounds
from rehearsal_torch.problems.causal.benchmark_functions import Branin
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.training.fit import fit

CONF = Path(__file__).resolve().parents[1] / "conf"
EDGE = 0.031
RAW, RESTARTS = 512, 10
OVERRIDES = {
    "excbo": ["decision=excbo"],
    "optimistic": ["decision=excbo", "objective.propagate=optimistic"],
    "normal": ["decision=excbo", "surrogate.phi=homoskedastic", "surrogate.components=1"],
    "qlognei": ["decision=qlognei"],
}
WAYS = (*OVERRIDES, "botorch")


def by_network(world: CausalWorld, way: str, seed: int) -> list[float]:
    """The expected reward of each action that the causal network tries."""
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", overrides=[f"seed={seed}", *OVERRIDES[way]])
    surrogate = instantiate(config.surrogate, task=world.task.to_plain(), _convert_="all")
    fit(surrogate, world.observations())
    objective, search = instantiate(config.objective), instantiate(config.search)
    made = rounds(world, surrogate, objective, search, learn=True, seed=seed)
    return [each.score["expected"] for each in made]


def by_botorch(world: CausalWorld, seed: int) -> list[float]:
    """The expected reward of each action that a Gaussian process of the rewards tries."""
    table, found = world.observations(), []
    columns = [table.names.index(name) for name in world.task.actions]
    for index in range(world.count()):
        torch.manual_seed(1000 * seed + index)
        actions, rewards = table.values[:, columns], world.task.reward_of(table).unsqueeze(-1)
        model = SingleTaskGP(
            actions,
            rewards,
            input_transform=Normalize(len(columns), bounds=world.bounds),
            outcome_transform=Standardize(1),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        point, _ = optimize_acqf(
            qLogNoisyExpectedImprovement(model, actions, prune_baseline=True),
            world.bounds,
            q=1,
            num_restarts=RESTARTS,
            raw_samples=RAW,
        )
        case = world.case(index)
        decision = Decision(Alteration(world.task.actions, point[0]), 0.0)
        found.append(float(world.score(case, decision)["expected"]))
        table = table + world.respond(case, decision)
    return found


def main() -> None:
    """Runs all ways and seeds, prints a table and writes it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seeds", default="740,741,742,743,744,745,746,747,748,749")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    made: list[dict[str, float | int | str]] = []
    print(f"{'way':<12} {'seed':>5} {'below optimum':>14} {'left after round':>17} {'CPU s':>7}")
    for way in chosen.ways.split(","):
        for seed in map(int, chosen.seeds.split(",")):
            world, began = Branin(seed=seed, size=Rounds(chosen.rounds)), time.process_time()
            tried = by_botorch(world, seed) if way == "botorch" else by_network(world, way, seed)
            gaps = [world.optimal_value - value for value in tried]
            first = next((place + 1 for place, gap in enumerate(gaps) if gap < EDGE / 2), 0)
            seconds = time.process_time() - began
            made.append({"way": way, "seed": seed, "gap": min(gaps), "left": first, "seconds": seconds})
            print(f"{way:<12} {seed:5d} {min(gaps):14.4f} {first or 'no':>17} {seconds:7.1f}", flush=True)
    for way in chosen.ways.split(","):
        rows = [row for row in made if row["way"] == way]
        left = sum(bool(row["left"]) for row in rows)
        gap = statistics.median(float(row["gap"]) for row in rows)
        print(f"{way}: left by {left} of {len(rows)}; the best tried is {gap:.4f} below the optimum (median)")
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "branin_trap.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(made[0]))
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main()
