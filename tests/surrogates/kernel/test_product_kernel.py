import pytest
import torch

from rehearsal_torch.surrogates.kernel.product_kernel import Choice, gaussian, leave_one_out, median_width
from tests.toys.confounded import rows


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
            expected = float(targets[i, 0] - gram[i, rest] @ alpha)
            assert float(errors[place, i]) == pytest.approx(expected, abs=1e-8)


def test_the_median_width_is_the_median_distance():
    values = rows(101)[0]
    distances = torch.cdist(values, values)[torch.triu_indices(101, 101, 1).unbind()]
    assert float(median_width(values)) == pytest.approx(float(distances.median()))
    assert float(median_width(values[:, :0])) == 1.0
    rare = torch.zeros(100, 1, dtype=torch.float64)
    rare[:5] = 1.0
    assert 0 < float(median_width(rare)) < 1


def test_leave_one_out_keeps_few_equally_good_models():
    x, u, _, a, targets, _ = rows(200)
    alone, several = (
        Choice("leave_one_out", max_models=count).models((x, u, a), targets[:, 0]) for count in (1, 5)
    )
    assert len(alone.ridges) == 1
    assert 1 < len(several.ridges) <= 5
    assert torch.equal(alone.widths[0], several.widths[0])
    assert torch.equal(alone.ridges[0], several.ridges[0])
