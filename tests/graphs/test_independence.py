"""Tests of conditional independence, and tables on which none can be made."""

import sys

import pytest
import torch

from rehearsal_torch.graphs.learning import independence


def chain(rows, seed=0):
    """a -> b -> c."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    b = noise[:, 0] + noise[:, 1]
    return torch.stack([noise[:, 0], b, b + noise[:, 2]], 1)


@pytest.mark.parametrize(
    ("test", "values"),
    [
        ("fisherz", chain(500)),
        ("kci", chain(120)),
        ("chisq", (chain(2000) > 0).double()),
        ("gsq", chain(2000).sign()),
    ],
)
def test_a_chain_is_dependent_until_its_middle_is_known(test, values):
    p_value = independence(values, "abc", test)
    assert p_value(0, 2, ()) < 0.01
    if test in ("fisherz", "kci"):
        # Signs of b do not tell all of b, so the tests of codes rightly go on to see dependence.
        assert p_value(0, 2, (1,)) > 0.01


def test_p_values_are_uniform_under_independence():
    generator = torch.Generator().manual_seed(1)
    found = [independence(torch.randn(60, 3, generator=generator), "abc")(0, 1, (2,)) for _ in range(400)]
    for level in (0.05, 0.2, 0.5):
        assert (
            abs(sum(value < level for value in found) / 400 - level)
            < 3.5 * (level * (1 - level) / 400) ** 0.5
        )


def test_too_few_different_rows_are_no_evidence_of_independence():
    values = chain(8)
    repeated = values[torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])]
    assert independence(values, "abc")(0, 2, (1,)) > 0
    assert independence(repeated, "abc")(0, 2, (1,)) == 0, "five different rows, whatever their number"


@pytest.mark.parametrize(
    ("values", "test", "message"),
    [
        (chain(50), "spearman", "unknown test 'spearman': choose one of fisherz, chisq, gsq, kci"),
        (chain(50)[:, :2], "fisherz", r"expected values of shape \(n, 3\); got \(50, 2\)"),
        (chain(4), "fisherz", "at least 5 rows; got 4"),
        (chain(50).index_fill(1, torch.tensor([1]), 3.0), "fisherz", r"\['b'\] are constant"),
        (
            torch.cat([chain(50)[:49], torch.tensor([[0.0, float("nan"), 1.0]], dtype=torch.float64)]),
            "fisherz",
            r"\['b'\] have values that are missing",
        ),
        (chain(50), "chisq", r"chisq tests codes.*\['a', 'b', 'c'\]"),
        (
            torch.stack([chain(50)[:, 0], chain(50)[:, 1], 2 * chain(50)[:, 0] - chain(50)[:, 1] + 7], 1),
            "fisherz",
            r"c is a linear function of \['a', 'b'\]",
        ),
        (chain(50)[:, [0, 1, 0]], "fisherz", r"c is a linear function of \['a'\]"),
    ],
)
def test_tables_that_cannot_be_tested_are_refused_by_name(values, test, message):
    with pytest.raises(ValueError, match=message):
        independence(values, "abc", test)


def test_without_the_library_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rehearsal-torch\[graphs\]'"):
        independence(chain(50), "abc")
