from functools import partial

import pytest
import torch

from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit
from tests.transitions import CONTEXTUAL, DOSES, STATIC, VARYING, model, observations, patients


@pytest.fixture(scope="module")
def surrogate() -> TransitionModel:
    return fit(model(), observations(), Descent(max_epochs=3, progress=False))


def test_examples_are_parents_in_order_and_the_next_varying_state(surrogate: TransitionModel):
    table = observations(seed=4)
    parents, values = surrogate.examples(table)
    assert parents.shape == (len(table), 6)
    assert values.shape == (len(table), 2)
    assert parents.dtype == values.dtype == torch.float32
    features = (*VARYING, *STATIC, *CONTEXTUAL)
    assert torch.allclose(surrogate.rescale.unscale(parents[:, :4].double()), table.columns(features), atol=1e-4)
    assert torch.allclose(surrogate.units(values.double()), table.columns(("x'", "y'")), atol=1e-5)
    levels = surrogate.levels.levels(surrogate.levels.digitise(table.columns(DOSES)))
    assert torch.equal(parents[:, 4:], (levels / 2 - 0.5).float())


def test_the_training_table_fills_the_box():
    table = observations()
    made = fit(model(), table, Descent(max_epochs=1, progress=False))
    parents, values = made.examples(table)
    both = torch.cat([parents[:, :2], values])
    assert torch.allclose(both.amin(0), torch.tensor(-0.5))
    assert torch.allclose(both.amax(0), torch.tensor(0.5))


def test_a_course_passes_static_and_contextual_features_through(surrogate: TransitionModel):
    """Each step is the mechanism at the observed static and contextual features, with the noise of that step."""
    (episode,) = patients(1, 6, seed=5)
    course = surrogate.course(episode)
    mechanism = model().mechanism.double()
    mechanism.load_state_dict(surrogate.mechanism.state_dict())
    boxed = surrogate.rescale.scale(episode.columns(surrogate.rescale.names))
    elsewhere = torch.tensor([[0.2, -0.1]], dtype=torch.float64)
    for time in range(5):
        shown = surrogate.levels.shown(torch.arange(course.actions))
        taken = torch.cat([boxed[time], shown[course.observed[time]]])
        noise = mechanism.abduct(taken, boxed[time + 1, :2])
        for action in range(course.actions):
            parents = torch.cat([elsewhere[0], boxed[time, 2:], shown[action]])
            assert torch.allclose(course.step(elsewhere, time, torch.tensor(action))[0], mechanism(parents, noise), atol=1e-8)


def test_log_likelihood_is_the_mechanisms(surrogate: TransitionModel):
    table = observations(seed=6)
    assert surrogate.log_likelihood(table).shape == (len(table),)
    assert surrogate.log_likelihood(table).mean().item() == pytest.approx(-surrogate.mechanism.loss(*surrogate.examples(table)).item(), rel=1e-5)


def test_logarithms_are_undone_in_units_and_have_no_slope():
    made = TransitionModel(VARYING, STATIC, CONTEXTUAL, DOSES, partial(LocationScale, hidden=4), levels=3, logarithms=("y",))
    raw = observations()
    positive = type(raw)(raw.names, torch.where(torch.tensor([name[0] == "y" for name in raw.names]), raw.values.exp(), raw.values), raw.altered)
    fit(made, positive, Descent(max_epochs=1, progress=False))
    _, values = made.examples(positive)
    assert torch.allclose(made.units(values.double()), positive.columns(("x'", "y'")), rtol=1e-4, atol=1e-4)
    assert torch.isinf(made.slope()).tolist() == [False, True]


def test_one_role_a_column():
    with pytest.raises(ValueError, match="each column has one role"):
        TransitionModel(("x",), ("x",), (), ("a",), partial(LocationScale, hidden=4))
    with pytest.raises(ValueError, match="each column has one role"):
        TransitionModel(("x",), (), (), ("x",), partial(LocationScale, hidden=4))
