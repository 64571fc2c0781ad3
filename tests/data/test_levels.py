import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.levels import DoseLevels

PAPER = torch.tensor([[0.0, 0.04, 0.113, 0.225, 0.788], [0.0, 30.0, 80.0, 279.0, 850.0]], dtype=torch.float64)


def test_levels_are_quartiles_of_the_given_doses_and_zero():
    doses = torch.cat([torch.zeros(50), torch.arange(1.0, 101.0)])[:, None]
    levels = DoseLevels(("drug",), 5)
    levels.solve(doses)
    number = levels.digitise(doses)
    assert (number[:50] == 0).all()
    assert [int((number == level).sum()) for level in range(1, 5)] == [25, 25, 25, 25]
    for level in range(1, 5):
        assert levels.medians[0, level] == doses[number == level].median()


@given(doses=st.lists(st.floats(0, 1e4), min_size=8, max_size=60), count=st.integers(2, 6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_more_is_never_a_lower_level_and_none_is_level_zero(doses: list[float], count: int):
    column = torch.tensor([*doses, 1.0], dtype=torch.float64)[:, None]
    levels = DoseLevels(("drug",), count)
    levels.solve(column)
    number = levels.digitise(column.sort(0).values)
    assert (number.diff() >= 0).all()
    assert ((number == 0) == (column.sort(0).values[:, 0] == 0)).all()
    assert number.max() < count
    assert levels.medians[0].isfinite().all()


@given(action=st.integers(0, 24))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_actions_levels_and_doses_go_round(action: int):
    levels = DoseLevels(("vaso", "fluid"), 5).fix(PAPER)
    number = torch.tensor([action])
    assert levels.actions == 25
    assert levels.levels(number).tolist() == [[action // 5, action % 5]]
    assert levels.doses(number).tolist() == [[PAPER[0, action // 5].item(), PAPER[1, action % 5].item()]]
    assert torch.equal(levels.digitise(levels.doses(number)), number)
    assert torch.equal(levels.shown(number), levels.levels(number).double() / 4 - 0.5)


def test_batches_of_any_shape():
    levels = DoseLevels(("vaso", "fluid"), 5).fix(PAPER)
    assert levels.digitise(torch.rand(2, 3, 2, dtype=torch.float64)).shape == (2, 3)
    assert levels.doses(torch.zeros(2, 3, dtype=torch.long)).shape == (2, 3, 2)


def test_levels_survive_saving():
    levels, other = DoseLevels(("vaso", "fluid"), 5).fix(PAPER), DoseLevels(("vaso", "fluid"), 5)
    other.load_state_dict(levels.state_dict())
    assert torch.equal(other.medians, levels.medians)
    assert torch.equal(other.edges, levels.edges)


def test_doses_that_make_no_levels_are_refused():
    with pytest.raises(ValueError, match="fluid: expected doses of at least 0"):
        DoseLevels(("vaso", "fluid")).solve(torch.tensor([[1.0, -1.0]]))
    with pytest.raises(ValueError, match="vaso: expected some non-zero doses"):
        DoseLevels(("vaso",)).solve(torch.zeros(3, 1))
    with pytest.raises(ValueError, match="at least 2 levels"):
        DoseLevels(("vaso",), 1)
    with pytest.raises(ValueError, match="rise from 0"):
        DoseLevels(("vaso",), 3).fix(torch.tensor([[0.0, 2.0, 1.0]]))
    with pytest.raises(ValueError, match="rise from 0"):
        DoseLevels(("vaso",), 3).fix(torch.tensor([[0.5, 1.0, 2.0]]))
