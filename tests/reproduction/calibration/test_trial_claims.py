"""What models of trials claim beside the truth, in a world whose equations are the model's."""

import math

import pytest
import torch

from rehearsal_torch.problems.causal.noise import MixtureNoise
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from reproduction.calibration.trial_claims import (
    at_points,
    claim_rows,
    of_recommendations,
)
from tests.toys.causal_toys import linear_chain

VISITED = [[0.9, 0.0], [0.1, 2.0], [0.5, 0.2], [0.6, 0.2], [0.7, 0.2], [0.8, 0.2]]
NAMED = {"dataset": "chain", "method": "m", "seed": 3}


class Chain(CausalWorld):
    """The chain of the toys, with a reward that is `shift` larger: Y = 1.5 X - b + shift."""

    def __init__(self, shift=0.0):
        self.shift = shift
        normal = MixtureNoise((1.0,), (0.0,), (0.1,))
        super().__init__(
            linear_chain().task, {"X": normal, "Y": normal}, Rounds(rounds=2, initial=6), draws=1000
        )

    def equation(self, node, inputs, noise):
        if node == "X":
            return 2 * inputs["a"] + noise
        return 1.5 * inputs["X"] - inputs["b"] + self.shift + noise

    def best(self):
        return torch.tensor([1.0, 0.0], dtype=torch.float64), 3.0 + self.shift


@pytest.fixture(scope="module")
def rows():
    return [NAMED | row for row in claim_rows(linear_chain(VISITED), Chain(), 7, 3)]


def test_claims_are_means_and_deviations_of_the_chain(rows):
    # E[Y] = 3 a - b and sd^2 = (1.5 .3 (1 + a))^2 + (.2 (1 + b))^2; the best visited action is (.9, 0).
    (first,) = [row for row in rows if row["point"] == "tried 1"]
    assert (first["claimed"], first["true"]) == pytest.approx((2.7, 2.7), abs=0.05)
    assert first["std"] == pytest.approx(math.hypot(0.45 * 1.9, 0.2), rel=0.3)
    assert (first["round"], first["held"]) == (7, 1.0)
    # The model's laws are those of the world: every claim is right, up to draws of the noise.
    assert all(row["held"] == 1.0 and abs(row["claimed"] - row["true"]) < 0.05 for row in rows)


def test_the_recommendation_is_compared_with_the_best_other_action(rows):
    (found,) = of_recommendations(rows)
    # (1, 0) is recommended, .3 above (.9, 0), with a chance of nearly one; the optimum is 3.
    assert (found["claimed"], found["true"], found["optimum"]) == pytest.approx((3, 3, 3), abs=0.05)
    assert found["runner_up"] == pytest.approx(2.7, abs=0.05)
    assert found["chance"] > 0.99
    world = Chain()
    start = world.expected(world.observations().columns(["a", "b"])).max()
    assert found["start"] == pytest.approx(float(start))
    assert math.isnan(at_points(rows)[0]["chance"])
