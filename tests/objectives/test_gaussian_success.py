"""Probabilities of success: values beside SciPy, intervals, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

import rehearsal_torch as rt
from rehearsal_torch.api.what_if import objectives_in
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.gaussian_success import (
    CONSERVATIVE,
    JOINT,
    GaussianSuccess,
    SuccessModel,
    between_sets,
    region_probability_of,
)
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.region_probability import (
    PolygonProbability,
    PolytopeProbability,
    RectangleProbability,
)
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.api.test_rehearse import CASES, SMALL, TASK
from tests.api.test_rehearsed import frame  # noqa: F401  the fixture
from tests.toys.linear_truth import chain


def objective(world, rows=300, count=6, seed=0, **more):
    return GaussianSuccess.for_cases(
        fit(LinearStructural(world.task, **more), world.table(rows, seed)), world.cases(count)
    )


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
    assert "no alteration helps" in decision.reason.text
    assert set(decision.trace["would_set"]) <= {"a", "m"}


def test_the_interval_has_the_level_that_was_asked_for():
    made = objective(chain(), rows=40).sets[0]
    actions = made.starts(1)[0]
    direct = GaussianSuccess.for_sets(
        fit(LinearStructural(chain().task), chain().table(40, 0)), made.cases, 0.5
    )
    assert [*made.at_level(0.5).appraise(actions)] == [*direct[0].appraise(actions)]
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
    plain = GaussianSuccess(made.cases, made.names, made.contexts, replace(made.model, likely=None), None)
    assert plain.contrast(first, second) is None


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


DOUBLE = torch.float64
CONTEXTS = torch.tensor([[0.3], [-1.2], [0.8]], dtype=DOUBLE)
# Not a face of which has length one, and no point of which is zero.
REGIONS = {
    1: Polytope(("y",), torch.tensor([[2.0], [-0.5]]), torch.tensor([6.0, -0.5])),
    2: Polytope.of({"y": (1.0, 3.0), "w": (-2.0, 0.5)}),
    3: Polytope.of({"y": (1.0, 3.0), "w": (-2.0, 0.5), "v": (None, 1.0)}),
}
LIMITS = {"y": (1.0, 3.0), "w": (-2.0, 0.5), "v": (-np.inf, 1.0)}


def response(width, covariance, draws=()):
    """Effects of one context and two actions on some outcomes; draws differ from each other by a little."""
    stream = torch.Generator().manual_seed(3)
    effects = [
        torch.randn(*draws, width, *shape, dtype=DOUBLE, generator=stream) * (0.2 if draws else 1.0)
        for shape in ((1,), (2,), ())
    ]
    if draws:
        effects = [a + b for a, b in zip(effects, response(width, covariance)[0], strict=True)]
    spread = torch.tensor(covariance, dtype=DOUBLE)
    if draws:
        spread = spread * torch.linspace(0.8, 1.4, draws[0], dtype=DOUBLE).reshape(-1, 1, 1)
    return effects, spread


def written(width, covariance, draws=3, nothing=(0.9, 0.0, 0.2), level=0.95):
    region = REGIONS[width]
    plain, likely = (
        AffineResponse(*effects, torch.empty(0), spread)
        for effects, spread in (response(width, covariance, lead) for lead in ((), (draws,)))
    )
    cases = [RehearsalCase(str(place), {}, {"a": (-1.0, 3.0), "b": (0.0, 1.5)}) for place in range(3)]
    before = None if nothing is None else torch.tensor(nothing, dtype=DOUBLE)
    return GaussianSuccess(
        cases,
        ("a", "b"),
        CONTEXTS,
        SuccessModel(region, region.chebyshev()[0], plain, likely if draws else None),
        before,
        level,
    )


def true(made, law, action, row):
    """P(Y in S) in one case by SciPy."""
    mean = law.context @ CONTEXTS[row] + law.action @ action + law.constant
    low, high = (np.array([LIMITS[name][side] for name in made.region.names]) for side in (0, 1))
    if len(mean) == 1:
        return float(np.diff(norm.cdf([low[0], high[0]], float(mean), math.sqrt(float(law.covariance))))[0])
    return float(multivariate_normal(mean.numpy(), law.covariance.numpy()).cdf(high, lower_limit=low))


def draw(made, place):
    return AffineResponse(
        *(getattr(made.model.likely, name)[place] for name in ("context", "action", "constant")),
        torch.empty(0),
        made.model.likely.covariance[place],
    )


COVARIANCES = {1: [[0.4]], 2: [[1.0, 0.4], [0.4, 0.6]], 3: np.diag([1.0, 0.5, 0.7]).tolist()}
ACTIONS = torch.tensor(
    [[[0.4, 0.2], [-0.7, 1.1], [2.0, 0.9]], [[0.0, 0.0], [1.3, 0.4], [-0.5, 1.5]]], dtype=DOUBLE
)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_predictive_probability_is_the_mean_over_the_draws(width) -> None:
    made = written(width, COVARIANCES[width])
    each = [[true(made, draw(made, place), ACTIONS[0, row], row) for row in range(3)] for place in range(3)]
    near = {"atol": 1e-6} if width == 1 else {"atol": 4e-3 if width > 2 else 1e-6}
    np.testing.assert_allclose(made.chances(ACTIONS[0]), each, rtol=0, **near)
    mean = np.mean(each, 0)
    np.testing.assert_allclose(made.compared_value(ACTIONS[0]).exp(), mean, rtol=0, **near)
    np.testing.assert_allclose(made.compared_probability(ACTIONS[0]), made.chances(ACTIONS[0]).mean(0))
    # Of many actions at once: predictive, unless there are so many outcomes that it would take long.
    whole = made.probability(ACTIONS.expand(4, 2, 3, 2))
    assert whole.shape == (4, 2, 3)
    expected = made(ACTIONS).exp() if width > 2 else torch.stack([made.chances(at).mean(0) for at in ACTIONS])
    np.testing.assert_allclose(whole[3], expected)
    without = written(width, COVARIANCES[width], draws=0)
    assert without.chances(ACTIONS[0]) is None
    np.testing.assert_allclose(without.probability(ACTIONS), without(ACTIONS).exp())
    np.testing.assert_allclose(without.compared_value(ACTIONS[0]), without(ACTIONS[0]))


def test_intervals_are_normal_on_the_logistic_scale() -> None:
    made = written(1, [[0.4]], level=0.8)
    found = made.appraise(ACTIONS[0])
    drawn = np.array(
        [[true(made, draw(made, i), ACTIONS[0, row], row) for row in range(3)] for i in range(3)]
    )
    logit = np.log(drawn / (1 - drawn))
    ends = logit.mean(0) + norm.ppf([[0.1], [0.9]]) * logit.std(0, ddof=1)
    low, high = 1 / (1 + np.exp(-ends))
    assert [each.estimate.point for each in found] == pytest.approx(drawn.mean(0), abs=1e-6)
    assert [each.estimate.lower for each in found] == pytest.approx(np.minimum(low, drawn.mean(0)), abs=1e-5)
    assert [each.estimate.upper for each in found] == pytest.approx(np.maximum(high, drawn.mean(0)), abs=1e-5)
    assert {each.estimate.level for each in found} == {0.8}
    assert [each.baseline.point for each in found] == [0.9, 0.0, 0.2]
    assert [each.trace["plug_in"] for each in found] == made(ACTIONS[0]).exp().tolist()
    better = [each.estimate.point >= each.baseline.point for each in found]
    assert [not each.declined for each in found] == better
    assert {*better} == {True, False}
    assert [each.baseline for each in written(1, [[0.4]], nothing=None).appraise(ACTIONS[0])] == [None] * 3


def test_certain_success_has_an_interval_too() -> None:
    made = written(1, [[1e-6]])
    centre = 2.0
    law = made.model.likely
    sure = AffineResponse(
        0 * law.context, 0 * law.action, 0 * law.constant + centre, law.noise, law.covariance
    )
    made = made.changed(model=replace(made.model, likely=sure))
    for found in made.appraise(ACTIONS[0]):
        assert (found.estimate.point, found.estimate.upper) == pytest.approx((1.0, 1.0))
        assert found.estimate.lower == pytest.approx(1.0, abs=1e-6)


def test_starts_begin_at_the_centre_of_the_region() -> None:
    made = written(2, COVARIANCES[2])
    # Boxes that lie anywhere, and are wide enough to hold the action that is aimed at in the first case.
    lower = torch.tensor([[-40.0, -30.0], [1.0, 2.0], [0.5, 0.25]], dtype=DOUBLE)
    upper = torch.tensor([[50.0, 44.0], [1.5, 4.0], [0.75, 4.25]], dtype=DOUBLE)
    narrow = made.within(lower, upper, {})
    found = narrow.starts(5)
    law, centre = made.model.response, made.region.chebyshev()[0]
    aim = torch.linalg.solve(law.action, centre - law.context @ CONTEXTS[0] - law.constant)
    np.testing.assert_allclose(found[0, 0], aim)
    np.testing.assert_allclose(found[0], narrow.project(found[0]))
    np.testing.assert_allclose(found[1], (lower + upper) / 2)
    unit = sobol(2).draw(3, dtype=DOUBLE)
    np.testing.assert_allclose(found[2:], lower + unit.unsqueeze(1) * (upper - lower))
    assert torch.equal(narrow.starts(3), found[:3])
    for few in (1, 2):
        assert torch.equal(narrow.starts(few), found[:few])


def of_two_outcomes(region, covariance, constant):
    """One variable that moves both outcomes alike, with the same law as its only draw."""
    effect, spread = torch.ones(2, 1, dtype=DOUBLE), torch.tensor(covariance, dtype=DOUBLE)
    fields = (effect, effect, torch.tensor(constant, dtype=DOUBLE), torch.empty(0), spread)
    cases = written(2, COVARIANCES[2]).cases
    likely = AffineResponse(*(each.unsqueeze(0) for each in fields))
    centre, _ = region.chebyshev()
    model = SuccessModel(region, centre, AffineResponse(*fields), likely)
    return GaussianSuccess(cases, ("a",), CONTEXTS, model, None)


@pytest.mark.parametrize("beyond", [0.0, 1e-4])
def test_outcomes_that_follow_from_each_other_have_a_probability(beyond) -> None:
    # w = y - 2, but for a little noise, so that y in [1, 3] and w in [-2, 0.5] is y in [1, 2.5].
    made = of_two_outcomes(REGIONS[2], [[0.4, 0.4], [0.4, 0.4 + beyond]], [1.0, -1.0])
    mean = 1.0 + CONTEXTS[:, 0].numpy() + 0.5
    expected = norm.cdf(2.5, mean, 0.4**0.5) - norm.cdf(1.0, mean, 0.4**0.5)
    actions = torch.full((3, 1), 0.5, dtype=DOUBLE)
    np.testing.assert_allclose(made(actions).exp(), expected, atol=1e-4)
    np.testing.assert_allclose(made.chances(actions)[0], expected, atol=1e-4)


def test_sets_are_compared_with_doing_nothing_under_the_same_draws() -> None:
    world = chain()
    model, cases = fit(LinearStructural(world.task, draws=30), world.table(80)), world.cases(2)
    made = GaussianSuccess.for_sets(model, cases)
    assert [one.names for one in made] == list(world.task.candidates)
    ((_, likely),) = model.responses_of([()])
    contexts = world.task.given(cases)
    mean, spread = likely.base(contexts)[..., 0], likely.covariance[:, 0, :].sqrt()
    expected = (norm.cdf((2.0 - mean) / spread) - norm.cdf((1.0 - mean) / spread)).mean(0)
    for one in made:
        np.testing.assert_allclose(one.nothing, expected, atol=1e-6)
        assert (one.of_success, one.level) == (True, 0.95)
    with pytest.raises(ValueError, match=r"expected a level in \(0, 1\)"):
        GaussianSuccess.for_sets(model, cases, 1.0)


TWO = TASK | {"box": {"A2": [0, 1], "U1": [0, 1]}}
FIRST, SECOND = (torch.tensor([[value]], dtype=torch.float64) for value in (0.3, 0.5))


def objectives(rows, method, **settings):
    model = rt.learn(rows, TWO, method=method, **settings)
    made = objectives_in(model, [model._single_case(CASES[0])])
    return {each.names: each for each in made.whole}


def test_within_one_set_joint_draws_give_its_own_contrast(frame):  # noqa: F811
    one = objectives(frame, "care")["A2",]
    found, basis = between_sets(one, FIRST, one, SECOND)
    assert basis == JOINT
    assert found == one.contrast(FIRST, SECOND)[0]


@pytest.mark.slow
def test_without_joint_draws_both_claims_hold_at_half_the_risk(frame):  # noqa: F811
    sets = objectives(frame, "outcome_regression", **SMALL)
    one, other = sets["A2",], sets["U1",]
    found, basis = between_sets(one, FIRST, other, SECOND)
    assert basis == CONSERVATIVE
    wide = [each.at_level(0.975).appraise(at)[0].estimate for each, at in ((one, FIRST), (other, SECOND))]
    ends = wide[0].lower - wide[1].upper, wide[0].upper - wide[1].lower
    assert (found.lower, found.upper) == pytest.approx((max(ends[0], -1), min(ends[1], 1)), abs=1e-6)
    assert found.level == 0.95


def test_methods_without_intervals_have_no_difference(frame):  # noqa: F811
    sets = objectives(frame, "qwz23_success")
    assert between_sets(sets["A2",], FIRST, sets["U1",], SECOND) is None


class Drawn(GaussianSuccess):
    """An objective whose draws are written down."""

    def __init__(self, drawn):
        self.drawn, self.level = drawn, 0.95

    def chances(self, values):
        return self.drawn

    def appraise(self, values):
        return [Appraisal(None, None)]


class Apart:
    """An objective of another kind, which has no claim."""

    def appraise(self, values):
        return [Appraisal(None, None)]


def test_joint_draws_need_draws_of_both_in_equal_number():
    draws = torch.tensor([[0.2], [0.4]], dtype=torch.float64)
    found, basis = between_sets(Drawn(draws), FIRST, Drawn(draws - 0.1), SECOND)
    assert (basis, found.point) == (JOINT, pytest.approx(0.1))
    assert (found.lower, found.upper) == pytest.approx((0.1, 0.1))
    for other in (Drawn(None), Drawn(draws[:1]), Apart()):
        assert between_sets(Drawn(draws), FIRST, other, SECOND) is None
        assert between_sets(other, FIRST, Drawn(draws), SECOND) is None


class Claimed:
    """An objective with one claim at any level, or with none at some."""

    def __init__(self, *claims):
        self.claims = claims

    def appraise(self, values):
        return [Appraisal(self.claims[0], None)]

    def at_level(self, level):
        return Claimed(self.claims[1]) if level == pytest.approx(0.975) else None


class FixedLevel(Claimed):
    """An objective with a claim whose level cannot be changed."""

    def at_level(self, level):
        return None


def test_both_claims_need_an_interval_at_half_the_risk():
    known = Claimed(chance(0.5, 0.4, 0.6), chance(0.5, 0.3, 0.7))
    found, basis = between_sets(known, FIRST, known, SECOND)
    assert (found.lower, found.upper, basis) == (pytest.approx(-0.4), pytest.approx(0.4), CONSERVATIVE)
    claim = chance(0.5, 0.4, 0.6)
    for other in (Claimed(None, None), Claimed(chance(0.5), None), Claimed(claim, None), FixedLevel(claim)):
        assert between_sets(known, FIRST, other, SECOND) is None
        assert between_sets(other, FIRST, known, SECOND) is None
    open_end = Claimed(chance(0.5, 0.4, 0.6), chance(0.5))
    assert between_sets(known, FIRST, open_end, SECOND) is None
    assert between_sets(open_end, FIRST, known, SECOND) is None
