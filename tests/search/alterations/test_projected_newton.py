"""Projected Newton steps: the optimum of SciPy's L-BFGS-B, of a grid, and the oracle of a linear world."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess, SuccessModel
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton, _newton_step
from rehearsal_torch.search.search import Budget
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing


def random_objective(seed, width, outcomes, skew):
    """Random effects, bases, noise, box and region in three situations."""
    stream = np.random.default_rng(seed)
    normals = np.vstack(
        [np.eye(outcomes), -np.eye(outcomes), *([stream.normal(size=(1, outcomes))] if skew else [])]
    )
    region = Polytope(
        tuple(f"y{i}" for i in range(outcomes)),
        torch.from_numpy(normals),
        torch.from_numpy(stream.uniform(0.3, 2, len(normals))),
    )
    root = stream.normal(size=(outcomes, outcomes)) * 0.5 + np.eye(outcomes)
    root = root if skew else np.eye(outcomes)
    t = torch.from_numpy
    response = AffineResponse(
        t(stream.normal(size=(outcomes, 2))),
        t(stream.normal(size=(outcomes, width))),
        t(stream.normal(size=outcomes)),
        t(root),
        t(root @ root.T),
    )
    contexts = t(stream.normal(size=(3, 2)) * 2)
    feasible = {
        f"a{i}": (float(-stream.uniform(0.2, 2)), float(stream.uniform(0.2, 2))) for i in range(width)
    }
    some_cases = [RehearsalCase(str(i), {}, feasible) for i in range(3)]
    model = SuccessModel(region, torch.zeros(outcomes).double(), response, None)
    return GaussianSuccess(some_cases, tuple(feasible), contexts, model, None)


def by_scipy(objective, index):
    def function(z):
        at = objective.lower.new_tensor(z).expand(3, -1)
        value, gradient = objective.value_and_gradient(at)
        return -float(value[index]), -gradient[index].numpy()

    bounds = list(zip(objective.lower[index].tolist(), objective.upper[index].tolist(), strict=True))
    starts = [objective.starts(3)[s][index].numpy() for s in range(3)]
    found = [
        minimize(
            function,
            start,
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
        )
        for start in starts
    ]
    return -min(each.fun for each in found)


@pytest.mark.slow
@settings(max_examples=25, derandomize=True, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 5), outcomes=st.integers(1, 2), skew=st.booleans())
def test_newton_reaches_what_lbfgsb_reaches(seed, width, outcomes, skew):
    objective = random_objective(seed, width, outcomes, skew)
    found = ProjectionNewton().ascend(objective, objective.starts(1)[0])
    assert torch.equal(found, objective.project(found))
    for index, value in enumerate(objective(found).tolist()):
        best = by_scipy(objective, index)
        # Far away quadrature is known to hundredths; there both are nowhere.
        assert value >= best - (1e-7 if best > -14 else 0.1)


@settings(max_examples=10, derandomize=True, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 4))
def test_one_outcome_has_a_closed_form(seed, width):
    objective = random_objective(seed, width, 1, False)
    search = ProjectionNewton()
    closed, ascended = search.best(objective), search.ascend(objective, objective.starts(1)[0])
    assert torch.allclose(objective(closed), objective(ascended), atol=1e-9)
    several = objective.lower + torch.rand(
        2000, 1, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ) * (objective.upper - objective.lower)
    assert (objective(several) <= objective(closed) + 1e-12).all()


@pytest.mark.slow
def test_three_outcomes_are_climbed_too():
    objective = random_objective(3, 2, 3, True)
    found = ProjectionNewton().ascend(objective, objective.starts(1)[0])
    for index, value in enumerate(objective(found).tolist()):
        assert value >= by_scipy(objective, index) - 0.02


def test_an_answer_does_not_depend_on_its_company_nor_on_the_start():
    world = managing(
        Polytope(
            ("profit", "customers"),
            torch.tensor([[-1.0, 0], [0, -1.0], [1.0, 1.0]]),
            torch.tensor([-0.2, -0.3, 2.0]),
        )
    )
    surrogate = fit(LinearStructural(world.task), world.table(200))
    some_cases = world.cases(40)
    whole, (alone,) = (
        ProjectionNewton().batch_search(GaussianSuccess.for_cases(surrogate, some_cases)),
        ProjectionNewton().batch_search(GaussianSuccess.for_cases(surrogate, some_cases[7:8])),
    )
    assert torch.allclose(whole[7].alteration.values, alone.alteration.values, atol=1e-6)
    (one,) = GaussianSuccess.for_cases(surrogate, some_cases).sets
    for start in one.starts(6):
        assert torch.allclose(
            one(ProjectionNewton().ascend(one, start)), one(ProjectionNewton().best(one)), atol=1e-9
        )


def exact(world, candidates):
    """The best true probability in each situation: the true law on a fine grid."""
    truth = LinearStructural(world.task)
    for equation in truth.equations:
        mechanism = truth.mechanism(equation)
        place = [world.names.index(name) for name in equation.members]
        weights = [
            [world.coefficients.get(name, {}).get(parent, 0.0) for name in equation.members]
            for parent in equation.parents
        ]
        mechanism.weights = torch.tensor(weights, dtype=torch.float64).reshape(
            len(equation.parents), len(equation.members)
        )
        mechanism.intercept = torch.tensor(
            [world.intercepts.get(name, 0.0) for name in equation.members]
        ).double()
        mechanism.covariance = torch.from_numpy(world.covariance[np.ix_(place, place)])
    truth.draws = 0
    truth.contexts.values = torch.zeros(1, len(world.task.context)).double()
    found = []
    for one in GaussianSuccess.for_cases(truth, candidates).sets:
        sides = [
            torch.linspace(low, high, 241 if len(one.names) == 2 else 2001).double()
            for low, high in zip(one.lower[0], one.upper[0], strict=True)
        ]
        grid = torch.cartesian_prod(*sides).reshape(-1, 1, len(one.names))
        found.append((one, one(grid).amax(0).exp()))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("world", [managing(), chain()], ids=["two outcomes", "one outcome"])
def test_a_linear_world_is_solved_to_within_half_a_percent(world):
    some_cases = world.cases(20)
    truth = exact(world, some_cases)
    oracle = torch.stack([best for _, best in truth]).amax(0)
    reached = []
    for seed in range(3):
        decisions = ProjectionNewton().batch_search(
            GaussianSuccess.for_cases(fit(LinearStructural(world.task), world.table(1000, seed)), some_cases)
        )
        by_set = {one.names: one for one, _ in truth}
        for index, decision in enumerate(decisions):
            one = by_set[decision.alteration.names]
            actions = decision.alteration.values.expand(len(some_cases), -1)
            reached.append(float(one(actions)[index].exp() - oracle[index]))
    assert np.mean(reached) > -0.005
    assert max(reached) < 1e-3


def test_without_a_positive_curvature_the_step_is_the_gradient():
    gradient = torch.tensor([[1.0, -2.0], [1.0, -2.0]], dtype=torch.float64)
    curvature = torch.tensor([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 3.0], [3.0, 1.0]]], dtype=torch.float64)
    step = _newton_step(gradient, curvature, torch.zeros(2, 2, dtype=torch.bool))
    assert torch.allclose(step[0], torch.tensor([0.5, -0.5], dtype=torch.float64), rtol=1e-6)
    assert torch.equal(step[1], gradient[1])


MIX = torch.tensor([[1.0, 0.3], [-0.4, 2.0]], dtype=torch.float64)


class Ridges:
    """Minus the log cosh of two mixed coordinates, in boxes of any unit: full steps overshoot."""

    def __init__(self, tops, unit=1.0):
        self.unit, self.tops = torch.tensor([1.0, unit], dtype=torch.float64), torch.tensor(tops).double()
        self.lower, self.upper = (torch.tensor([[end, end]] * len(tops)) * self.unit for end in (-1.0, 2.0))
        self.seen = []

    def _mixed(self, z, which):
        return 0.8 * (z / self.unit - self.tops[which]) @ MIX.T

    def values(self, z, which):
        mixed = self._mixed(z, which)
        return -(mixed.abs() + torch.log1p((-2 * mixed.abs()).exp())).sum(-1)

    def expansion(self, z, which):
        self.seen.append((z.clone(), which.tolist()))
        bend, slope = 0.64 * (1 - self._mixed(z, which).tanh().square()), 0.8 * self._mixed(z, which).tanh()
        curvature = torch.einsum("no,oi,oj->nij", bend, MIX / self.unit, MIX / self.unit)
        return SimpleNamespace(
            value=self.values(z, which), gradient=-slope @ (MIX / self.unit), curvature=-curvature
        )


def test_steps_and_a_budget_end_it():
    for steps, budget, count in ((2, Budget(), 2), (9, Budget(1e-9), 1)):
        ridges = Ridges([[1.5, -0.7]])
        ProjectionNewton(steps=steps).ascend(ridges, ridges.lower + 0.5, budget)
        assert len(ridges.seen) == count


def test_a_step_that_only_loses_is_not_taken():
    class Wrong(Ridges):
        def expansion(self, z, which):
            found = super().expansion(z, which)
            return SimpleNamespace(value=found.value, gradient=-found.gradient, curvature=found.curvature)

    wrong = Wrong([[0.2, 0.4]])
    start = wrong.lower + 1.0
    assert torch.equal(ProjectionNewton().ascend(wrong, start), start)
    assert len(wrong.seen) == 1


@pytest.mark.slow
def test_with_few_rows_predictive_choice_is_no_worse_and_its_value_less_exaggerated():
    world = chain(noise=0.2)
    some_cases, reached, said = world.cases(6), {True: [], False: []}, {True: [], False: []}
    for seed in range(20):
        model = fit(LinearStructural(world.task), world.table(15, seed))
        for predictive in (True, False):
            for one_case, decision in zip(
                some_cases,
                ProjectionNewton(predictive=predictive).batch_search(
                    GaussianSuccess.for_cases(model, some_cases)
                ),
                strict=True,
            ):
                set_ = (
                    {}
                    if decision.alteration is None
                    else dict(
                        zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True)
                    )
                )
                reached[predictive].append(world.success(one_case, set_, 2000))
                said[predictive].append(np.exp(decision.value))
    assert np.mean(reached[True]) >= np.mean(reached[False]) - 0.005
    assert abs(np.mean(said[True]) - np.mean(reached[True])) < abs(
        np.mean(said[False]) - np.mean(reached[False])
    )
