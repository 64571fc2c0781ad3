import pytest
import torch

from rehearsal_torch.estimators.gaussian_process import (
    BotorchProcesses,
    GivenNoise,
    SolvedProcesses,
    TrainedProcesses,
)
from rehearsal_torch.estimators.gp_kernel import NOISE_FLOOR
from rehearsal_torch.estimators.gp_posterior import maximise, reached, starts
from rehearsal_torch.training.gradient_descent import Descent

DOUBLE = torch.float64


def posterior_of(part):
    return reached(part.rows, part.hyper)


def examples(count=40, seed=0):
    """Three regressions: of two inputs, of one that oscillates and whose last rows are left out, of none."""
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.rand(count, 3, 2, generator=stream, dtype=DOUBLE)
    noise = torch.randn(count, 3, generator=stream, dtype=DOUBLE)
    values = (
        torch.stack(
            [
                (4 * inputs[:, 0]).sin().prod(-1),
                (30 * inputs[:, 1, 0]).cos(),
                torch.zeros(count, dtype=DOUBLE),
            ],
            -1,
        )
        + 0.2 * noise
    )
    kept = torch.ones(count, 3, dtype=torch.bool)
    kept[-5:, 1] = False
    middle = torch.where(kept, values, 0.0).sum(0) / kept.sum(0)
    spread = (torch.where(kept, values - middle, 0.0).square().sum(0) / (kept.sum(0) - 1)).sqrt()
    return inputs, (values - middle) / spread, kept


def trained(part, given, epochs=150):
    total = torch.full((len(given[0]),), len(given[0]))
    Descent(max_epochs=epochs, batch_size=1000, learning_rate=0.2, precision="64-true", progress=False).train(
        part, (*given, total)
    )
    return part


@pytest.mark.parametrize("kernel", ["rbf", "learnt"])
def test_lightning_on_gpytorchs_evidence_reaches_what_the_solver_reaches(kernel):
    """Rows that are left out, and a regression without inputs, among them: to a thousandth of a nat."""
    given, solved = examples(), SolvedProcesses([2, 1, 0], kernel)
    solved.solve(*given)
    part = trained(TrainedProcesses([2, 1, 0], kernel), given)
    assert torch.equal(part.kinds, solved.kinds)
    torch.testing.assert_close(posterior_of(part), posterior_of(solved), rtol=0, atol=1e-3)


def wave_beside_a_line(count=80):
    """A short wave of one input, and a line of another that explains more; without noise."""
    inputs = torch.rand(count, 1, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    values = 0.3 * (40 * inputs[..., 0]).cos() / (1 + 3 * inputs[..., 0]) + inputs[..., 1]
    return inputs, (values - values.mean(0)) / values.std(0), torch.ones(count, 1, dtype=torch.bool)


def test_a_short_wave_beside_a_line_is_found_from_little_noise():
    inputs, targets, kept = wave_beside_a_line()
    part = SolvedProcesses([2], exact=True)
    part.solve(inputs, targets, kept)
    assert float(posterior_of(part)) > 50, "-40.6 from the best points of a coarse grid alone"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_many_rows_lose_no_evidence_by_climbing_on_few_first(seed):
    """Waves that few rows do not show, of one to three inputs."""
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.rand(260, 3, 3, generator=stream, dtype=DOUBLE)
    inputs[:, 0, 1:] = inputs[:, 1, 2:] = 0
    values = (torch.tensor([40.0, 15.0, 9.0]) * inputs).cos().sum(-1)
    values = values + 0.3 * torch.randn(values.shape, generator=stream, dtype=DOUBLE)
    kept = torch.ones(values.shape, dtype=torch.bool)
    part = SolvedProcesses([1, 2, 3], "matern32")
    part.solve(inputs, (values - values.mean(0)) / values.std(0), kept)
    whole = reached(part.rows, maximise(part.rows, starts(part.rows)))
    assert bool((posterior_of(part) > whole - 0.1).all())


def test_refits_are_repeatable_and_no_worse_than_a_fresh_fit():
    inputs, targets, kept = examples(41)
    ends = []
    for _ in range(2):
        part = SolvedProcesses([2, 1, 0])
        part.solve(inputs[:40], targets[:40], kept[:40])
        part.solve(inputs, targets, kept)
        ends.append(part.state_dict())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    fresh = SolvedProcesses([2, 1, 0])
    fresh.solve(inputs, targets, kept)
    again = SolvedProcesses([2, 1, 0])
    again.load_state_dict(ends[0])
    assert bool((posterior_of(again) >= posterior_of(fresh) - 1e-3).all())


def test_given_noise_keeps_its_lengths_unless_told_to_fit():
    inputs, targets, kept = examples()
    first = SolvedProcesses([2, 1, 0])
    first.solve(inputs, targets, kept)
    variances = 0.05 + 0.2 * inputs[:, :, 0]
    part = GivenNoise([2, 1, 0])
    opened = torch.tensor([True, False, False]).expand(40, 3)
    part.solve(inputs, targets, kept, variances, first.log_lengths.expand(40, 3, 2), opened)
    assert torch.equal(part.log_lengths[1:], first.log_lengths[1:])
    assert not torch.equal(part.log_lengths[0], first.log_lengths[0])
    assert torch.allclose(part.factors().left_out()[1][0], part.left_out_residuals()[1][0] ** 2)


def test_botorch_reaches_the_evidence_of_the_solver_but_where_its_one_start_takes_a_wave_for_noise():
    solved, botorch = SolvedProcesses((2, 1, 0)), BotorchProcesses((2, 1, 0))
    for each in (solved, botorch):
        each.solve(*examples())
    ahead = posterior_of(solved) - posterior_of(botorch)
    assert ahead[[0, 2]].abs().max() < 1e-2
    assert ahead[1] > 10


def test_noise_is_not_taken_for_a_short_wave():
    """Evidence under priors of little noise is higher where a function passes through all rows."""
    stream = torch.Generator().manual_seed(3)
    inputs, noise = torch.rand(2, 45, 1, 3, generator=stream, dtype=DOUBLE)
    values = (3 * inputs[..., 0]).sin() + 0.3 * noise[..., 0]
    part = SolvedProcesses([3])
    part.solve(inputs, (values - values.mean(0)) / values.std(0), torch.ones(45, 1, dtype=torch.bool))
    assert float(part.log_noises.exp()) > 0.05


def test_the_fitted_noise_gives_the_targets_back():
    inputs, targets, kept = examples()
    part = SolvedProcesses([2, 1, 0])
    part.solve(inputs, targets, kept)
    residual, _, unknown = part.in_sample_residuals()
    for place, posterior in enumerate(part.posteriors()):
        mean, std = posterior.belief(inputs[:, place, : part.widths[place]])
        rows = kept[:, place]
        assert torch.allclose((mean + residual[place])[rows], targets[:, place][rows], atol=1e-9)
        if part.widths[place]:
            assert torch.allclose(std[rows], unknown[place][rows], atol=1e-6)


@pytest.mark.slow
def test_where_the_noise_ends_at_its_bound_they_differ_by_a_quarter_of_a_nat():
    given, solved = wave_beside_a_line(), SolvedProcesses([2], exact=True)
    solved.solve(*given)
    assert float(solved.log_noises.exp()) == pytest.approx(NOISE_FLOOR)
    part = trained(TrainedProcesses([2], exact=True), given, 300)
    torch.testing.assert_close(posterior_of(part), posterior_of(solved), rtol=0, atol=0.25)
