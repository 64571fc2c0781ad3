import math

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.index_sampler import IndexSampler

from rehearsal_torch.surrogates.network.model import NetworkEnsemble
from tests.toys.causal_toys import linear_chain

AT = torch.tensor([[[0.5, 0.5]], [[1.0, 0.0]]], dtype=torch.float64)


def test_the_posterior_of_one_action_is_that_of_the_network():
    posterior = NetworkEnsemble(linear_chain(), members=1024, draws=64).posterior(AT)
    mean = torch.tensor([1.0, 3.0], dtype=torch.float64)
    variance = torch.tensor(
        [(0.45 * 1.5) ** 2 + (0.2 * 1.5) ** 2, (0.45 * 2) ** 2 + 0.2**2], dtype=torch.float64
    )
    torch.testing.assert_close(posterior.mean[:, 0, 0], mean, rtol=0, atol=0.02)
    torch.testing.assert_close(posterior.variance[:, 0, 0], variance, rtol=0.02, atol=0)


def test_expected_improvement_and_the_confidence_bound_of_botorch_run_on_it():
    model = NetworkEnsemble(linear_chain(), members=512)
    sampler = IndexSampler(torch.Size([512]), seed=0)
    improvement = qLogExpectedImprovement(model, best_f=1.0, sampler=sampler)
    std = math.hypot(0.45 * 1.5, 0.3)
    assert improvement(AT[:1]).exp().item() == pytest.approx(std / math.sqrt(2 * math.pi), rel=0.25)
    bound = qUpperConfidenceBound(model, beta=4.0, sampler=sampler)
    # Largest at a = 1, b = 0: 3 + 2 sd in expectation of the reparametrised form.
    best, value = optimize_acqf(
        bound, model.bounds, q=1, num_restarts=2, raw_samples=16, options={"seed": 0, "maxiter": 50}
    )
    assert best[0].tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert value.item() == pytest.approx(3 + 2 * math.hypot(0.9, 0.2), rel=0.1)


def test_a_batch_is_a_joint_posterior():
    model = NetworkEnsemble(linear_chain(), members=8, draws=4)
    values = model(torch.rand(3, 5, 2, dtype=torch.float64))
    assert values.shape == (3, 8, 5, 1)
    assert model.num_outputs == 1


@pytest.mark.parametrize("given", [{"members": 0}, {"draws": 0}])
def test_an_empty_ensemble_is_refused(given):
    with pytest.raises(ValueError, match="expected at least 1"):
        NetworkEnsemble(linear_chain(), **given)
