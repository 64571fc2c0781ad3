"""What BoTorch offers on a network of a causal world."""

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from botorch.acquisition.analytic import (
    LogConstrainedExpectedImprovement,
    LogNoisyExpectedImprovement,
    LogProbabilityOfImprovement,
    UpperConfidenceBound,
)
from botorch.acquisition.bayesian_active_learning import qBayesianActiveLearningByDisagreement
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.logei import (
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qLogProbabilityOfFeasibility,
)
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy, qMaxValueEntropy
from botorch.acquisition.monte_carlo import (
    qPosteriorStandardDeviation,
    qProbabilityOfImprovement,
    qSimpleRegret,
    qUpperConfidenceBound,
)
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.multi_objective.hypervolume_knowledge_gradient import qHypervolumeKnowledgeGradient
from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.parego import qLogNParEGO
from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.acquisition.risk_measures import CVaR
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.exceptions.errors import UnsupportedError
from botorch.generation.sampling import MaxPosteriorSampling
from botorch.models.model import ModelList
from botorch.models.transforms.input import InputPerturbation
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning

from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.fitted_pair import fitted_pair


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    """BoTorch compiles a kernel of qLogEHVI on first use, in a minute; here it stays Python."""
    monkeypatch.setattr(logei, "_load_attempted", True)


BOUNDS = torch.tensor([[0.0, -1.0], [2.0, 1.0]], dtype=torch.float64)
POINT = torch.tensor([-1.0, -1.0], dtype=torch.float64)
MIXED = torch.tensor([0.5, 0.5], dtype=torch.float64)


def one(**settings):
    return NetworkModel(fitted_pair(), **settings)


def two():
    return NetworkModel(fitted_pair(), ("X", "Y"))


def baseline():
    return one().train_inputs[0]


def spread(count):
    return BOUNDS[0] + 2 * torch.rand(
        count, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )


def cool(samples):
    return samples[..., 0] - 0.7


def around():
    return one(input_transform=InputPerturbation(0.05 * spread(4)))


RUN = {
    "LogEI": lambda: LogExpectedImprovement(one(), 0.5),
    "LogPI": lambda: LogProbabilityOfImprovement(one(), 0.5),
    "UCB": lambda: UpperConfidenceBound(one(), 4.0),
    "LogConstrainedEI": lambda: LogConstrainedExpectedImprovement(two(), 0.5, 1, {0: (None, 0.7)}),
    "qPI": lambda: qProbabilityOfImprovement(one(), 0.5),
    "qSimpleRegret": lambda: qSimpleRegret(one()),
    "qPosteriorStandardDeviation": lambda: qPosteriorStandardDeviation(one()),
    "qLogPOF": lambda: qLogProbabilityOfFeasibility(two(), constraints=[cool]),
    "qNIPV": lambda: qNegIntegratedPosteriorVariance(one(), mc_points=spread(5).unsqueeze(-2)),
    "qLogEHVI": lambda: qLogExpectedHypervolumeImprovement(
        two(), POINT, partitioning=FastNondominatedPartitioning(POINT, two().posterior(baseline()).mean)
    ),
    "qLogNParEGO": lambda: qLogNParEGO(two(), baseline()),
    "a scalarised posterior": lambda: qLogExpectedImprovement(
        two(), 0.5, posterior_transform=ScalarizedPosteriorTransform(MIXED)
    ),
    "qKG of a scalarised posterior": lambda: qKnowledgeGradient(
        two(), num_fantasies=2, posterior_transform=ScalarizedPosteriorTransform(MIXED)
    ),
    "qMultiStepLookahead": lambda: qMultiStepLookahead(one(), batch_sizes=[1, 1], num_fantasies=[2, 2]),
    "qHVKG": lambda: qHypervolumeKnowledgeGradient(
        ModelList(two().subset_output([0]), two().subset_output([1])),
        ref_point=POINT,
        num_fantasies=2,
        num_pareto=2,
    ),
    "a risk measure": lambda: qUpperConfidenceBound(around(), 4.0, objective=CVaR(0.5, 4)),
    "one feature fixed": lambda: FixedFeatureAcquisitionFunction(
        qLogNoisyExpectedImprovement(one(), baseline()), 2, [1], [0.0]
    ),
    "qLowerBoundMaxValueEntropy": lambda: qLowerBoundMaxValueEntropy(one(), spread(20)),
}
REFUSED = {
    "LogNEI": (UnsupportedError, lambda: LogNoisyExpectedImprovement(one(), baseline())),
    "qMES": (AttributeError, lambda: qMaxValueEntropy(one(), spread(20))),
    "qJES": (
        TypeError,
        lambda: qJointEntropySearch(
            one(), optimal_inputs=spread(1), optimal_outputs=torch.ones(1, 1, dtype=torch.float64)
        ),
    ),
    "qPES": (AttributeError, lambda: qPredictiveEntropySearch(one(), optimal_inputs=spread(1))),
    "BALD": (RuntimeError, lambda: qBayesianActiveLearningByDisagreement(one())),
    "pathwise": (NotImplementedError, lambda: PathwiseThompsonSampling(one())),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_what_botorch_offers_runs_on_a_network(name):
    torch.manual_seed(0)
    function = RUN[name]()
    bounds = BOUNDS[:, :1] if name == "one feature fixed" else BOUNDS
    q = (
        function.get_augmented_q_batch_size(1)
        if isinstance(function, qMultiStepLookahead | qHypervolumeKnowledgeGradient)
        else 1
    )
    few = {"num_restarts": 2, "raw_samples": 4, "options": {"maxiter": 3}}
    # An ascent that ends at once, at a flat top, is no failure of the function.
    proposed, value = optimize_acqf(function, bounds, q=q, retry_on_optimization_warning=False, **few)
    assert bool(((proposed >= bounds[0]) & (proposed <= bounds[1])).all())
    assert bool(value.isfinite().all())


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_for_gaussian_processes_alone_does_not(name):
    error, made = REFUSED[name]
    with pytest.raises(error):
        made()(spread(1).unsqueeze(0))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Optimization failed")
def test_optimisers_and_generators_of_botorch_take_a_network():
    torch.manual_seed(0)
    function, few = (
        qLogNoisyExpectedImprovement(one(), baseline()),
        {"num_restarts": 2, "raw_samples": 4, "options": {"maxiter": 3}},
    )
    mixed, _ = optimize_acqf_mixed_alternating(
        function, BOUNDS, discrete_dims={1: [-1.0, 0.0, 1.0]}, num_restarts=2, raw_samples=4
    )
    assert float(mixed[0, 1]) in (-1.0, 0.0, 1.0)
    limit = (torch.tensor([0, 1]), torch.tensor([-1.0, -1.0], dtype=torch.float64), -1.0)
    within, _ = optimize_acqf(function, BOUNDS, q=2, inequality_constraints=[limit], **few)
    assert float(within.sum(-1).max()) <= 1 + 1e-6
    assert MaxPosteriorSampling(one())(spread(20), num_samples=3).shape == (3, 2)
    gradient = qKnowledgeGradient(one(), num_fantasies=2)
    assert gradient.evaluate(spread(2).unsqueeze(1), bounds=BOUNDS, num_restarts=2, raw_samples=4).shape == (
        2,
    )


def test_a_network_model_proposes_on_its_bounds():
    world = Dropwave()
    model = NetworkModel(fit(ExogenousModel(world.task), world.observations()))
    assert torch.equal(world.bounds, model.bounds)
    torch.manual_seed(0)
    proposed, _ = optimize_acqf(
        qLogNoisyExpectedImprovement(model, model.train_inputs[0]),
        world.bounds,
        q=1,
        num_restarts=2,
        raw_samples=16,
        options={"maxiter": 10},
    )
    assert bool(world.expected(proposed).isfinite().all())
