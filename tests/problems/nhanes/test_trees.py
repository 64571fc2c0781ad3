import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.nhanes.trees import BoostedTrees
from reproduction.nhanes.fitting import arrays_of


def grown(count=30, width=5, seed=0):
    """Complete trees of depth 3 with random splits and values, and rows to ask them about."""
    stream = np.random.default_rng(seed)
    inner, nodes = np.arange(7), 15
    arrays = {name: np.zeros((count, nodes)) for name in ("left", "right", "threshold", "value")}
    arrays |= {"feature": np.full((count, nodes), -1), "start": np.zeros(1)}
    arrays["feature"][:, inner] = stream.integers(0, width, (count, 7))
    arrays["threshold"][:, inner] = stream.integers(0, 12, (count, 7)) / 2
    arrays["left"][:, inner], arrays["right"][:, inner] = 2 * inner + 1, 2 * inner + 2
    arrays["value"][:, 7:] = stream.standard_normal((count, 8))
    return BoostedTrees.of(arrays, width), stream.integers(0, 12, (400, width)).astype(float) / 2


def one_tree(**changed):
    """x0 <= 1 ? 10 : (x1 <= 2 ? 20 : 30), above a start of 1."""
    arrays = {
        "feature": np.array([[0, -1, 1, -1, -1]]),
        "threshold": np.array([[1.0, 0, 2, 0, 0]]),
        "left": np.array([[1, 0, 3, 0, 0]]),
        "right": np.array([[2, 0, 4, 0, 0]]),
        "value": np.array([[0.0, 10, 0, 20, 30]]),
        "start": np.array([1.0]),
    }
    return BoostedTrees.of({**arrays, **changed}, 2)


def test_a_tree_by_hand():
    tree = one_tree()
    found = tree(
        [np.array([[0.0], [1.0], [1.5], [1.5], [9.0]]), np.array([[9.0], [9.0], [2.0], [2.5], [-1.0]])]
    )
    assert found[:, 0].tolist() == [11.0, 11.0, 21.0, 31.0, 21.0]


@settings(derandomize=True, max_examples=20, deadline=None)
@given(
    st.integers(1, 7),
    st.integers(1, 9),
    st.lists(st.sampled_from("rmn1"), min_size=5, max_size=5),
    st.integers(0, 99),
)
def test_columns_of_any_shape_say_the_same_as_rows(rows, many, kinds, seed):
    trees, _ = SHARED
    shape = {"r": (rows, 1), "m": (1, many), "n": (rows, many), "1": (1, 1)}
    stream = np.random.default_rng(seed)
    columns = [stream.uniform(-1, 7, shape[kind]) for kind in kinds]
    whole = np.broadcast_shapes(*(column.shape for column in columns))
    flat = trees([np.broadcast_to(column, whole).reshape(-1, 1) for column in columns])
    np.testing.assert_allclose(trees(columns), flat.reshape(whole), atol=1e-6)


SHARED = grown()


def test_many_rows_are_cut_into_pieces_without_a_trace():
    trees, _ = SHARED
    stream = np.random.default_rng(1)
    columns = [
        stream.uniform(0, 6, (3, 9001)) if place < 3 else stream.uniform(0, 6, (3, 1)) for place in range(5)
    ]
    found = trees(columns)
    for row, column in ((0, 0), (1, 4096), (2, 9000), (1, 8191)):
        alone = trees(
            [each[row : row + 1, column if each.shape[1] > 1 else 0].reshape(1, 1) for each in columns]
        )
        assert found[row, column] == pytest.approx(float(alone[0, 0]), abs=1e-6)


@pytest.mark.parametrize(
    ("changed", "progress"),
    [
        ({"left": np.array([[0, 0, 3, 0, 0]])}, "child does not come after"),
        ({"right": np.array([[2, 0, 9, 0, 0]])}, "child does not come after"),
        ({"feature": np.array([[0, -1, 2, -1, -1]])}, "s feature is not one of 2"),
        ({"feature": np.array([[0, -1, -3, -1, -1]])}, "s feature is not one of 2"),
        ({"value": np.array([[0.0, np.nan, 0, 20, 30]])}, "not finite"),
        ({"threshold": np.array([[1.0, 0, np.inf, 0, 0]])}, "not finite"),
        ({"value": np.array([[0.0, 10, 0, 20]])}, "one shape"),
    ],
)
def test_damage_is_seen(changed, progress):
    with pytest.raises(ValueError, match=progress):
        one_tree(**changed)


def test_missing_arrays_and_deep_trees_are_refused():
    with pytest.raises(ValueError, match=r"no array \['left'\]"):
        BoostedTrees.of({key: value for key, value in arrays_of(one_tree()).items() if key != "left"}, 2)
    deep = 9  # a comb of nine inner nodes has ten leaves
    inner, nodes = np.arange(0, 2 * deep, 2), 2 * deep + 1
    arrays = {name: np.zeros((1, nodes)) for name in ("left", "right", "threshold", "value")} | {
        "feature": np.full((1, nodes), -1),
        "start": np.zeros(1),
    }
    arrays["feature"][0, inner], arrays["left"][0, inner], arrays["right"][0, inner] = 0, inner + 1, inner + 2
    with pytest.raises(ValueError, match="at most 8 leaves"):
        BoostedTrees.of(arrays, 1)
    with pytest.raises(ValueError, match="expected 2 columns"):
        one_tree()([np.zeros((1, 1))])
