"""Linear Gaussian worlds whose truth is written down: the managing task of the CARE paper, and a chain with
one outcome.

Everything is drawn equation by equation with NumPy, so that the package's closed forms are judged by
something that does not use them.
"""

from dataclasses import dataclass

import numpy as np
import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope


@dataclass(frozen=True)
class Truth:
    """v = intercept + weights' parents + noise for each variable, in the order of `names`."""

    task: RehearsalTask
    names: tuple[str, ...]
    coefficients: dict[str, dict[str, float]]
    intercepts: dict[str, float]
    covariance: np.ndarray

    def draw(self, count, seed=0, given=None, altered=None):
        """Values (count, d): context variables as given, altered ones as set, the others by their
        equations."""
        noise = np.random.default_rng(seed).multivariate_normal(
            np.zeros(len(self.names)), self.covariance, count
        )
        fixed, columns = {**(given or {}), **(altered or {})}, {}
        for place, name in enumerate(self.names):
            by_equation = (
                self.intercepts.get(name, 0.0)
                + sum(w * columns[p] for p, w in self.coefficients.get(name, {}).items())
                + noise[:, place]
            )
            columns[name] = np.full(count, fixed[name]) if name in fixed else by_equation
        return np.stack([columns[name] for name in self.names], -1)

    def table(self, count, seed=0):
        return Table.observed(self.names, torch.from_numpy(self.draw(count, seed)))

    def cases(self, count, seed=1):
        rows = self.draw(count, seed)
        place = [self.names.index(name) for name in self.task.context]
        given = [
            {
                name: torch.tensor(row[p], dtype=torch.float64)
                for name, p in zip(self.task.context, place, strict=True)
            }
            for row in rows
        ]
        return [RehearsalCase(str(index), each, self.task.box.bounds()) for index, each in enumerate(given)]

    def success(self, one_case, altered, count=20000, seed=5):
        """Simulated P(Y in S | x, alteration)."""
        given = {name: float(value) for name, value in one_case.given.items()}
        rows = torch.from_numpy(self.draw(count, seed, given, altered))
        return float(
            self.task.region.contains(rows[:, [self.names.index(name) for name in self.task.outcomes]])
            .double()
            .mean()
        )


def managing(region=None, candidates=(("raw_cost", "self_pricing"),)):
    """Two contexts, two actions, two outcomes; the noise of both actions is correlated."""
    names = ("cf", "ei", "crc", "raw_cost", "self_pricing", "competitor_pricing", "profit", "customers")
    coefficients = {
        "crc": {"cf": 10.0},
        "raw_cost": {"ei": 10.0},
        "self_pricing": {"raw_cost": 2.0, "crc": 0.4},
        "competitor_pricing": {"raw_cost": 0.5, "crc": 1.3},
        "profit": {"raw_cost": -1.0, "self_pricing": 0.9},
        "customers": {"raw_cost": 1.6, "self_pricing": -0.9},
    }
    covariance = np.diag([0.04, 0.04, 0.06, 0.03, 0.06, 0.06, 0.04, 0.12])
    covariance[3, 4] = covariance[4, 3] = 0.016
    wanted = region or Polytope.of({"profit": (0.6, 1.8), "customers": (0.7, 2.3)})
    graph = RehearsalGraph.of({child: list(parents) for child, parents in coefficients.items()})
    box = Box.of({"raw_cost": (-6.0, 6.0), "self_pricing": (-6.0, 6.0)})
    return Truth(
        RehearsalTask(graph, ("cf", "ei"), box, wanted, candidates), names, coefficients, {}, covariance
    )


def chain(lower=1.0, upper=2.0, noise=0.3, reach=1.0):
    """x -> a -> m -> y with x -> y: one outcome; a and m may be set, together or alone."""
    coefficients = {"a": {"x": 0.8}, "m": {"a": 1.5}, "y": {"m": 1.0, "x": -0.7}}
    graph = RehearsalGraph.of({child: list(parents) for child, parents in coefficients.items()})
    box = Box.of({"a": (-reach, reach), "m": (-reach, reach)})
    task = RehearsalTask(graph, ("x",), box, Polytope.of({"y": (lower, upper)}), (("a",), ("m",), ("a", "m")))
    return Truth(
        task, ("x", "a", "m", "y"), coefficients, {"m": 0.2, "y": 0.4}, np.diag([1.0, 0.25, 0.09, noise**2])
    )
