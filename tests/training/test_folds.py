import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.training.folds import Fold, folds_of


def parted(folds: list[Fold], rows: int) -> None:
    assert torch.equal(torch.cat([fold.held_out for fold in folds]).sort().values, torch.arange(rows))
    for fold in folds:
        assert torch.equal(torch.cat([fold.train, fold.held_out]).sort().values, torch.arange(rows))


@given(
    owners=st.lists(st.integers(0, 12), min_size=20, max_size=60),
    count=st.integers(2, 5),
    seed=st.integers(0, 100),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_no_unit_stands_on_both_sides(owners: list[int], count: int, seed: int):
    identities = [f"p{owner}" for owner in [*range(5), *owners]]
    folds = folds_of(len(identities), identities, count, seed)
    parted(folds, len(identities))
    held = [{identities[row] for row in fold.held_out.tolist()} for fold in folds]
    for fold, outside in zip(folds, held, strict=True):
        assert outside.isdisjoint(identities[row] for row in fold.train.tolist())
    assert max(map(len, held)) - min(map(len, held)) <= 1


def test_a_units_fold_does_not_depend_on_the_rows_order():
    identities = [f"p{row % 7}" for row in range(50)]
    shuffled = torch.randperm(50, generator=torch.Generator().manual_seed(0)).tolist()
    straight = {
        identities[row]: fold.index
        for fold in folds_of(50, identities, 3, 1)
        for row in fold.held_out.tolist()
    }
    mixed = [identities[row] for row in shuffled]
    again = {mixed[row]: fold.index for fold in folds_of(50, mixed, 3, 1) for row in fold.held_out.tolist()}
    assert straight == again


@given(rows=st.integers(5, 60), count=st.integers(2, 5), seed=st.integers(0, 100))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_row_folds_part_the_rows_evenly(rows: int, count: int, seed: int):
    folds = folds_of(rows, None, count, seed)
    parted(folds, rows)
    sizes = [len(fold.held_out) for fold in folds]
    assert max(sizes) - min(sizes) <= 1


def test_too_few_to_part_is_refused():
    with pytest.raises(ValueError, match="2 units"):
        folds_of(3, ["a", "a", "b"], 3)
    with pytest.raises(ValueError, match="at least 2 folds"):
        folds_of(10, None, 1)


def test_units_decide_the_folds_where_there_are_some():
    units = [f"s{row // 4}" for row in range(20)]
    for fold in folds_of(20, units, 5, 0):
        assert len(fold.held_out) == 4
        assert len({units[row] for row in fold.held_out.tolist()}) == 1
