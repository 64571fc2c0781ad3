"""What models of trials claim beside the truth, in a world whose equations are the model's."""

import csv
import io
import math

import pytest
import torch

from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.problems.causal.noise import MixtureNoise
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.seeding import generator
from reproduction.calibration.trial_claims import (
    COLUMNS,
    SPREAD,
    at_points,
    claim_rows,
    claims_typed,
    near_best,
    of_recommendations,
)
from tests.toys.causal_toys import linear_chain, one_case

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

    @property
    def optimal_value(self):
        return 3.0 + self.shift

    @property
    def optimal_action(self):
        return torch.tensor([1.0, 0.0], dtype=torch.float64)


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


def test_points_are_the_best_visited_and_their_neighbours(rows):
    points = [row["point"] for row in rows]
    assert points[:5] == [f"tried {place}" for place in range(1, 6)]
    assert [points.count(f"near {place}") for place in range(1, 6)] == [15] * 5
    assert points[80:] == ["recommended"]
    assert (len(at_points(rows)), len(of_recommendations(rows))) == (80, 1)
    best = [row["claimed"] for row in rows[:5]]
    assert best == sorted(best, reverse=True)
    # (.1, 2) is the worst of the six.
    assert best == pytest.approx([2.7, 2.2, 1.9, 1.6, 1.3], abs=0.05)


def test_neighbours_are_normal_in_units_of_the_box_and_stay_inside():
    model = linear_chain([[0.5, 1.0]] * 5)
    _, actions = near_best(PosteriorMean(model, one_case(model.task)), generator(0))
    steps = (actions[5:] - torch.tensor([0.5, 1.0])) / torch.tensor([1.0, 2.0])
    assert steps.mean().item() == pytest.approx(0, abs=3 * SPREAD / 150**0.5)
    assert steps.std().item() == pytest.approx(SPREAD, rel=0.2)
    _, actions = near_best(PosteriorMean(linear_chain(VISITED), one_case(model.task)), generator(0))
    assert (actions[:, 1] >= 0).all()
    assert (actions[5:20, 1] == 0).any()


def test_neighbours_that_may_not_be_tried_are_left_out():
    # a + b <= 1: of the neighbours of (.9, 0), those with a larger sum are no claims.
    model = linear_chain([[0.9, 0.1]], limits={"normals": [[1, 1]], "offsets": [1]})
    names, actions = near_best(PosteriorMean(model, one_case(model.task)), generator(0))
    assert names == ["tried 1"] + ["near 1"] * (len(actions) - 1)
    assert 1 < len(actions) < 16
    assert (actions.sum(-1) <= 1 + 1e-6).all()


def test_a_claim_holds_within_two_deviations():
    # Every claim is 1.5 too small; the deviation is .45 (1 + a) and more: 2 s > 1.5 only where a is large.
    found = at_points(claim_rows(linear_chain(VISITED), Chain(1.5), 7, 3))
    for row in found:
        assert row["held"] == float(2 * row["std"] >= abs(row["claimed"] - row["true"]))
    assert {row["held"] for row in found} == {0.0, 1.0}


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


def test_rows_survive_a_file(rows):
    (read,) = of_recommendations(claims_typed(csv.DictReader(io.StringIO(written(rows, COLUMNS)))))
    (made,) = of_recommendations(rows)
    assert set(read) == set(COLUMNS)
    assert [read[key] for key in COLUMNS[:5]] == [made[key] for key in COLUMNS[:5]]
    assert [read[key] for key in COLUMNS[5:]] == pytest.approx([made[key] for key in COLUMNS[5:]], rel=1e-5)
