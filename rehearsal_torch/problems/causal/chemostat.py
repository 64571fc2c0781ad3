"""Plankton in a chemostat: reducing tomorrow's dead animals.

The actions are the nitrogen of the inflow and the juvenile and adult predators of today; the reward is minus
tomorrow's dead, -D. Prey, predators and dead of today are context: roots, sampled jointly as rows of the
data. Eggs do not affect the reward and are pruned.

Algae, rotifers and their dead follow the graph

    N <- N_in, N', P'      P <- N, P'      J <- P, J', A'      A <- P, A'      D <- J, A, D'
    (' is the day before).

There are two dynamics, and both are smoke tests, not rankings. `gp` (`FittedProcesses`) is the posterior mean
of a Gaussian process with a normal error, x = m(z) + s U, fitted to pairs of days: there the inflow is the
same in C1 ... C4, and the three actions move E[-D] by less than .05 where the noise has a standard deviation
of .76. `ode` (`DailyEquations`) are differential equations, in which the dead increase with J and A, so that
J = A = 0 is the best action, exactly, for any inflow. Each is integrated over the day while its other inputs
keep the values given by the graph:

    N' = delta (N_in - N) - r_P N P / (K_P + N),      P' = r_P N P / (K_P + N) - delta P,
    J' = -(m + delta) J,
    A' = beta R - (m + delta) A,      D' = m (J + A) - delta D,
    R = F_B(P) A' e^{-delta theta} from the hour theta on,
    F_B(P) = r_B P^k / (K_B^k + P^k).

Hatched animals are adult at once (tau = 0), so juveniles only die and are washed out. With theta = 1 nothing
hatches within the day, and nitrogen and algae do not affect the dead. Grazing is left out of P, as the graph
has no animals there. D is exact where nothing hatches.

Contexts (`equation_states`) are days of the coupled system

    N' = delta (N_in - N) - F_P P,   P' = F_P P - F_B (beta J + A) / eps - delta P,
    E' = R_E - R_J - delta E,   J' = -(m + delta) J,
    A' = beta R_J - (m + delta) A,   D' = m (J + A) - delta D,   R_E = F_B A,
    R_J(t) = R_E(t - theta) e^{-delta theta},      theta = 1 day,

from N = 41.3, P = 2.716, J = 1.23, A = 6.15, D = 0, by Euler steps of a hundredth of a day. Predator and prey
oscillate.

Measurements (`chemostat_pairs`) of ten long-term experiments, with gaps filled by cubic interpolation and
negative values set to 0, give

    N = 28 algae,   P = .57 rotifers,   D = .57 dead,   E = .57 eggs,   B = 5 eggs / egg ratio,   A = .285 B,
    J = .057 B,

so that J is A / 5 exactly. N and P are prey and predator here, nitrogen and phytoplankton in the differential
equations that the letters come from.

Source: Ren et al. (2025), Sec. 7.5 and 11.6, Eq. 9-14; Blasius et al. (2020),
doi:10.6084/m9.figshare.10045976, CC BY 4.0, in the form of Aglietti et al. (2021), released code; the
nodewise integration is ours.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.reading import TableError, table_file
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.noise import STANDARD, MixtureNoise, sobol_draws
from rehearsal_torch.problems.causal.optimum import best_action
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

VARIABLES = ("N_in", "N", "P", "J", "A", "E", "D")
COLUMNS = (
    "algae (10^6 cells/ml)",
    "rotifers (animals/ml)",
    "egg-ratio",
    "eggs (per ml)",
    "dead animals (per ml)",
    "external medium (mu mol N / l)",
)
HOW = (
    "the ten files C1.csv ... C10.csv of doi:10.6084/m9.figshare.10045976 (CC BY 4.0) belong there: download "
    "them from https://figshare.com/articles/dataset/10045976 into one folder and set path= to it, or use "
    "scm=ode, which needs no data"
)


def chemostat_pairs(path: str | Path | None, series: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Pairs of consecutive days of experiments, such as C1, (n, 7) each: columns as in `VARIABLES`."""
    if path is None:
        raise TableError(f"scm=gp needs measurements, and path= names no folder: {HOW}")
    before, after = [], []
    for name in series:
        file = Path(path) / f"{name}.csv"
        if not file.is_file():
            raise TableError(f"there is no file {file}: {HOW}")
        rows = _prepared(file)
        before.append(rows[:-1])
        after.append(rows[1:])
    return torch.cat(before), torch.cat(after)


def _prepared(file: Path) -> Tensor:
    frame = table_file(file)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        expected = f"expected those of doi:10.6084/m9.figshare.10045976, {list(COLUMNS)}"
        raise TableError(f"{file} has no column {missing}: {expected}")
    filled = frame[list(COLUMNS)].astype(float).interpolate(method="cubic").fillna(0.0).clip(lower=0.0)
    algae, rotifers, ratio, eggs, dead, medium = filled.to_numpy().T
    biomass = np.where(ratio > 0, 5 * eggs / np.where(ratio > 0, ratio, 1.0), 0.0)
    animals = [0.57 * rotifers, 0.057 * biomass, 0.285 * biomass, 0.57 * eggs, 0.57 * dead]
    return torch.from_numpy(np.stack([medium, 28 * algae, *animals], -1))


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


@dataclass(frozen=True)
class DailyEquations:
    """The differential equations; `hatching` is theta, in days, up to 1."""

    hatching: float = 1.0

    def mean(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor:
        """A node after a day, from its parents, name to (...), in the data's units -> (...)."""
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

    def std(self, node: str) -> float:  # noqa: ARG002
        """1: standard normal noise, as in the paper."""
        return 1.0

    def _nitrogen(self, inflow: Tensor, nitrogen: Tensor, prey: Tensor) -> Tensor:
        """N after a day, by implicit midpoint-like steps that keep it positive."""
        step = 1 / STEPS
        for _ in range(STEPS):
            # Uptake is proportional to N: an implicit step keeps N positive for any step size.
            taken = PREY_RATE * prey / (PREY_HALF + nitrogen)
            nitrogen = (nitrogen + step * DILUTION * inflow) / (1 + step * (DILUTION + taken))
        return nitrogen


class FittedProcesses:
    """Gaussian processes fitted to evenly spaced pairs of days, (n, 7) each, in the order of `VARIABLES`."""

    def __init__(self, before: Tensor, after: Tensor, rows: int = 300) -> None:
        spaced = torch.linspace(0, len(before) - 1, min(rows, len(before))).round().long()
        columns = {f"{name}0": before[spaced, column] for column, name in enumerate(VARIABLES)}
        columns.update({name: after[spaced, column] for column, name in enumerate(VARIABLES)})
        self._learnt = {
            node: _Process(torch.stack([columns[name] for name in names], -1), columns[node])
            for node, names in PARENTS.items()
            if node != "E"
        }

    def mean(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor:
        """The posterior mean."""
        columns = torch.broadcast_tensors(*(inputs[name] for name in PARENTS[node]))
        return self._learnt[node].mean(torch.stack(columns, -1))

    def std(self, node: str) -> float:
        """The error's standard deviation."""
        return self._learnt[node].noise


class _Process:
    """A squared-exponential process on standardised values; constant inputs are dropped."""

    def __init__(self, inputs: Tensor, values: Tensor) -> None:
        self.kept = inputs.std(0) > 0
        varying = inputs[:, self.kept]
        self.centre, self.spread = varying.mean(0), varying.std(0)
        self.level, self.unit = values.mean(), values.std()
        scaled = ((varying - self.centre) / self.spread).numpy()
        smooth = ConstantKernel(1.0) * RBF([1.0] * scaled.shape[1], (0.05, 1e3))
        process = GaussianProcessRegressor(smooth + WhiteKernel(0.5, (1e-4, 10.0)), random_state=0)
        with warnings.catch_warnings():
            # A length scale at its upper bound means that the input does not matter, a valid result.
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(scaled, ((values - self.level) / self.unit).numpy())
        kernel_fitted = process.kernel_
        self.lengths = torch.as_tensor(kernel_fitted.k1.k2.length_scale, dtype=torch.float64).reshape(-1)
        self.points = torch.from_numpy(scaled) / self.lengths
        self.weights = float(kernel_fitted.k1.k1.constant_value) * torch.from_numpy(process.alpha_)
        self.noise = float(kernel_fitted.k2.noise_level) ** 0.5 * float(self.unit)

    def mean(self, inputs: Tensor) -> Tensor:
        """(..., p) -> (...)."""
        scaled = (inputs[..., self.kept] - self.centre) / self.spread / self.lengths
        flat = scaled.reshape(-1, scaled.shape[-1])
        squares = (flat**2).sum(-1, keepdim=True) + (self.points**2).sum(-1) - 2 * flat @ self.points.T
        return self.level + self.unit * (torch.exp(-0.5 * squares) @ self.weights).reshape(scaled.shape[:-1])


INFLOW, YIELD, DELAY = 80.0, 0.25, 1.0
STEPS_A_DAY = 100
DAYS = 256


@lru_cache(maxsize=1)
def equation_states() -> Tensor:
    """N, P and D of 256 consecutive days, (256, 3)."""
    nitrogen, prey, young, adult, dead = 41.3, 2.716, 1.23, 6.15, 0.0
    step, laid, days = 1 / STEPS_A_DAY, [], []
    for number in range(DAYS * STEPS_A_DAY):
        if number % STEPS_A_DAY == 0:
            days.append((nitrogen, prey, dead))
        uptake = PREY_RATE * nitrogen / (PREY_HALF + nitrogen)
        grazing = PREDATOR_RATE * prey**POWER / (PREDATOR_HALF**POWER + prey**POWER)
        laid.append(grazing * adult)
        late = number - round(DELAY * STEPS_A_DAY)
        hatched = laid[late] * math.exp(-DILUTION * DELAY) if late >= 0 else 0.0
        grown = uptake * prey - grazing * (BETA * young + adult) / YIELD - DILUTION * prey
        nitrogen, prey, young, adult, dead = (
            nitrogen + step * (DILUTION * (INFLOW - nitrogen) - uptake * prey),
            max(0.0, prey + step * grown),
            young - step * (DEATH + DILUTION) * young,
            adult + step * (BETA * hatched - (DEATH + DILUTION) * adult),
            dead + step * (DEATH * (young + adult) - DILUTION * dead),
        )
    return torch.tensor(days, dtype=torch.float64)


BOUNDS = {"N_in": (60.0, 100.0), "J0": (0.0, 36.0), "A0": (0.0, 180.0)}
ROOTS = ("N0", "P0", "D0")


class Chemostat(CausalWorld):
    """The chemostat world.

    Args:
        scm: "gp", fitted to the measurements, or "ode".
        path: The folder with C1.csv ... C10.csv, for "gp".
        series: Names of the experiments used, for "gp".
        hatching: theta of the differential equations, in days; below 1 some animals hatch within the day.
        sigma: Multiplies the noise of all nodes but the roots.
        rows: Number of pairs of days that the Gaussian processes are fitted to.
        size: Number of rounds and of experiments in the start design; by default 100 and 8.

    Raises:
        ValueError: for another `scm`, a delay outside [0, 1], or a negative `sigma`.
        TableError: for "gp", if a file is missing; the message says where to get the files.
    """

    source = "Ren et al. (2025), Sec. 7.5 and 11.6; data: Blasius et al. (2020), CC BY 4.0"

    def __init__(
        self,
        scm: Literal["gp", "ode"] = "ode",
        path: str | Path | None = None,
        series: Sequence[str] = ("C1", "C2", "C3", "C4"),
        hatching: float = 1.0,
        sigma: float = 1.0,
        rows: int = 300,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        if scm not in ("gp", "ode") or not 0 <= hatching <= 1 or not sigma >= 0:
            expected = "expected scm gp or ode, hatching in [0, 1] and sigma of at least 0"
            raise ValueError(f"{expected}; got {scm!r}, {hatching} and {sigma}")
        self.scm, self.sigma = scm, float(sigma)
        self.dynamics: DailyEquations | FittedProcesses
        if scm == "gp":
            before, after = chemostat_pairs(path, series)
            self.dynamics = FittedProcesses(before, after, rows)
            self.contexts = before[:, [VARIABLES.index(name[0]) for name in ROOTS]]
        else:
            self.dynamics, self.contexts = DailyEquations(hatching), equation_states()
        graph = RehearsalGraph.of({**dict.fromkeys((*ROOTS, "E0"), ()), **PARENTS})
        task = CausalTask(graph, Box.of(BOUNDS), WeightedSum({"D": -1.0}))
        # For the roots, mean and standard deviation only describe them: whole rows are drawn.
        distributions = {
            name: MixtureNoise((1.0,), (float(column.mean()),), (float(column.std()),))
            for name, column in zip(ROOTS, self.contexts.T, strict=True)
        }
        super().__init__(task, {**dict.fromkeys(task.nodes, STANDARD), **distributions}, size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """A root is its noise; the others follow from the day before."""
        if node in ROOTS:
            return noise
        return self.dynamics.mean(node, inputs) + self.sigma * self.dynamics.std(node) * noise

    def noise_rows(self, count: int, stream: np.random.Generator) -> Tensor:
        """Roots: rows of the contexts, sampled jointly. The other nodes: standard normal draws."""
        noise = torch.from_numpy(stream.standard_normal((count, len(self.task.nodes))))
        return self._with_contexts(noise, stream.integers(len(self.contexts), size=count))

    def _with_contexts(self, noise: Tensor, chosen: Any) -> Tensor:
        noise[:, [self.task.nodes.index(name) for name in ROOTS]] = self.contexts[chosen]
        return noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[-D | a]: the mean over all contexts, each with its own Sobol noise; D's own noise has mean 0."""
        return self.averaged(actions, self._even)

    @cached_property
    def _even(self) -> Tensor:
        count = len(self.contexts)
        noise = sobol_draws([STANDARD] * len(self.task.nodes), (count - 1).bit_length())[:count]
        noise[:, self.task.nodes.index("D")] = 0.0
        return self._with_contexts(noise, slice(None))

    def best(self) -> tuple[Tensor, float]:
        """Exact for "ode", where no animals are best for any inflow; found by a search for "gp"."""
        if self.scm == "ode":
            action = torch.tensor([80.0, 0.0, 0.0], dtype=torch.float64)
            return action, float(self.expected(action))
        few = self._even[:: max(1, len(self._even) // 200)]
        roughly = partial(self.averaged, noise=few)
        action, _ = best_action(roughly, self.task.box, spread=128, refined=4, steps=40)
        return best_action(self.expected, self.task.box, action[None], spread=16, refined=2, steps=20)

    def details(self) -> Mapping[str, Any]:
        """The dynamics, where the roots come from, and the caution."""
        return {
            "scm": self.scm,
            "contexts": len(self.contexts),
            "roots": "rows, sampled jointly; their noise above gives mean and standard deviation only",
            "caution": "a smoke test: the fitted model is nearly flat in the actions, the equations have a "
            "trivial optimum",
        }
