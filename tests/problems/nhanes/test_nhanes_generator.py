import hashlib
import pickle
import shutil

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from scipy.stats import kstest, spearmanr

from rehearsal_torch.problems.nhanes.nhanes_generator import (
    CONTEXT,
    INNER,
    SHIPPED,
    BoostedTrees,
    Generator,
    PairedRanks,
)
from reproduction.nhanes.fitting import grouped, paired_ranks, save_generator


@pytest.fixture(scope="module")
def shipped():
    return Generator.load()


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(SHIPPED, tmp_path / "generator")


def resealed(folder, arrays=None, **card):
    """The folder with other numbers and a card that vouches for them."""
    content = save(arrays) if arrays is not None else (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(content)
    old = yaml.safe_load((folder / "card.yaml").read_text())
    (folder / "card.yaml").write_text(
        yaml.safe_dump(old | {"sha256": hashlib.sha256(content).hexdigest()} | card)
    )
    return folder


def test_saved_and_loaded_it_draws_the_same(shipped, tmp_path):
    save_generator(shipped, tmp_path)
    again = Generator.load(tmp_path)
    for chain in (False, True):
        for paired in (False, True):
            rows = [
                generator.draw(200, np.random.default_rng(1), chain, paired) for generator in (shipped, again)
            ]
            assert np.array_equal(*rows)
    assert again.card["bounds"] == shipped.card["bounds"]


def test_the_shipped_one_is_small_and_holds_no_rows(shipped):
    files = sorted(path.name for path in SHIPPED.iterdir())
    assert files == ["card.yaml", "weights.safetensors"]
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 500_000
    arrays = load((SHIPPED / "weights.safetensors").read_bytes())
    assert max(array.shape[0] for array in arrays.values()) <= 256
    assert shipped.card["participants"] == 7465


def test_it_loads_without_unpickling(monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    assert len(Generator.load().equations) == 11


def test_the_outcomes_noise_is_integrated_exactly(shipped):
    stream = np.random.default_rng(5)
    given = dict(zip(CONTEXT, shipped.contexts(stream.random((6, 1))).values(), strict=True))
    found = shipped.inner(given, {name: np.array([[0.5]]) for name in INNER})
    for paired in (True, False):
        exact = float(shipped.desired(found, (5.7, 100.0), paired)[0, 0])
        outcomes = shipped.outcomes(found, stream.random((1, 100_000)), stream.random((1, 100_000)), paired)
        assert ((outcomes["HbA1c"] <= 5.7) & (outcomes["FPG"] <= 100)).mean() == pytest.approx(
            exact, abs=0.006
        )


def test_a_changed_byte_is_refused(copy):
    content = bytearray((copy / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "weights.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="its SHA-256 differs"):
        Generator.load(copy)


def test_folders_that_hold_no_generator_are_refused(copy, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"there is no weights.safetensors and no card.yaml: give a folder that `python -m "
        r"reproduction.nhanes` wrote",
    ):
        Generator.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="format 1"):
        Generator.load(resealed(copy, format=2))
    (copy / "card.yaml").write_text("a: [")
    with pytest.raises(ValueError, match="cannot be read as YAML"):
        Generator.load(copy)
    (copy / "card.yaml").write_text("!!python/object/apply:os.getcwd []")
    with pytest.raises(ValueError, match="cannot be read as YAML"):
        Generator.load(copy)
    (copy / "weights.safetensors").write_bytes(b"no numbers")
    (copy / "card.yaml").write_text(
        yaml.safe_dump({"format": 1, "sha256": hashlib.sha256(b"no numbers").hexdigest()})
    )
    with pytest.raises(ValueError, match="not a safetensors file"):
        Generator.load(copy)


def pair(count=4000, seed=0):
    stream = np.random.default_rng(seed)
    first = stream.standard_t(4, count)
    return first, 0.8 * first + 0.6 * stream.standard_normal(count)


def test_draws_are_distributed_like_the_residuals():
    residuals = pair()[0]
    drawn = grouped(residuals).quantile(np.random.default_rng(1).random(20_000))
    assert kstest(residuals, drawn).statistic < 0.02
    assert drawn.mean() == pytest.approx(residuals.mean(), abs=0.03)
    assert drawn.std() == pytest.approx(residuals.std(), rel=0.03)


def test_no_residual_is_kept():
    residuals = pair()[0]
    distribution = grouped(residuals)
    assert not set(np.float32(distribution.means).tolist()) & set(np.float32(residuals).tolist())
    assert distribution.means.max() < residuals.max()
    with pytest.raises(ValueError, match="a single participant's"):
        grouped(residuals[:300])


@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.floats(0.002, 0.998))
def test_below_undoes_quantile(uniform):
    distribution = grouped(pair()[0])
    assert float(distribution.below(distribution.quantile(np.array(uniform)))) == pytest.approx(
        uniform, abs=1e-9
    )


def test_ranks_keep_margins_and_dependence():
    first, second = pair()
    ranks = paired_ranks(first, second)
    stream = np.random.default_rng(2)
    one = stream.random(40_000)
    other = ranks.second(one, stream.random(40_000))
    assert kstest(other, "uniform").statistic < 0.01
    assert spearmanr(one, other).statistic == pytest.approx(spearmanr(first, second).statistic, abs=0.02)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_the_joint_distribution_agrees_with_draws_and_bounds(u, v):
    ranks, one, other = SHARED
    expected = float(ranks.below(np.array(u), np.array(v)))
    assert ((one <= u) & (other <= v)).mean() == pytest.approx(expected, abs=0.012)
    # Fréchet and Hoeffding
    assert max(u + v - 1, 0) - 1e-6 <= expected <= min(u, v) + 1e-6
    assert float(PairedRanks.independent().below(np.array(u), np.array(v))) == pytest.approx(u * v, abs=1e-12)


def _drawn():
    ranks, stream = paired_ranks(*pair()), np.random.default_rng(3)
    one = stream.random(40_000)
    return ranks, one, ranks.second(one, stream.random(40_000))


SHARED = _drawn()


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


@settings(derandomize=True, max_examples=20, deadline=None)
@given(
    st.integers(1, 7),
    st.integers(1, 9),
    st.lists(st.sampled_from("rmn1"), min_size=5, max_size=5),
    st.integers(0, 99),
)
def test_columns_of_any_shape_say_the_same_as_rows(rows, many, kinds, seed):
    trees, _ = SHARED_TREES
    shape = {"r": (rows, 1), "m": (1, many), "n": (rows, many), "1": (1, 1)}
    stream = np.random.default_rng(seed)
    columns = [stream.uniform(-1, 7, shape[kind]) for kind in kinds]
    whole = np.broadcast_shapes(*(column.shape for column in columns))
    flat = trees([np.broadcast_to(column, whole).reshape(-1, 1) for column in columns])
    np.testing.assert_allclose(trees(columns), flat.reshape(whole), atol=1e-6)


SHARED_TREES = grown()


def test_many_rows_are_cut_into_pieces_without_a_trace():
    trees, _ = SHARED_TREES
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
