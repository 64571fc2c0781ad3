"""What is said of a success probability: values, intervals, refusals."""

import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess, region_probability_of
from rehearsal_torch.objectives.region_probability.polygon import PolygonProbability, PolytopeProbability
from rehearsal_torch.objectives.region_probability.rectangle import RectangleProbability
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain, managing


def objective(world, rows=300, count=6, seed=0, **more):
    return GaussianSuccess.for_cases(
        fit(LinearStructural(world.task, **more), world.table(rows, seed)), world.cases(count)
    )


@pytest.mark.parametrize("world", [managing(), chain()], ids=["two outcomes", "one outcome"])
def test_values_are_log_probabilities_of_the_fitted_law(world):
    (made, *_) = objective(world).sets
    model = fit(LinearStructural(world.task), world.table(300))
    noise = torch.randn(
        200000, len(world.names), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    linear = model.linear_model(made.names)
    # Zero noise of altered variables has no Cholesky factor: a square root by eigenvalues.
    values, vectors = torch.linalg.eigh(linear.covariance)
    noise = noise @ (vectors * values.clamp_min(0).sqrt() @ vectors.mT)
    actions = made.lower + 0.7 * (made.upper - made.lower)
    given = model.task.given(made.cases)
    rows = linear.rehearse(noise, actions[0], world.task.context, given[0])
    share = (
        world.task.region.contains(rows[:, [linear.names.index(name) for name in world.task.outcomes]])
        .double()
        .mean()
    )
    assert float(made(actions)[0].exp()) == pytest.approx(float(share), abs=0.005)


def test_batches_of_actions_and_slopes():
    (made, *_) = objective(managing()).sets
    actions = made.starts(5)
    assert actions.shape == (5, 6, 2)
    assert torch.equal(actions, made.project(actions))
    values = made(actions)
    assert values.shape == (5, 6)
    at = actions.clone().requires_grad_(True)
    (gradients,) = torch.autograd.grad(made(at).sum(), at)
    found, mine = made.value_and_gradient(actions)
    assert torch.equal(found, values)
    assert torch.allclose(mine, gradients, rtol=1e-6, atol=1e-8)


def test_starts_lie_in_boxes_that_lie_anywhere():
    (made, *_) = objective(managing()).sets
    narrow = made.within(made.lower + 0.9 * (made.upper - made.lower), made.upper, {})
    starts = narrow.starts(64)
    assert ((starts >= narrow.lower) & (starts <= narrow.upper)).all()
    share = (starts - narrow.lower) / (narrow.upper - narrow.lower)
    # Sobol points fill the box: none of its quarters is empty, in any direction.
    assert all(((share >= each / 4) & (share <= (each + 1) / 4)).any(0).all() for each in range(4))


def test_evidence_is_predictive_and_has_an_interval():
    made = objective(chain(), rows=40)
    for decision in ProjectionNewton().batch_search(made):
        assert 0 <= decision.estimate.lower <= decision.estimate.point <= decision.estimate.upper <= 1
        assert decision.estimate.point < decision.trace["plug_in"]
        assert decision.value == pytest.approx(np.log(decision.estimate.point))
    plain = objective(chain(), rows=40, draws=0).sets[0]
    (fact, *_) = plain.appraise(plain.starts(1)[0])
    assert fact.estimate.point == fact.trace["plug_in"]
    assert fact.estimate.lower is None


@pytest.mark.slow
def test_intervals_cover_the_truth():
    # Over data sets and contexts: 95% intervals of the chosen action's true probability, dependent within a
    # data set.
    world, hits, bias = chain(), [], []
    some_cases = world.cases(5)
    for seed in range(40):
        model = fit(LinearStructural(world.task), world.table(60, seed))
        for one_case, decision in zip(
            some_cases,
            ProjectionNewton().batch_search(GaussianSuccess.for_cases(model, some_cases)),
            strict=True,
        ):
            if decision.alteration is None:
                continue
            set_ = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
            true = world.success(one_case, set_, 4000)
            hits.append(decision.estimate.lower <= true <= decision.estimate.upper)
            bias.append(decision.estimate.point - true)
    assert 0.88 <= np.mean(hits) <= 0.99
    assert abs(np.mean(bias)) < 0.03


def test_nothing_is_recommended_where_nothing_helps():
    # A box around a harmful value: setting can only hurt.
    world = chain(lower=-3.0, upper=3.0)
    model = fit(LinearStructural(world.task), world.table(300))
    one_case = RehearsalCase("0", {"x": torch.tensor(0.0)}, {"a": (9.0, 10.0), "m": (9.0, 10.0)})
    (decision,) = ProjectionNewton().batch_search(GaussianSuccess.for_cases(model, [one_case]))
    assert decision.alteration is None
    assert "no alteration helps" in decision.reason
    assert set(decision.trace["would_set"]) <= {"a", "m"}


def test_closed_variables_are_refused():
    world = chain()
    model = fit(LinearStructural(world.task), world.table(100))
    with pytest.raises(ValueError, match="may not be set"):
        GaussianSuccess.for_cases(model, [RehearsalCase("0", {"x": torch.tensor(0.0)}, {"a": (0.0, 1.0)})])


def test_the_interval_has_the_level_that_was_asked_for():
    made = objective(chain(), rows=40).sets[0]
    actions = made.starts(1)[0]
    direct = GaussianSuccess.for_sets(
        fit(LinearStructural(chain().task), chain().table(40, 0)), made.cases, 0.5
    )
    assert made.at_level(0.5).appraise(actions) == direct[0].appraise(actions)
    for narrow, wide in zip(direct[0].appraise(actions), made.appraise(actions), strict=True):
        assert wide.estimate.lower < narrow.estimate.lower < narrow.estimate.upper < wide.estimate.upper
        assert (narrow.estimate.level, wide.estimate.level) == (0.5, 0.95)
    with pytest.raises(ValueError, match=r"expected a level in \(0, 1\); got 95"):
        made.at_level(95)


def test_differences_are_those_of_the_same_draws():
    (made, *_) = objective(chain(), rows=40).sets
    first, second = made.lower + 0.3 * (made.upper - made.lower), made.lower + 0.5 * (made.upper - made.lower)
    drawn = made.chances(first).clone() - made.chances(second)
    found = made.contrast(first, second)
    assert [each.point for each in found] == pytest.approx(drawn.mean(0).tolist(), abs=1e-6)
    wide = [each.upper - each.lower for each in found]
    assert wide == pytest.approx((2 * 1.959964 * drawn.std(0)).tolist(), abs=3e-6)
    for apart, one, other in zip(found, made.appraise(first), made.appraise(second), strict=True):
        assert apart.point == pytest.approx(one.estimate.point - other.estimate.point, abs=1e-6)
    assert [each.upper for each in made.contrast(first, first)] == [0.0] * len(found)
    made.likely = None
    assert made.contrast(first, second) is None


@pytest.mark.parametrize(
    ("width", "askew", "kind"),
    [
        (1, False, RectangleProbability),
        (2, False, RectangleProbability),
        (2, True, PolygonProbability),
        (3, False, RectangleProbability),
        (3, True, PolytopeProbability),
    ],
)
def test_the_fastest_exact_form_is_taken(width, askew, kind):
    normals = torch.cat([torch.eye(width), -torch.eye(width), *([torch.ones(1, width)] if askew else [])])
    assert type(region_probability_of(normals.double(), torch.ones(len(normals)).double())) is kind
