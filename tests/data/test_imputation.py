"""Multiple imputation: observed cells stay, draws follow the regression, and the unit does not matter."""

import pytest
import torch

from rehearsal_torch.data.imputation import Imputation, ImputedTable
from rehearsal_torch.data.table import Table

NAMES = ("x", "y", "b")


def cells(rows=600, seed=0):
    """x, y = 2 x + noise of .5, and a yes/no; y is missing where x is large, some of b by chance."""
    stream = torch.Generator().manual_seed(seed)
    x, noise = torch.randn(2, rows, generator=stream, dtype=torch.float64)
    b = (torch.rand(rows, generator=stream) < 0.5).to(torch.float64)
    values = torch.stack([x, 2 * x + 0.5 * noise, b], -1)
    holes = values.clone()
    holes[(x > 0) & (torch.rand(rows, generator=stream) < 0.6), 1] = torch.nan
    holes[torch.rand(rows, generator=stream) < 0.1, 2] = torch.nan
    return values, holes


def test_observed_cells_stay_and_few_values_stay_these():
    _, holes = cells()
    table = ImputedTable.of(NAMES, holes, 3, seed=5)
    known = ~holes.isnan()
    assert torch.equal(table.missing, ~known)
    assert len(table.completed) == 3
    for each in table.completed:
        assert torch.equal(each.values[known], holes[known])
        assert set(each.values[:, 2].tolist()) == {0.0, 1.0}
    assert torch.equal(table.values, table.completed[0].values)
    assert not torch.equal(table.completed[1].values, table.completed[2].values)


def test_draws_follow_the_regression_and_its_noise():
    values, holes = cells()
    table = ImputedTable.of(NAMES, holes, 5, seed=1)
    missing = holes[:, 1].isnan()
    # Complete rows alone have a mean that is .5 too low; the imputed tables have not.
    assert float(values[:, 1].mean() - holes[~missing, 1].mean()) > 0.4
    means = torch.stack([each.values[:, 1].mean() for each in table.completed])
    assert float(means.mean()) == pytest.approx(float(values[:, 1].mean()), abs=0.06)
    off = torch.stack([each.values[missing, 1] - 2 * each.values[missing, 0] for each in table.completed])
    assert float(off.std()) == pytest.approx(0.5, abs=0.06)


def skewed(rows=1500, seed=3):
    """y = x + noise that is exponential and grows with x; y is missing the more often the larger x is."""
    stream = torch.Generator().manual_seed(seed)
    x = torch.rand(rows, generator=stream, dtype=torch.float64)
    noise = -(torch.rand(rows, generator=stream, dtype=torch.float64).log())
    values = torch.stack([x, x + (0.2 + x) * noise], -1)
    holes = values.clone()
    holes[torch.rand(rows, generator=stream) < 0.2 + 0.5 * x, 1] = torch.nan
    return values, holes


def test_the_noise_of_a_draw_is_that_of_similar_rows():
    values, holes = skewed()
    missing = holes[:, 1].isnan()
    made = torch.stack([Imputation(holes).drawn(0, place)[missing, 1] for place in range(5)])
    truth = values[missing, 1]
    for limit in (0.5, 0.8, 1.2, 2.5):
        assert float((made <= limit).double().mean()) == pytest.approx(
            float((truth <= limit).double().mean()), abs=0.04
        )
    # A normal distribution would put a tenth of them below 0.
    assert float((made < 0).double().mean()) < 0.02
    low = (holes[missing, 0] < 0.3).expand_as(made)
    assert float(made[low].std()) < 0.6 * float(made[~low].std())


def test_cells_that_are_missing_together_stay_dependent():
    stream = torch.Generator().manual_seed(0)
    x, noise, other = torch.randn(3, 600, generator=stream, dtype=torch.float64)
    values = torch.stack([x, x + noise, x - noise + 0.1 * other], -1)
    holes = values.clone()
    holes[torch.rand(600, generator=stream) < 0.5, 1:] = torch.nan
    missing = holes[:, 1].isnan()
    made = Imputation(holes).drawn(0, 0)[missing]
    sums, differences = made[:, 1] + made[:, 2] - 2 * made[:, 0], made[:, 1] - made[:, 2]
    assert float(sums.std()) == pytest.approx(0.1, abs=0.03)
    assert float(differences.std()) == pytest.approx(2.0, abs=0.25)


def test_with_few_complete_rows_the_noise_is_normal():
    _, holes = skewed(60)
    holes[19:, 1] = torch.nan
    holes[:19, 1] = 1 + holes[:19, 0]
    holes[:3, 0] = torch.nan
    made = Imputation(holes).drawn(0, 0)
    assert torch.isfinite(made).all()


def test_each_table_depends_on_its_place_and_the_seed_alone():
    _, holes = cells(100)
    several = ImputedTable.of(NAMES, holes, 4, seed=9)
    assert torch.equal(several.completed[3].values, Imputation(holes).drawn(9, 3))
    assert torch.equal(
        ImputedTable.of(NAMES, holes, 2, seed=9).completed[1].values, several.completed[1].values
    )
    assert not torch.equal(Imputation(holes).drawn(8, 3), Imputation(holes).drawn(9, 3))


def test_the_most_likely_distribution_is_that_of_a_monotone_pattern_in_closed_form():
    # x is complete, y regressed on it: the maximum likelihood has a closed form (Anderson, 1957).
    _, holes = cells(300)
    found = Imputation(holes[:, :2])
    mean, covariance = found.likely
    scaled = torch.where(found.known, found.cells, torch.nan)
    whole = scaled[found.known[:, 1]]
    x, y = whole[:, 0] - whole[:, 0].mean(), whole[:, 1] - whole[:, 1].mean()
    slope = (x * y).mean() / (x * x).mean()
    level = whole[:, 1].mean() - slope * whole[:, 0].mean()
    left = (y - slope * x).square().mean()
    spread = scaled[:, 0].var(correction=0)
    torch.testing.assert_close(mean[1], level + slope * scaled[:, 0].mean(), rtol=0, atol=1e-4)
    torch.testing.assert_close(covariance[0, 1], slope * spread, rtol=0, atol=1e-4)
    torch.testing.assert_close(covariance[1, 1], slope**2 * spread + left, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_the_tables_differ_by_what_is_unknown_of_the_parameters():
    # y misses in half of the rows, by chance; x says nothing of it. The mean of y over the imputed tables has
    # between them the variance that its missing half brings: (n_mis / n)^2 (s^2 / n_mis + s^2 / n_obs).
    stream = torch.Generator().manual_seed(4)
    values = torch.randn(60, 2, dtype=torch.float64, generator=stream)
    values[:30, 1] = torch.nan
    made = Imputation(values)
    means = torch.stack([made.drawn(0, place)[:, 1].mean() for place in range(60)])
    variance = float(values[30:, 1].var())
    assert float(means.var()) == pytest.approx(0.25 * (variance / 30 + variance / 30), rel=0.5)


def test_the_fingerprint_is_that_of_the_observed_cells():
    values, holes = cells(50)
    table = ImputedTable.of(NAMES, holes, 2)
    observed = Table(NAMES, holes.nan_to_num(0.0), holes.isnan())
    assert table.fingerprint() == ImputedTable.of(NAMES, holes, 3, 4).fingerprint() == observed.fingerprint()
    assert torch.equal(table.values[~table.missing], values[~table.missing])


def test_a_column_that_is_a_function_of_others_stays_one():
    values, holes = cells(200)
    values[:, 1] = 3 * values[:, 0] - values[:, 2]
    holes = torch.where(holes.isnan(), holes, values)
    holes[:, 2] = values[:, 2]
    found = Imputation(holes).drawn(0, 0)
    torch.testing.assert_close(found[:, 1], values[:, 1], rtol=0, atol=1e-2)
