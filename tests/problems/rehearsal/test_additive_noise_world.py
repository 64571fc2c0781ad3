import math

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.causal.optimum import grid
from rehearsal_torch.problems.rehearsal.additive_noise_world import (
    CurvedWorld,
    Exponential,
    Normal,
    SymmetricBeta,
    Uniform,
)
from rehearsal_torch.problems.rehearsal.non_syn1 import NonSyn1
from rehearsal_torch.problems.rehearsal.non_syn2 import NonSyn2
from rehearsal_torch.problems.world_size import SampleSize

LAWS = {
    "normal": (Normal(0.5), 0.0, 0.25),
    "uniform": (Uniform(-1.0, 3.0), 1.0, 16 / 12),
    "exponential": (Exponential(), 1.0, 1.0),
    "beta": (SymmetricBeta(), 0.5, 0.05),
}


@pytest.mark.parametrize("name", LAWS)
def test_nodes_and_numbers_have_the_moments_of_the_law(name):
    distribution, mean, variance = LAWS[name]
    points, weights = distribution.nodes(64)
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(points @ weights) == pytest.approx(mean, abs=1e-8)
    assert float((points - mean).square() @ weights) == pytest.approx(variance, abs=1e-7)
    # Numbers through quantiles, integrated against the normal law.
    normal, shares = Normal(1.0).nodes(4001)
    drawn = distribution.of_normal(normal)
    assert float(drawn @ shares) == pytest.approx(mean, abs=1e-6)
    assert float((drawn - mean).square() @ shares) == pytest.approx(variance, abs=1e-6)
    assert (drawn.diff() >= 0).all()


def test_quantiles():
    assert Exponential().of_normal(torch.zeros(1, dtype=torch.float64)).item() == pytest.approx(math.log(2))
    quantile = SymmetricBeta().of_normal(torch.tensor([-1.0], dtype=torch.float64))
    assert (3 * quantile**2 - 2 * quantile**3).item() == pytest.approx(
        float(torch.special.ndtr(torch.tensor(-1.0, dtype=torch.float64)))
    )


def column(*values):
    return torch.tensor([values], dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [*(kind(size=SampleSize(contexts=6)) for kind in (NonSyn1, NonSyn2))],
    ids=["non_syn1", "non_syn2"],
)
def test_no_point_of_a_dense_grid_beats_the_oracle(world):
    given = world.given([world.case(index) for index in range(6)])
    points = world.task.box.lower + grid(2, 51) * world.task.box.width
    dense = world.probability(given, world.task.box.names, points.unsqueeze(1).expand(-1, 6, -1)).amax(0)
    assert (dense <= world.optimal(given, world.task.box.names)[1] + 5e-4).all()


def test_worlds_that_cannot_be_integrated_are_refused():
    class Plain(CurvedWorld):
        def source(self):
            return "a test"

        def mean(self, name, values):
            return 0.0

    def task(region):
        return RehearsalTask.of(
            {
                "graph": {"parents": {"y": ["x", "z"], "v": ["z"]}},
                "context": ["x"],
                "box": {"z": [0, 1]},
                "region": region,
            }
        )

    upright = {"y": [0, 1], "v": [0, 1]}
    distributions = {name: Normal(1.0) for name in ("x", "z", "y", "v")}
    assert float(
        Plain(task(upright), distributions).probability(column(0.0), ["z"], column(0.0))
    ) == pytest.approx(0.3413**2, abs=1e-4)
    with pytest.raises(ValueError, match="expected a distribution for each"):
        Plain(task(upright), {"x": Normal(1.0)})
    with pytest.raises(ValueError, match="normal noise"):
        Plain(task(upright), {**distributions, "y": Exponential()})
    with pytest.raises(ValueError, match="bound one outcome each"):
        Plain(task({"names": ["y", "v"], "normals": [[1.0, 1.0]], "offsets": [1.0]}), distributions)
