"""Functions drawn from a posterior, beside those of BoTorch and beside regressions on all rows."""

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.sampling.pathwise import draw_matheron_paths
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from rehearsal_torch.estimators.function_draws import MARGIN, FunctionDraws
from rehearsal_torch.estimators.gaussian_process import GaussianProcesses
from rehearsal_torch.estimators.gp_posterior import HyperParameters

DOUBLE = torch.float64
STREAM = torch.Generator().manual_seed(3)
INPUTS = torch.rand(10, 2, generator=STREAM, dtype=DOUBLE)
TARGETS = (5 * INPUTS[:, 0]).sin() + INPUTS[:, 1]
NOISES = 0.02 + 0.1 * torch.rand(10, generator=STREAM, dtype=DOUBLE)
AT = torch.rand(6, 2, generator=STREAM, dtype=DOUBLE)
SCALE, PAIRS = 1.3, 2000
KINDS = {0: RBFKernel, 1: lambda: MaternKernel(2.5), 2: lambda: MaternKernel(1.5)}
kinds = pytest.mark.parametrize("kind", KINDS)


def drawn(kind=0, width=2, rows=slice(0, 10), pairs=PAIRS, length=0.4, seed=0, variances=NOISES):
    """Pairs of equal hyper-parameters, with features of their own."""

    def each(values):
        return values[rows].expand(pairs, -1)

    lengths, scales = torch.full((pairs, width), length, dtype=DOUBLE), torch.full((pairs,), SCALE).double()
    places = INPUTS[rows, :width]
    return FunctionDraws.of(kind, places, lengths, each(TARGETS), each(variances), scales, seed)


def of_botorch(kind, centre, length=0.4):
    """The same posterior by BoTorch; its mean is given."""
    variances = (SCALE**2 * NOISES).unsqueeze(-1)
    made = SingleTaskGP(
        INPUTS,
        TARGETS.unsqueeze(-1),
        variances,
        covar_module=ScaleKernel(KINDS[kind]()),
        outcome_transform=None,
    ).double()
    made.covar_module.base_kernel.lengthscale, made.covar_module.outputscale = length, SCALE**2
    made.mean_module.constant = centre
    return made.eval()


def moments(values):
    return values.mean(0), values.T.cov()


@kinds
@pytest.mark.filterwarnings("ignore:Data")
def test_the_moments_of_many_pairs_are_those_of_botorchs_posterior_and_paths(kind):
    functions = drawn(kind)
    values = functions(AT.unsqueeze(0))
    noisy = functions._between(INPUTS, INPUTS)[0] + NOISES.diag()
    ones = torch.linalg.solve(noisy, torch.ones(10).double())
    centre = ones @ TARGETS / ones.sum()
    other = of_botorch(kind, float(centre))
    posterior = other.posterior(AT)
    mean, covariance = moments(values)
    # An uncertain mean adds s^2 u u' / 1'K^-1 1, u = 1 - k(., W) K^-1 1: Rasmussen and Williams, Eq. 2.42.
    unlike = 1 - functions._between(AT, INPUTS)[0] @ ones
    wanted = posterior.distribution.covariance_matrix.detach() + SCALE**2 * unlike.outer(unlike) / ones.sum()
    torch.testing.assert_close(mean, posterior.mean[:, 0].detach(), rtol=0, atol=1e-6)
    stds = wanted.diagonal().sqrt()
    error = (covariance - wanted) / stds.outer(stds)
    assert float(error.abs().max()) < 4.5 * (2 / PAIRS) ** 0.5
    torch.manual_seed(0)
    paths = draw_matheron_paths(other, torch.Size([2000]))(AT).detach()
    theirs = moments(paths)[1] + SCALE**2 * unlike.outer(unlike) / ones.sum()
    assert float(((covariance - theirs) / stds.outer(stds)).abs().max()) < 5 * (2 / PAIRS + 2 / 2000) ** 0.5


@kinds
@pytest.mark.parametrize("width", [1, 2])
def test_a_pair_has_the_posterior_mean_as_its_mean(kind, width):
    functions = drawn(kind, width, pairs=3)
    made = GaussianProcesses([width])
    made.kinds = torch.tensor([kind])
    log_length = torch.full((1, width), 0.4, dtype=DOUBLE).log()
    made.adopt(HyperParameters(log_length, torch.zeros(1, dtype=DOUBLE)))
    made.hold(INPUTS[:, None, :width], TARGETS[:, None], torch.ones(10, 1).bool(), NOISES[:, None])
    (posterior,) = made.posteriors()
    first, second = functions(AT[None, :, :width]).split(3)
    torch.testing.assert_close((first + second) / 2, posterior.posterior_mean(AT[:, :width]).expand(3, 6))
    assert float((first - second).abs().min()) > 0
    both = FunctionDraws.certain(posterior)(AT[None, :, :width])
    torch.testing.assert_close(both, posterior.posterior_mean(AT[:, :width]).expand(2, 6))


@kinds
@pytest.mark.parametrize("width", [1, 2])
def test_conditioned_functions_have_the_moments_of_a_regression_on_all_rows(kind, width):
    more = slice(7, 10)
    first = drawn(kind, width, slice(0, 7))
    after = first.conditioned(INPUTS[more, :width], TARGETS[more], SCALE**2 * NOISES[more], 5)
    whole = drawn(kind, width, seed=9)
    at = AT[None, :, :width]
    (mean, covariance), (wanted, expected) = moments(after(at)), moments(whole(at))
    stds = expected.diagonal().sqrt()
    assert float(((covariance - expected) / stds.outer(stds)).abs().max()) < 4.5 * (4 / PAIRS) ** 0.5
    # The mean of the regression is drawn before; pairs are mirrored about what they then say.
    assert float(((mean - wanted) / stds).abs().max()) < 4.5 * (2 / PAIRS) ** 0.5


def test_sets_of_rows_are_conditioned_on_at_once_and_have_gradients():
    functions, level = drawn(pairs=2), torch.tensor(0.05, dtype=DOUBLE)
    rows = torch.rand(3, 2, 2, generator=STREAM, dtype=DOUBLE)
    targets = torch.randn(3, 2, generator=STREAM, dtype=DOUBLE)
    batch = functions.conditioned(rows, targets, level, 5)
    values = batch(AT.expand(1, 3, 6, 2))
    assert values.shape == (4, 3, 6)

    def both(rows, targets, at):
        return functions.conditioned(rows, targets, level, 5)(at.expand(1, 3, -1, 2))

    given = (each.clone().requires_grad_() for each in (rows, targets, AT[:2]))
    assert torch.autograd.gradcheck(both, tuple(given))
    # Further rows of further sets are added to these: the same as all at once.
    more, new = torch.rand(5, 1, 1, 2, dtype=DOUBLE).expand(5, 3, 1, 2), torch.randn(5, 3, 1).double()
    twice = batch.conditioned(more, new, level, 7)
    every = torch.cat([rows.expand(5, 3, 2, 2), more], -2), torch.cat([targets.expand(5, 3, 2), new], -1)
    once = functions.conditioned(*every, level, 7)
    torch.testing.assert_close(twice(AT.expand(1, 5, 3, 6, 2)), once(AT.expand(1, 5, 3, 6, 2)))
    few = twice.few(2).conditioned(more, new, level, 7)
    assert few(AT.expand(1, 5, 3, 6, 2)).shape == (2, 5, 3, 6)
    # Rows of almost no noise are passed through.
    through = functions.conditioned(rows, targets, torch.tensor(1e-8).double(), 5)(rows.unsqueeze(0))
    torch.testing.assert_close(through, targets.expand(4, 3, 2), rtol=0, atol=1e-3)


@pytest.mark.parametrize(("width", "near", "slope"), [(1, 1e-4, 0.02), (2, 5e-3, 0.2)])
def test_tables_agree_with_functions_and_their_derivatives(width, near, slope):
    functions = drawn(0, width, pairs=8, length=0.3)
    table = functions.tabulated()
    at = torch.rand(1, 40, width, generator=STREAM, dtype=DOUBLE).requires_grad_()
    values = []
    for made in (functions, table):
        found = made(at)
        (gradient,) = torch.autograd.grad(found.sum(), at)
        values.append((found.detach(), gradient / len(functions)))
    (exact, exact_slope), (found, found_slope) = values
    assert float((found - exact).abs().max()) < near * SCALE
    assert float((found_slope - exact_slope).abs().max()) < slope * SCALE
    # Beyond the margin they stay as they are at its border.
    far = torch.full((1, 1, width), 1 + 2 * MARGIN, dtype=DOUBLE)
    torch.testing.assert_close(table(far + 1), table(far))
    own = torch.rand(16, 3, width, generator=STREAM, dtype=DOUBLE)
    for member in (0, 9):
        torch.testing.assert_close(table(own)[member], table(own[member : member + 1])[member])
    torch.testing.assert_close(table.few(4)(at), table(at)[[0, 1, 8, 9]])


@pytest.mark.parametrize("together", [1, 2**20])
def test_each_function_has_its_own_inputs_and_a_gradient(monkeypatch, together):
    monkeypatch.setattr("rehearsal_torch.estimators.function_draws.TOGETHER", together)
    functions = drawn(pairs=3)
    own = torch.rand(6, 2, 4, 2, generator=STREAM, dtype=DOUBLE)
    values = functions(own)
    assert values.shape == (6, 2, 4)
    for member in range(6):
        torch.testing.assert_close(values[member], functions(own[member : member + 1])[member])
    assert torch.autograd.gradcheck(functions, (own[:, :1, :2].clone().requires_grad_(),))


def functions_with_a_row(pairs):
    one = torch.tensor([0.3], dtype=DOUBLE)
    return drawn(pairs=pairs).conditioned(AT[:1] + 0.05, one, one, 1)


def test_a_few_are_the_first_pairs():
    for functions, at in ((drawn(pairs=4), AT), (drawn(width=0, pairs=4), AT[:, :0])):
        values = functions(at.unsqueeze(0))
        few = functions.few(4)
        assert len(few) == 4
        torch.testing.assert_close(few(at.unsqueeze(0)), values[[0, 1, 4, 5]])
    more = functions_with_a_row(4)
    torch.testing.assert_close(more.few(2)(AT.unsqueeze(0)), more(AT.unsqueeze(0))[[0, 4]])
