import pytest
import torch

from rehearsal_torch.surrogates.kernel.product_kernel import Choice, gaussian, leave_one_out, median_width
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from tests.toys.confounded import fitted, points, rows


def test_leave_one_out_is_refitting_without_the_row():
    x, _, _, a, targets, _ = rows(30)
    gram = gaussian(torch.cat([x, a], -1), torch.cat([x, a], -1))
    errors = leave_one_out(gram, targets[:, 0], [1e-3, 0.1])
    for place, ridge in enumerate((1e-3, 0.1)):
        for i in range(30):
            rest = [j for j in range(30) if j != i]
            # The ridge of all 30 rows, as the formula has it.
            alpha = torch.linalg.solve(
                gram[rest][:, rest] + 30 * ridge * torch.eye(29, dtype=torch.float64), targets[rest, 0]
            )
            assert float(errors[place, i]) == pytest.approx(
                float(targets[i, 0] - gram[i, rest] @ alpha), abs=1e-8
            )


def test_the_median_width_is_the_median_distance():
    values = rows(101)[0]
    distances = torch.cdist(values, values)[torch.triu_indices(101, 101, 1).unbind()]
    assert float(median_width(values)) == pytest.approx(float(distances.median()))
    assert float(median_width(values[:, :0])) == 1.0
    rare = torch.zeros(100, 1, dtype=torch.float64)
    rare[:5] = 1.0
    assert 0 < float(median_width(rare)) < 1


@pytest.mark.slow
def test_leave_one_out_keeps_few_equally_good_models():
    x, u, _, a, targets, _ = rows(200)
    alone = Choice("leave_one_out", tolerance=0.0).models((x, u, a), targets[:, 0])
    several = Choice("leave_one_out", tolerance=2.0, max_models=5).models((x, u, a), targets[:, 0])
    assert len(alone.ridges) == 1
    assert len(several.ridges) == 5
    assert torch.equal(alone.widths[0], several.widths[0])
    assert torch.equal(alone.ridges[0], several.ridges[0])


def test_averaging_is_the_mean_over_models():
    examples, (contexts, actions) = rows(120), points()
    mixture = fitted(ProductRidge(widths="leave_one_out", models=4, tolerance=3.0), *examples)
    assert len(mixture.ridges) == 4
    single = [
        fitted(ProductRidge(fixed=widths.tolist(), lambda_h=float(ridge)), *examples)
        for widths, ridge in zip(mixture.widths, mixture.ridges, strict=True)
    ]
    values = torch.stack([each.value(each.prepare(contexts), actions) for each in single])
    inner = torch.stack([each.std(each.prepare(contexts), actions) for each in single])
    prepared = mixture.prepare(contexts)
    assert torch.allclose(mixture.value(prepared, actions), values.mean(0), atol=1e-9)
    assert torch.allclose(
        mixture.std(prepared, actions),
        (inner.square().mean(0) + values.var(0, correction=0)).sqrt(),
        atol=1e-8,
    )
