"""Experiments by this package, by Ax and by BayBE, from the same start design and under the same noise.

    network    a drawn network of `problems.trials.random_network` without strain, whose graph is known here
    reactor    a reactor of `reproduction.campaigns`, whose impurity nine of ten experiments are to keep
               below a limit; Ax asks for the mean to keep it, and BayBE knows no constraint of an outcome

All are used as they come. Each recommends after 10 and 20 experiments beyond the start design: here the
largest posterior mean, in Ax its best parameterization, of BayBE the experiment with the largest posterior
mean. The regret is the distance of its true expected reward to the largest feasible one, as a share of the
range of expected rewards; the time of a proposal is that of the processor, with the fit. Packages that are
missing are left out.

Run: python benchmarks/peers.py [--first 1000] [--last 1004] [--rounds 20] [--jobs 1]
"""

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rehearsal_torch as rt
from reproduction.calibration.documents import t_interval
from reproduction.campaigns.worlds import Network, Reactor

Values = Mapping[str, float]


class DrawnSystem(Network):
    """The network of a seed, as an experiment."""

    reward_name, limit = "Y", None

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ranges = self.task.box.bounds()


class LimitedReactor(Reactor):
    """The reactor of a seed."""

    reward_name = "yield"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ranges = {"heat": (0, 1), "flow": (0, 1)}


class Here:
    """The default of this package."""

    def __init__(self, system: Any, seed: int) -> None:
        self.optimiser = rt.CausalOptimiser(system.task, seed=seed, initial=system.initial)

    def tell(self, action: Values, nodes: Values) -> None:
        """Adds an experiment."""
        self.optimiser.tell(action, nodes)

    def ask(self) -> dict[str, float]:
        """The next experiment."""
        return dict(self.optimiser.ask()[0])

    def best(self) -> dict[str, float]:
        """The recommended setting."""
        return self.optimiser.recommend().action


class Ax:
    """Ax by its client, with its default strategy."""

    def __init__(self, system: Any, seed: int) -> None:
        from ax.api.client import Client
        from ax.api.configs import RangeParameterConfig

        torch.manual_seed(seed)
        self.client, self.reward = Client(random_seed=seed), system.reward_name
        ranges = system.ranges.items()
        self.client.configure_experiment(
            [RangeParameterConfig(name, (float(low), float(high)), "float") for name, (low, high) in ranges]
        )
        self.limited = [] if system.limit is None else ["impurity"]
        constraints = [f"impurity <= {system.limit}"] if self.limited else None
        self.client.configure_optimization("reward", constraints)
        # The start design is that of all.
        self.client.configure_generation_strategy(initialization_budget=0, initialize_with_center=False)
        self.pending = dict[int, dict[str, float]]()

    def tell(self, action: Values, nodes: Values) -> None:
        """Adds an experiment."""
        number = next((key for key, setting in self.pending.items() if setting == action), None)
        number = self.client.attach_trial(dict(action)) if number is None else number
        limited = {name: nodes[name] for name in self.limited}
        self.client.complete_trial(number, {"reward": nodes[self.reward], **limited})

    def ask(self) -> dict[str, float]:
        """The next experiment."""
        ((number, action),) = self.client.get_next_trials(1).items()
        self.pending = {number: {name: float(value) for name, value in action.items()}}
        return dict(self.pending[number])

    def best(self) -> dict[str, float]:
        """The recommended setting."""
        action = self.client.get_best_parameterization()[0]
        return {name: float(value) for name, value in action.items()}


class BayBE:
    """BayBE by its campaign, with its default recommender."""

    def __init__(self, system: Any, seed: int) -> None:
        from baybe import Campaign
        from baybe.objectives import SingleTargetObjective
        from baybe.parameters import NumericalContinuousParameter
        from baybe.searchspace import SearchSpace
        from baybe.targets import NumericalTarget

        torch.manual_seed(seed)
        self.reward, ranges = system.reward_name, system.ranges.items()
        parameters = [NumericalContinuousParameter(name, bounds) for name, bounds in ranges]
        self.names = [name for name, _ in ranges]
        space = SearchSpace.from_product(parameters)
        self.campaign = Campaign(space, SingleTargetObjective(NumericalTarget(self.reward)))

    def tell(self, action: Values, nodes: Values) -> None:
        """Adds an experiment."""
        self.campaign.add_measurements(pd.DataFrame([{**action, self.reward: nodes[self.reward]}]))

    def ask(self) -> dict[str, float]:
        """The next experiment."""
        return self.campaign.recommend(1)[self.names].iloc[0].to_dict()

    def best(self) -> dict[str, float]:
        """The experiment with the best posterior mean."""
        means = self.campaign.posterior_stats()[f"{self.reward}_mean"]
        return self.campaign.measurements[self.names].iloc[int(means.to_numpy().argmax())].to_dict()


WORLDS = {"network": DrawnSystem, "reactor": LimitedReactor}
TOOLS: dict[str, tuple[Any, str]] = {
    "here": (Here, "rehearsal_torch"),
    "Ax": (Ax, "ax"),
    "BayBE": (BayBE, "baybe"),
}


def campaign(world: str, tool: str, seed: int, rounds: int) -> list[dict[str, Any]]:
    """What a tool recommends at half and at the end of a campaign."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    system = WORLDS[world](seed)
    design = rt.CausalOptimiser(system.task, seed=seed, initial=system.initial).ask(system.initial)
    optimiser, seconds, rows = TOOLS[tool][0](system, seed), 0.0, list[dict[str, Any]]()
    for action in design:
        optimiser.tell(action, system.run(action))
    for number in range(1, rounds + 1):
        began = time.process_time()
        action = optimiser.ask()
        seconds += time.process_time() - began
        optimiser.tell(action, system.run(action))
        if number in (rounds // 2, rounds):
            kept, regret = system.allowed(best := optimiser.best()), system.regret(best)
            row = {"world": world, "tool": tool, "seed": seed, "rounds": number}
            rows.append({**row, "kept": kept, "regret": regret, "seconds": seconds / number})
    return rows


def main() -> None:
    """Prints a line for each campaign, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("first", 1000), ("last", 1004), ("rounds", 20), ("jobs", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    seeds, rows = range(options.first, options.last + 1), list[dict[str, Any]]()
    present = [name for name, (_, package) in TOOLS.items() if find_spec(package)]
    pairs = [(world, tool) for world in WORLDS for tool in present if (world, tool) != ("reactor", "BayBE")]
    work = [delayed(campaign)(*pair, seed, options.rounds) for seed in seeds for pair in pairs]
    for answer in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
        rows += answer
        print(answer[-1], flush=True)
    print("\n| world | tool | after | regret [95 %] | keep the limit | CPU s per proposal |")
    print("|---|---|---:|---:|---:|---:|")
    for keys, group in pd.DataFrame(rows).groupby(["world", "tool", "rounds"], sort=False):
        # Of what breaks the limit a regret says nothing.
        regret = t_interval(group["regret"][group["kept"]].tolist())
        seconds = t_interval(group["seconds"].tolist())
        cells = *keys, regret, f"{group['kept'].sum()} of {len(group)}", seconds
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
