"""Experiments whose best setting is not allowed: how often what is recommended keeps an outcome constraint.

Every seed is another reactor: heat and flow set a temperature, which with the flow makes yield and impurity,

    T = s heat - c flow + U,   impurity = sigmoid(r (T - k)) + d (flow - 1/2) + U',
    yield = exp(-((T - p) / w)^2 / 2) (1 - b (flow - .6)^2) + U''.

At the largest expected yield the impurity is above its limit; some half of all settings keep it as asked. The
truth is a mean over 1,024 Sobol draws of the noise, the optimum that of a grid of 81 x 81 settings. A setting
is feasible in truth if experiments at it keep the limit with the share that was asked for. The regret is the
distance to the best feasible setting as a share of the range of expected yields.

Run: python benchmarks/constraints.py [--first 1000] [--last 1011] [--rounds 16] [--share 0.9]
"""

import argparse
import itertools
import time

import numpy as np
import torch
from torch import Tensor

import rehearsal_torch as rt
from rehearsal_torch.problems.trials.mixture_noise import STANDARD, sobol_draws

INITIAL, SIDE = 8, 81
EDGES = ["heat -> temperature", "{temperature flow} -> {impurity yield}", "flow -> temperature"]


class Reactor:
    """The reactor of a seed."""

    def __init__(self, seed: int, share: float) -> None:
        draw, self.share = np.random.default_rng([seed, 7]), share
        self.slope, self.cool = draw.uniform(1.5, 2.5), draw.uniform(0.3, 0.8)
        self.peak, self.width = draw.uniform(1.0, 1.5), draw.uniform(0.6, 1.0)
        self.bend = draw.uniform(0.3, 0.8)
        self.knee, self.steep = draw.uniform(0.7, 1.3), draw.uniform(1.5, 4.0)
        self.drift, self.noise = draw.uniform(-0.2, 0.2), draw.uniform(0.03, 0.12, 3)
        self.stream = np.random.default_rng([seed, 8])
        ends = torch.linspace(0, 1, SIDE, dtype=torch.float64)
        self.draws, grid = sobol_draws([STANDARD] * 3, 10), torch.cartesian_prod(ends, ends)
        _, impurity, reward = self.nodes(grid.unsqueeze(1), self.draws).unbind(-1)
        means, bounds = reward.mean(-1), impurity.quantile(share, -1)
        between = 0.6 * bounds[means.argmax()] + 0.4 * bounds.min()
        self.limit = round(float(torch.minimum(bounds.quantile(0.5), between)), 3)
        feasible = (impurity <= self.limit).double().mean(-1) >= share
        self.optimum, self.reach = float(means[feasible].max()), float(means.max() - means.min())
        self.task = {
            "graph": EDGES,
            "actions": {"heat": [0, 1], "flow": [0, 1]},
            "reward": "yield",
            "constraints": f"impurity <= {self.limit} with {100 * share:g} %",
        }

    def nodes(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Temperature, impurity and yield of actions (..., 2) under standard noise (..., 3)."""
        heat, flow = actions.unbind(-1)
        own = torch.from_numpy(self.noise) * noise
        temperature = self.slope * heat - self.cool * flow + own[..., 0]
        impurity = torch.sigmoid(self.steep * (temperature - self.knee)) + self.drift * (flow - 0.5)
        made = torch.exp(-(((temperature - self.peak) / self.width) ** 2) / 2) * (
            1 - self.bend * (flow - 0.6) ** 2
        )
        return torch.stack([temperature, impurity + own[..., 1], made + own[..., 2]], -1)

    def run(self, action: dict[str, float]) -> dict[str, float]:
        """One experiment."""
        noise = torch.from_numpy(self.stream.standard_normal(3))
        values = self.nodes(torch.tensor([action["heat"], action["flow"]], dtype=torch.float64), noise)
        return dict(zip(("temperature", "impurity", "yield"), values.tolist(), strict=True))

    def truth(self, action: dict[str, float]) -> tuple[bool, float]:
        """Whether a setting is feasible, and its regret."""
        setting = torch.tensor([action["heat"], action["flow"]], dtype=torch.float64)
        _, impurity, reward = self.nodes(setting, self.draws).unbind(-1)
        kept = float((impurity <= self.limit).double().mean())
        return kept >= self.share, (self.optimum - float(reward.mean())) / self.reach


def main() -> None:
    """Prints a line for each reactor and number of rounds, and the shares over all reactors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("first", 1000), ("last", 1011), ("rounds", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--share", type=float, default=0.9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds, tried = (0, options.rounds // 4, options.rounds // 2, options.rounds), list[bool]()
    rows = list[tuple[int, bool, bool, float]]()
    for seed in range(options.first, options.last + 1):
        reactor, began = Reactor(seed, options.share), time.process_time()
        optimiser = rt.CausalOptimiser(reactor.task, seed=seed, initial=INITIAL)
        for action in optimiser.ask(INITIAL):
            optimiser.tell(action, reactor.run(action))
        for count in itertools.count():
            if count in rounds:
                best = optimiser.recommend()
                rows.append((count, best.feasible, *reactor.truth(best.action)))
                print(seed, *rows[-1], *best.constraints, f"{time.process_time() - began:.0f} s", flush=True)
            if count == options.rounds:
                break
            (action,) = optimiser.ask()
            tried.append(reactor.truth(action)[0])
            optimiser.tell(action, reactor.run(action))
    for count in dict.fromkeys(rounds):
        claims = [
            (claimed, feasible, regret) for number, claimed, feasible, regret in rows if number == count
        ]
        regrets = [regret for _, feasible, regret in claims if feasible]
        print(
            f"after {count} rounds: {sum(claimed for claimed, *_ in claims)} of {len(claims)} claimed to be "
            f"feasible, {len(regrets)} are, with a median regret of {np.median(regrets):.3f}"
        )
    print(f"infeasible among the trials of the rounds: {1 - np.mean(tried):.2f}")


if __name__ == "__main__":
    main()
