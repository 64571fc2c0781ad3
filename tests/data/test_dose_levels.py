import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.dose_levels import DoseLevels

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
    assert torch.equal(levels.encoded(number), levels.levels(number).double() / 4 - 0.5)


def solved(doses, count=5):
    column = torch.tensor(doses, dtype=torch.float64)[:, None]
    levels = DoseLevels(("drug",), count)
    levels.solve(column)
    return levels, levels.digitise(column)


def test_repeated_doses_never_empty_a_level_and_what_shares_one_is_named():
    levels, number = solved([0.0] * 3 + [1.0] * 5 + [2.0] * 90 + [3.0] * 2 + [4.0] * 2 + [5.0])
    assert number.unique().tolist() == [0, 1, 2, 3, 4]
    assert levels.selectable.all()
    assert levels.medians.tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0]]
    assert "quantiles coincide" in levels.notes["drug"]
    assert levels.notes["drug"].endswith("these doses share a level: 4 to 5 (2 doses)")
    assert (
        solved([float(dose) for dose in range(9)])[0]
        .notes["drug"]
        .endswith("1 to 2 (2 doses); 3 to 4 (2 doses); 5 to 6 (2 doses); 7 to 8 (2 doses)")
    )
    assert solved([0.5 + dose for dose in range(100)])[0].notes == {}


@given(
    doses=st.lists(
        st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 1e-300, 0.1 + 0.2, 0.3]), min_size=1, max_size=60
    ),
    count=st.integers(2, 7),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_level_is_selectable_where_it_has_rows(doses: list[float], count: int):
    levels, number = solved([*doses, 1.0], count)
    for level in range(1, count):
        mine = torch.tensor([*doses, 1.0], dtype=torch.float64)[number == level]
        assert bool(levels.selectable[level]) == bool(len(mine))
        assert not len(mine) or levels.medians[0, level] in mine
    different = len({dose for dose in [*doses, 1.0] if dose})
    assert int(levels.selectable[1:].sum()) == min(different, count - 1)


def test_few_different_doses_keep_their_values():
    for count in (3, 4, 5):
        levels, number = solved([0.0] * 30 + [1.0] * 60 + [2.0] * 40, count)
        assert number.tolist() == [0] * 30 + [1] * 60 + [2] * 40
        assert levels.medians[0, :3].tolist() == [0.0, 1.0, 2.0]
        assert levels.selectable.tolist() == [True] * 3 + [False] * (count - 3)
        assert levels.edges[0, 0] == 1.5
        assert bool(levels.edges.isfinite().all())
        beyond = levels.digitise(torch.tensor([[1.4], [1.6], [1e300]], dtype=torch.float64))
        assert beyond.tolist() == [1, 2, 2]
        assert levels.digitise(torch.tensor([[7.0]])).tolist() == [2], "in single precision as well"
        assert ("drug" in levels.notes) == (count > 3)
    assert solved([0.0, 3.0, 3.0])[0].medians.tolist() == [[0.0, 3.0, 3.0, 3.0, 3.0]]
    assert "1 different non-zero dose," in solved([0.0, 3.0, 3.0])[0].notes["drug"]
