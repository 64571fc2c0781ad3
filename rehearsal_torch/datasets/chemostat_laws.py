"""Two laws of a chemostat over one day: fitted Gaussian processes, and differential equations.

Both follow the graph

    N <- N_in, N', P'      P <- N, P'      J <- P, J', A'      A <- P, A'      D <- J, A, D'        (' is the day before).

Fitted: the posterior mean of a Gaussian process with a normal error, x = m(z) + s U, learnt from pairs of days. Differential
equations, with each one integrated over the day while what else it reads keeps the value that the graph gives it:

    N' = delta (N_in - N) - r_P N P / (K_P + N),      P' = r_P N P / (K_P + N) - delta P,      J' = -(m + delta) J,
    A' = beta R - (m + delta) A,      D' = m (J + A) - delta D,      R = F_B(P) A' e^{-delta theta} from the hour theta on,
    F_B(P) = r_B P^k / (K_B^k + P^k).

What hatches is adult at once (tau = 0), so juveniles only die and leave. With theta = 1 nothing hatches within the day, and nitrogen and algae
do not reach the dead. Grazing is left out of P, as the graph has no animals there. D is exact where nothing hatches.

Source: Ren et al. (2025), Eq. 9-14; Blasius et al. (2020) in the form of Aglietti et al. (2021), released code; the nodewise integration is ours.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from torch import Tensor

from rehearsal_torch.datasets.chemostat_rows import VARIABLES

PARENTS = {
    "N": ("N_in", "N0", "P0"),
    "P": ("N", "P0"),
    "J": ("P", "J0", "A0"),
    "A": ("P", "A0"),
    "E": ("P", "A", "E0"),
    "D": ("J", "A", "D0"),
}
DILUTION, DEATH, BETA = 0.55, 0.15, 5.0
PREY_RATE, PREY_HALF, PREDATOR_RATE, PREDATOR_HALF, POWER = 3.3, 4.3, 2.25, 15.0, 1.25
STEPS = 24


class ChemostatLaw(ABC):
    """What a node is on the next day, but for its noise."""

    @abstractmethod
    def mean(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor:
        """Parents, name to (...), in the data's units -> (...)."""

    @abstractmethod
    def deviation(self, node: str) -> float:
        """The standard deviation of a node's noise for a unit of it."""


@dataclass(frozen=True)
class DailyEquations(ChemostatLaw):
    """The differential equations.

    Attributes:
        hatching: theta, in days, up to 1.
    """

    hatching: float = 1.0

    def mean(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor:
        """The solution after a day."""
        if node == "N":
            return self._nitrogen(inputs["N_in"], inputs["N0"].clamp_min(0), inputs["P0"].clamp_min(0))
        if node == "P":
            nitrogen = inputs["N"].clamp_min(0)
            return inputs["P0"] * torch.exp(PREY_RATE * nitrogen / (PREY_HALF + nitrogen) - DILUTION)
        if node == "J":
            return inputs["J0"] * math.exp(-DEATH - DILUTION)
        if node == "A":
            prey = inputs["P"].clamp_min(0) ** POWER
            grown = PREDATOR_RATE * prey / (PREDATOR_HALF**POWER + prey) * math.exp(-DILUTION * self.hatching)
            share = -math.expm1(-(DEATH + DILUTION) * (1 - self.hatching)) / (DEATH + DILUTION)
            return inputs["A0"] * (math.exp(-DEATH - DILUTION) + BETA * grown * share)
        return inputs["D0"] * math.exp(-DILUTION) + (inputs["J"] + inputs["A"]) * math.expm1(DEATH)

    def deviation(self, node: str) -> float:  # noqa: ARG002
        """1: standard normal noise, as in the paper."""
        return 1.0

    def _nitrogen(self, inflow: Tensor, nitrogen: Tensor, prey: Tensor) -> Tensor:
        """N after a day, by implicit midpoint-like steps that keep it positive."""
        step = 1 / STEPS
        for _ in range(STEPS):
            # Uptake is N times something: taken implicitly, N stays positive whatever the step.
            taken = PREY_RATE * prey / (PREY_HALF + nitrogen)
            nitrogen = (nitrogen + step * DILUTION * inflow) / (1 + step * (DILUTION + taken))
        return nitrogen


class FittedProcesses(ChemostatLaw):
    """Gaussian processes fitted to pairs of days.

    Args:
        before: Rows (n, 7), in the order of `VARIABLES`.
        after: The rows that follow them.
        rows: How many pairs are learnt from, evenly spread over them.
    """

    def __init__(self, before: Tensor, after: Tensor, rows: int = 300) -> None:
        place = torch.linspace(0, len(before) - 1, min(rows, len(before))).round().long()
        known = {f"{name}0": before[place, column] for column, name in enumerate(VARIABLES)}
        known.update({name: after[place, column] for column, name in enumerate(VARIABLES)})
        self._learnt = {node: _Process(torch.stack([known[name] for name in names], -1), known[node]) for node, names in PARENTS.items() if node not in ("E",)}

    def mean(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor:
        """The posterior mean."""
        return self._learnt[node].mean(torch.stack(torch.broadcast_tensors(*(inputs[name] for name in PARENTS[node])), -1))

    def deviation(self, node: str) -> float:
        """The error's standard deviation."""
        return self._learnt[node].noise


class _Process:
    """One Gaussian process: squared-exponential kernel with a length for each input, on standardised values; a constant input is left out."""

    def __init__(self, inputs: Tensor, values: Tensor) -> None:
        self.kept = inputs.std(0) > 0
        kept = inputs[:, self.kept]
        self.centre, self.spread = kept.mean(0), kept.std(0)
        self.level, self.unit = values.mean(), values.std()
        scaled = ((kept - self.centre) / self.spread).numpy()
        kernel = ConstantKernel(1.0) * RBF([1.0] * scaled.shape[1], (0.05, 1e3)) + WhiteKernel(0.5, (1e-4, 10.0))
        process = GaussianProcessRegressor(kernel, random_state=0)
        with warnings.catch_warnings():
            # A length at its upper bound means that the input does not matter; that is an answer.
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(scaled, ((values - self.level) / self.unit).numpy())
        found = process.kernel_
        self.lengths = torch.as_tensor(found.k1.k2.length_scale, dtype=torch.float64).reshape(-1)
        self.points, self.weights = torch.from_numpy(scaled) / self.lengths, float(found.k1.k1.constant_value) * torch.from_numpy(process.alpha_)
        self.noise = float(found.k2.noise_level) ** 0.5 * float(self.unit)

    def mean(self, inputs: Tensor) -> Tensor:
        """(..., p) -> (...)."""
        scaled = (inputs[..., self.kept] - self.centre) / self.spread / self.lengths
        flat = scaled.reshape(-1, scaled.shape[-1])
        squares = (flat**2).sum(-1, keepdim=True) + (self.points**2).sum(-1) - 2 * flat @ self.points.T
        return self.level + self.unit * (torch.exp(-0.5 * squares) @ self.weights).reshape(scaled.shape[:-1])
