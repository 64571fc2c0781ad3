"""Chained equations of statsmodels: independent draws by seed, observed values alone, any table."""

import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
import torch

from rehearsal_torch.data import chained_equations as chained
from rehearsal_torch.data.chained_equations import ChainedEquations, lacking
from rehearsal_torch.data.imputation import ImputedTable, Imputing
from rehearsal_torch.objectives.imputed_success import Pooled
from tests.data.test_imputation import NAMES, cells

BY = Imputing(3, "statsmodels")


@pytest.mark.slow
def test_observed_cells_stay_and_drawn_ones_are_observed_elsewhere():
    _, holes = cells(200)
    # Units whose standardised values have other last bits.
    holes = holes * torch.tensor([1 / 3, 1e6, 0.1]) + torch.tensor([1e4, -7.7, 0.3])
    known = ~holes.isnan()
    table = ImputedTable.of(NAMES, holes, BY, seed=5)
    assert len(table.completed) == 3
    for each in table.completed:
        assert torch.equal(each.values[known], holes[known])
        for place in (1, 2):
            drawn = each.values[~known[:, place], place]
            assert torch.isin(drawn, holes[known[:, place], place]).all()
    assert torch.equal(table.values, table.completed[0].values)
    assert not torch.equal(table.completed[1].values, table.completed[2].values)


@pytest.mark.slow
def test_draws_depend_on_seed_and_place_alone():
    _, holes = cells(80)
    np.random.seed(1)  # noqa: NPY002  what others do to the global state
    torch.manual_seed(1)
    one = ChainedEquations(holes).drawn(9, 2)
    np.random.seed(2)  # noqa: NPY002
    torch.manual_seed(2)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    shown = torch.get_rng_state()
    table = ImputedTable.of(NAMES, holes, BY, seed=9)
    other = table.completed[2].values
    assert one.numpy().tobytes() == other.numpy().tobytes()
    # And neither global state moves.
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), shown)
    assert not torch.equal(ChainedEquations(holes).drawn(8, 2), one)


def test_neither_unit_nor_offset_changes_a_draw():
    _, holes = cells(120)
    scale, offset = torch.tensor([1024.0, 2.0**-20, 4.0]), torch.tensor([0.0, 0.0, 8.0])
    one, other = (ChainedEquations(each).drawn(0, 0) for each in (holes, holes * scale + offset))
    torch.testing.assert_close((other - offset) / scale, one, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_draws_follow_the_regression_and_its_noise():
    values, holes = cells(600)
    table = ImputedTable.of(NAMES, holes, Imputing(4, "statsmodels"), seed=1)
    missing = holes[:, 1].isnan()
    means = torch.stack([each.values[:, 1].mean() for each in table.completed])
    # Complete rows alone have a mean that is .5 too low.
    assert float(means.mean()) == pytest.approx(float(values[:, 1].mean()), abs=0.06)
    off = torch.stack([each.values[missing, 1] - 2 * each.values[missing, 0] for each in table.completed])
    assert float(off.std()) == pytest.approx(0.5, abs=0.08)


@pytest.mark.slow
def test_the_tables_differ_by_what_is_unknown_of_the_parameters():
    # As for our own imputation: by (n_mis / n)^2 (s^2 / n_mis + s^2 / n_obs), in the mean of y.
    stream = torch.Generator().manual_seed(4)
    values = torch.randn(60, 2, dtype=torch.float64, generator=stream)
    values[:30, 1] = torch.nan
    made = ChainedEquations(values)
    means = torch.stack([made.drawn(0, place)[:, 1].mean() for place in range(60)])
    variance = float(values[30:, 1].var())
    assert float(means.var()) == pytest.approx(0.25 * (variance / 30 + variance / 30), rel=0.5)


def test_a_row_without_an_observed_cell_takes_those_of_another():
    _, holes = cells(60)
    holes[[0, 17]] = torch.nan
    made = ChainedEquations(holes).drawn(0, 0)
    others = made[[place for place in range(60) if place not in (0, 17)]]
    for place in (0, 17):
        assert (others == made[place]).all(-1).any()
    assert torch.isfinite(made).all()


@pytest.mark.parametrize("names", [("x:y", 'Q("a")', "~ 0 +")])
def test_names_may_be_anything(names):
    _, holes = cells(25)
    made = ImputedTable.of(names, holes, BY, seed=1)
    assert made.names == names
    assert torch.equal(made.values, ChainedEquations(holes).drawn(1, 0))


@pytest.mark.parametrize(
    "shape",
    [
        "twice",
        "a function of two",
        "all but a function",
        "constant",
        "constant where observed",
    ],
)
def test_columns_that_are_functions_of_each_other_are_drawn(shape):
    values, holes = cells(120)
    known = ~holes.isnan()
    columns = {
        "twice": lambda: torch.stack([values[:, 1], values[:, 1], values[:, 2]], -1),
        "a function of two": lambda: torch.stack(
            [values[:, 0], 3 * values[:, 0] - values[:, 2], values[:, 2]], -1
        ),
        "all but a function": lambda: torch.stack(
            [values[:, 0], values[:, 0] * (1 + 1e-13) + 1e-12 * values[:, 1], values[:, 2]], -1
        ),
        "constant": lambda: torch.stack([values[:, 0], values[:, 1], torch.full((120,), 4.0)], -1),
        "constant where observed": lambda: torch.stack(
            [values[:, 0], torch.full((120,), 2.5), values[:, 2]], -1
        ),
    }
    given_cells = columns[shape]().to(torch.float64).where(known, torch.nan)
    found = ChainedEquations(given_cells).drawn(0, 0)
    assert torch.isfinite(found).all()
    assert torch.equal(found[known], given_cells[known])
    if shape == "a function of two":
        # The relation is kept up to the distance of ten rows.
        off = found[:, 1] - (3 * found[:, 0] - found[:, 2])
        assert float(off.abs().mean()) < 0.35 * float(found[:, 1].std())
    if shape.startswith("constant where"):
        assert float(found[:, 1].min()) == float(found[:, 1].max()) == 2.5


def test_residuals_are_shares_of_the_standard_deviation():
    # y = 2 x + noise of .5 has the share .5 / sqrt(4.25); x given y the same, and b none.
    values = cells(4000)[0].numpy()
    assert chained.residuals(values) == pytest.approx([0.5 / 4.25**0.5, 0.5 / 4.25**0.5, 1.0], abs=0.02)
    constant = np.column_stack([values[:, :2], np.full(4000, 3.0)])
    assert np.isnan(chained.residuals(constant)).tolist() == [False, False, True]
    assert np.isnan(chained.residuals(values[:14])).all()


def test_closely_determined_columns_with_missing_cells_are_warned_of():
    values, holes = cells(400)
    assert chained.loosened(NAMES, holes.numpy()) == []
    close = torch.stack([values[:, 0], values[:, 0] + 0.02 * values[:, 1], values[:, 2]], -1)
    assert chained.loosened(NAMES, close.numpy()) == []
    (told,) = chained.loosened(NAMES, close.where(~holes.isnan(), torch.nan).numpy())
    # .01 of x + .02 (2 x + noise of .5).
    assert (
        "of columns with missing cells is less than a tenth of their standard deviation (y: 0.010), so"
        in told
    )


def test_a_complete_table_stays_without_statsmodels(monkeypatch):
    monkeypatch.setattr(chained, "installed", lambda: "")
    values, _ = cells(20)
    assert all(torch.equal(each.values, values) for each in ImputedTable.of(NAMES, values, BY).completed)


@pytest.mark.parametrize(
    ("found", "words"),
    [("", "0.15 or later; it is not installed: "), ("0.14.4", "0.15 or later; 0.14.4 is installed: ")],
)
def test_a_package_that_is_lacking_or_too_old_is_told(monkeypatch, found, words):
    monkeypatch.setattr(chained, "installed", lambda: found)
    assert lacking().startswith(
        f"by: statsmodels needs statsmodels {words}pip install 'rehearsal-torch[impute]'"
    )
    with pytest.raises(
        ModuleNotFoundError, match=r"pip install 'rehearsal-torch\[impute\]', or leave by out"
    ):
        ImputedTable.of(NAMES, cells(20)[1], BY)
    monkeypatch.setattr(chained, "installed", lambda: "1.0.0.dev3")
    assert lacking() == ""


@pytest.mark.slow
def test_the_package_is_imported_where_it_draws_alone():
    program = (
        "import sys, torch\n"
        "from rehearsal_torch.data.imputation import ImputedTable\n"
        "import rehearsal_torch.data.problem_file.compiled\n"
        "values = torch.randn(40, 2, dtype=torch.float64)\n"
        "values[:5, 1] = torch.nan\n"
        "ImputedTable.of(('x', 'y'), values, 2)\n"
        "sys.exit('statsmodels' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_filters_of_warnings_stay_as_they_are():
    values, holes = cells(40)
    holes[:, 0] = values[:, 1]
    before = list(warnings.filters)
    ChainedEquations(holes).drawn(0, 0)
    assert warnings.filters == before


def test_too_few_cells_are_told():
    _, holes = cells(40)
    holes[3:, 1] = torch.nan
    with pytest.raises(
        ValueError, match="got 3 cells and 3 columns: add rows, take variables out, or leave by"
    ):
        ChainedEquations(holes).drawn(0, 0)
    with pytest.raises(ValueError, match="expected at least 2 columns"):
        ChainedEquations(holes[:, 1:2]).drawn(0, 0)
    holes[:4, 1] = torch.tensor([1.0, 2.0, 4.0, 3.0])
    assert torch.isin(ChainedEquations(holes).drawn(0, 0)[:, 1], torch.tensor([1.0, 2.0, 3.0, 4.0])).all()


def mar(seed, rows=400):
    """x of mean 0, y = 1 + .8 x + noise of .6, z; x is missing the more often the larger y is, and some z."""
    stream = torch.Generator().manual_seed(seed)
    x, noise, other = torch.randn(3, rows, generator=stream, dtype=torch.float64)
    y = 1 + 0.8 * x + 0.6 * noise
    holes = torch.stack([x, y, y - x + other], -1)
    chance = torch.sigmoid(2 * (y - 1))
    holes[torch.rand(rows, generator=stream) < chance, 0] = torch.nan
    holes[torch.rand(rows, generator=stream) < 0.3 * chance, 2] = torch.nan
    return holes


def mean_and_slope(values):
    """The mean of x and the slope of y on x, each with its squared standard error."""
    x, y = values[:, 0], values[:, 1]
    from_mean = x - x.mean()
    slope = float((from_mean * y).sum() / from_mean.square().sum())
    noise = y - y.mean() - slope * from_mean
    squared = float(noise.square().sum() / (len(x) - 2) / from_mean.square().sum())
    return (float(x.mean()), float(x.var() / len(x))), (slope, squared)


def held(tables):
    """Whether the pooled 95 % intervals hold the mean, 0, and the slope, .8."""
    found = []
    for truth, several in zip(
        (0.0, 0.8), zip(*(mean_and_slope(each) for each in tables), strict=True), strict=True
    ):
        pooled = Pooled([point for point, _ in several], [(error, error) for _, error in several], 0.95)
        found.append(pooled.lower <= truth <= pooled.upper)
    return found


@pytest.mark.bench
def test_both_imputations_hold_the_truth_where_complete_rows_do_not():
    own, others, complete = [], [], []
    for seed in range(5):
        holes = mar(seed)
        for by, found in (("own", own), ("statsmodels", others)):
            table = ImputedTable.of(("x", "y", "z"), holes, Imputing(20, by), seed)
            found += held([each.values for each in table.completed])
        whole = holes[~holes.isnan().any(-1)]
        complete += held([whole, whole])
    # At 95 % one of ten is to be expected to fail in four of ten trials, two in one of ten.
    assert sum(own) >= 8
    assert sum(others) >= 8
    assert sum(complete) <= 2


def test_the_version_is_that_which_is_installed(monkeypatch):
    assert chained.installed() == version("statsmodels")

    def gone(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(chained, "version", gone)
    assert chained.installed() == ""
