import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import norm

from rehearsal_torch.objectives.scenario_success import ScenarioCount, Scenarios
from rehearsal_torch.search.alterations.joint_candidates import (
    joint_candidates,
    programmed,
    relaxed,
)
from rehearsal_torch.search.budget import UNLIMITED
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import managing

BOX = -torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)


def drawn(seed, count=300, faces=3):
    """Scenarios of two variables whose rows go through the box."""
    stream = torch.Generator().manual_seed(seed)
    gains = torch.randn(1, faces, 2, dtype=torch.float64, generator=stream) + 0.2 * torch.randn(
        count, faces, 2, dtype=torch.float64, generator=stream
    )
    return Scenarios(gains, 0.3 + 0.4 * torch.randn(count, 1, faces, dtype=torch.float64, generator=stream))


@pytest.mark.parametrize("seed", range(5))
def test_the_relaxation_is_climbed_to_its_top(seed):
    scenarios = drawn(seed)
    gains, slack = scenarios.gains.mean(0).numpy(), scenarios.slack[:, 0].mean(0).numpy()
    spread = scenarios.slack[:, 0].std(0).numpy()

    def loss(z):
        return -norm.logcdf((slack - gains @ z) / spread).sum()

    best = min(
        minimize(loss, start, bounds=[(-1, 1)] * 2, method="L-BFGS-B").fun
        for start in ([0.0, 0.0], [0.5, -0.5], [-0.5, 0.5])
    )
    assert loss(relaxed(scenarios, *BOX).numpy()) == pytest.approx(best, abs=2e-3)


def test_programs_that_drop_what_others_satisfied_give_different_answers():
    # Two groups that no point satisfies together: the second program answers for what the first left.
    left = Scenarios(
        torch.tensor([[[1.0, 0.0]]], dtype=torch.float64).expand(60, 1, 2),
        torch.full((60, 1, 1), -0.5, dtype=torch.float64),
    )
    right = Scenarios(-left.gains[:50], left.slack[:50])
    whole = Scenarios(torch.cat([left.gains, right.gains]), torch.cat([left.slack, right.slack]))
    begin = torch.zeros(2, dtype=torch.float64)
    answers = programmed(whole, *BOX, begin, 4, 110, 50, UNLIMITED, torch.Generator().manual_seed(0))
    assert {float(each[0].sign()) for each in answers} == {-1.0, 1.0}


@pytest.fixture(scope="module")
def objective():
    world = managing()
    made = fit(LinearStructural(world.task, 2000), world.table(300))
    return ScenarioCount.for_cases(
        made, world.cases(2), search_scenarios=900, validation_scenarios=900, test_scenarios=100
    ).sets[0]


@pytest.mark.parametrize("tau", [0.5, 0.8])
def test_every_candidate_qualifies_by_both_samples_and_they_reach_to_the_border(objective, tau):
    points = joint_candidates(objective, 1, tau, programs=2, scenarios=30, nodes=50)
    assert len(points) >= 20
    actions = points.unsqueeze(1).expand(-1, 2, -1)
    shares = torch.stack([objective(actions)[:, 1], objective.share(actions)[:, 1]])
    assert (shares >= tau).all()
    assert shares.amin(0).min() <= tau + 0.01
    assert ((points >= objective.lower[1]) & (points <= objective.upper[1])).all()


def test_nothing_that_falls_short_is_given(objective):
    assert joint_candidates(objective, 0, 0.9999, programs=1, scenarios=20, nodes=10).shape == (0, 2)


def test_the_climb_reaches_a_top_that_is_far_from_the_middle():
    # One row, steep in the first variable and flat in the second, which hardly holds in a corner.
    scenarios = Scenarios(
        torch.tensor([[[1e3, -1e-3]]], dtype=torch.float64).expand(50, 1, 2),
        torch.linspace(-1, 1, 50, dtype=torch.float64).reshape(50, 1, 1) - 8000,
    )
    box = torch.tensor([[-2.0, -2e6], [4.0, 6e6]], dtype=torch.float64)
    assert relaxed(scenarios, *box).tolist() == pytest.approx([-2.0, 6e6], rel=1e-3)
