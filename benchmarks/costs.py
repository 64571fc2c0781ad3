"""Experiments that cost differently: the regret of what is recommended against the money spent.

Every seed is another plant, whose quality follows from two cheap settings, and whose yield from the quality
and from a dose that costs ten times as much at its largest as at none:

    quality = sin(5 heat + p) cos(3 flow + q) + U,   yield = -2 (quality - t)^2 + sin(5 dose / 2 + w) + U',

with noise of standard deviation .1. An experiment costs 1 + 9 dose. The optimum is that of a grid of 61^3
settings, the regret a share of the range of expected yields, after the start design of 6 experiments.

Run: python benchmarks/costs.py [--first 1000] [--last 1009] [--budget 18]
"""

import argparse
import time

import numpy as np
import torch

import rehearsal_torch as rt

INITIAL, SIDE, STEP = 6, 61, 3
ACTIONS = {"heat": [0, 1], "flow": [0, 1], "dose": [0, 1]}
TASK = {"graph": ["{heat flow} -> quality", "{quality dose} -> yield"], "actions": ACTIONS, "reward": "yield"}
PRICED = {**TASK, "actions": {**ACTIONS, "dose": {"range": [0, 1], "cost": 9}}, "cost": 1}


class Plant:
    """The plant of a seed."""

    def __init__(self, seed: int) -> None:
        draw, self.stream = np.random.default_rng([seed, 5]), np.random.default_rng([seed, 6])
        self.heat, self.flow, self.dose = (draw.uniform(-end, end) for end in (1, 1, 0.6))
        self.target = draw.uniform(0.3, 0.9)
        self.noise = 0.1 * np.random.default_rng(1).normal(size=32)
        means = self.expected(*np.meshgrid(*[np.linspace(0, 1, SIDE)] * 3))
        self.optimum, self.reach = float(means.max()), float(np.ptp(means))

    def quality(self, heat: np.ndarray, flow: np.ndarray) -> np.ndarray:
        """The mean quality of settings."""
        return np.sin(5 * heat + self.heat) * np.cos(3 * flow + self.flow)

    def made(self, quality: np.ndarray, dose: np.ndarray) -> np.ndarray:
        """The mean yield of a quality and a dose."""
        return -2 * (quality - self.target) ** 2 + np.sin(2.5 * dose + self.dose)

    def expected(self, heat: np.ndarray, flow: np.ndarray, dose: np.ndarray) -> np.ndarray:
        """The mean yield of settings."""
        return np.mean([self.made(self.quality(heat, flow) + each, dose) for each in self.noise], 0)

    def run(self, heat: float, flow: float, dose: float) -> dict[str, float]:
        """One experiment."""
        own = 0.1 * self.stream.normal(size=2)
        quality = self.quality(heat, flow) + own[0]
        return {"quality": quality, "yield": self.made(quality, dose) + own[1]}


def campaign(seed: int, weighed: bool, budget: float) -> list[tuple[float, float]]:
    """Money spent after the start design, and the regret, after each experiment until the budget is spent."""
    plant, rows, money = Plant(seed), list[tuple[float, float]](), 0.0
    method = None if weighed else "qlognei"
    optimiser = rt.CausalOptimiser(PRICED if weighed else TASK, seed=seed, initial=INITIAL, method=method)
    for action in (optimiser.ask()[0] for _ in range(INITIAL)):
        optimiser.tell(action, plant.run(**action))
    while not rows or money < budget:
        if rows:
            (action,) = optimiser.ask()
            optimiser.tell(action, plant.run(**action))
            money += 1 + 9 * action["dose"]
        best = plant.expected(**optimiser.recommend().action)
        rows.append((money, (plant.optimum - float(best)) / plant.reach))
    return rows


def main() -> None:
    """Prints a line for each campaign, and the mean and median regrets at some sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("first", 1000), ("last", 1009), ("budget", 18)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.set_num_threads(1)
    curves: dict[bool, list[list[tuple[float, float]]]] = {True: [], False: []}
    for seed in range(options.first, options.last + 1):
        for weighed, rows in curves.items():
            began = time.process_time()
            rows.append(campaign(seed, weighed, options.budget))
            print(
                seed,
                "weighed" if weighed else "not weighed",
                rows[-1],
                f"{time.process_time() - began:.0f} s",
            )
    for money in range(0, options.budget + 1, STEP):
        for weighed, campaigns in curves.items():
            regrets = [[regret for sum_, regret in rows if sum_ <= money][-1] for rows in campaigns]
            words = f"{np.mean(regrets):.3f}, median {np.median(regrets):.3f}"
            print(f"after {money}, costs {'' if weighed else 'not '}weighed: mean regret {words}")


if __name__ == "__main__":
    main()
