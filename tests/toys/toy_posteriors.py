"""A posterior whose answers are known in closed form: y follows a with a slope that is not known, under
graphs that may not even have the arrow.

Under hypothesis g, y = slope_g a + deviation_g u + e, with u standard normal times a (what is not known of
the slope) and e ~ N(0, noise^2).
"""

import math

import numpy as np
import torch
from scipy.integrate import quad
from scipy.stats import norm

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.model_samples import AffineScenarios, SampledModels, ScenarioModel

NAMES = ("x", "a", "y")


class ToyModels(SampledModels):
    """Models drawn with NumPy; columns x, a, y."""

    def __init__(self, toy, count, seed):
        stream = np.random.default_rng((seed, 1))
        self.noise = toy.noise
        self._graphs = torch.from_numpy(np.sort(stream.choice(len(toy.weights), count, p=toy.weights)))
        state_scale, std = (
            torch.tensor(each, dtype=torch.float64)[self._graphs] for each in (toy.coefficients, toy.stds)
        )
        self.state_scale = state_scale + std * torch.from_numpy(stream.standard_normal(count))
        self.error = toy.noise * torch.from_numpy(stream.standard_normal((2, count)))

    @property
    def graphs(self):
        return self._graphs

    def scenarios(self, contexts, altered):
        offset, state_scale = (
            torch.zeros(len(contexts), len(self.state_scale), 3, dtype=torch.float64),
            torch.zeros(len(self.state_scale), 3, len(altered), dtype=torch.float64),
        )
        offset[..., 0] = contexts
        if altered:
            state_scale[:, 1, 0], state_scale[:, 2, 0] = 1.0, self.state_scale
            offset[..., 2] = self.error[1]
        else:
            offset[..., 1] = self.error[0]
            offset[..., 2] = self.state_scale * self.error[0] + self.error[1]
        return AffineScenarios(NAMES, tuple(altered), offset, state_scale)

    def responses(self, altered):
        slope = self.state_scale
        own, zero = torch.full_like(slope, self.noise), torch.zeros_like(slope)
        through = zero if altered else slope * self.noise
        noise = torch.stack([zero, through, own], -1).unsqueeze(-2)
        return AffineResponse(
            zero[:, None, None],
            slope[:, None, None].expand(-1, 1, len(altered)),
            zero.unsqueeze(-1),
            noise,
            noise @ noise.mT,
        )

    def log_density(self, rows, altered):
        of_y = -0.5 * ((rows[..., 2, None] - rows[..., 1, None] * self.state_scale) / self.noise) ** 2
        of_a = 0 if altered else -0.5 * (rows[..., 1, None] / self.noise) ** 2
        return of_y + of_a - (1 if altered else 2) * math.log(self.noise * math.sqrt(2 * math.pi))

    def entropy(self, altered):
        return torch.full_like(
            self.state_scale,
            (1 if altered else 2) * (math.log(self.noise) + 0.5 * math.log(2 * math.pi * math.e)),
        )


class Toy(ScenarioModel):
    """Hypotheses with a weight, a slope and its deviation each; a may be set within [-3, 3]."""

    has_responses = True

    def __init__(self, weights=(1.0,), coefficients=(1.0,), stds=(0.5,), noise=1.0, wanted=(0.5, 2.5)):
        task = {
            "graph": {"parents": {"x": [], "a": [], "y": ["a"]}},
            "context": ["x"],
            "box": {"a": [-3.0, 3.0]},
            "region": {"y": list(wanted)},
        }
        super().__init__(RehearsalTask.of(task))
        self.weights, self.coefficients, self.stds, self.noise, self.wanted = (
            weights,
            coefficients,
            stds,
            noise,
            wanted,
        )

    def parts(self, table):
        return iter(())

    def graph_weights(self):
        return torch.tensor(self.weights, dtype=torch.float64)

    def sampled(self, count, seed=0):
        return ToyModels(self, count, seed)

    def responses(self, altered, count, seed=0):
        return self.sampled(count, seed).responses(altered)

    def laws(self, z):
        """Weight, mean and deviation of y under each hypothesis."""
        return [
            (w, s * z, math.hypot(d * z, self.noise))
            for w, s, d in zip(self.weights, self.coefficients, self.stds, strict=True)
        ]

    def success(self, z):
        """P(Y in S | a set to z)."""
        low, high = self.wanted
        return sum(w * (norm.cdf(high, m, s) - norm.cdf(low, m, s)) for w, m, s in self.laws(z))

    def information(self, z):
        """H(Y) - H(Y | model) by quadrature: for one hypothesis log(1 + d^2 z^2 / noise^2) / 2."""

        def mixed(y):
            density = sum(w * norm.pdf(y, m, s) for w, m, s in self.laws(z))
            return -density * math.log(density) if density > 0 else 0.0

        reach = max(abs(m) + 10 * s for _, m, s in self.laws(z))
        return (
            quad(mixed, -reach, reach, limit=400)[0]
            - math.log(self.noise)
            - 0.5 * math.log(2 * math.pi * math.e)
        )


def toy_cases(count):
    return [
        RehearsalCase(str(index), {"x": torch.tensor(float(index), dtype=torch.float64)}, {"a": (-3.0, 3.0)})
        for index in range(count)
    ]
