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

from rehearsal_torch.problems.nhanes.generator import (
    CONTEXT,
    INNER,
    SHIPPED,
    Generator,
    PairedRanks,
    ResidualDistribution,
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


def test_the_card_tells_how_well_it_fits(shipped):
    validation = shipped.card["validation"]
    assert validation["correlation_mae_paper"] == 0.0483
    assert 0.02 < validation["correlation_mae"] < 0.0483
    assert validation["desired_real"] == 0.3622
    assert validation["desired_generated"] == pytest.approx(0.3622, abs=0.02)
    assert len(validation["readings"]) == 4


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


@pytest.mark.parametrize(
    ("key", "change", "progress"),
    [
        ("equations.BMI.0.feature", lambda array: np.full_like(array, 99), "s feature is not one of 6"),
        ("roots.Age.shares", lambda array: array * 2, "sum to 1"),
        ("ranks.shares", lambda array: -array, "at least 0"),
        ("equations.FPG.support", None, "lacks 'equations.FPG.support'"),
        ("chain.Race.5.feature", None, "for each of 6 classes"),
    ],
)
def test_damage_with_a_forged_card_is_refused(copy, key, change, progress):
    arrays = load((copy / "weights.safetensors").read_bytes())
    arrays = {name: array for name, array in arrays.items() if name != key} | (
        {key: change(arrays[key])} if change else {}
    )
    if key.startswith("chain.Race.5"):
        arrays = {
            name: array
            for name, array in arrays.items()
            if not name.startswith(("chain.Race.5.", "chain.Race.4."))
        }
    with pytest.raises(ValueError, match=progress):
        Generator.load(resealed(copy, arrays))


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


@pytest.mark.parametrize(
    ("edges", "shares"),
    [
        ([0, 0.5, 1], [[0.5, 0.1], [0.0, 0.4]]),
        ([0, 0.5, 1], [[0.6, -0.1], [-0.1, 0.6]]),
        ([0, 1, 1], [[0.5, 0.5], [0.0, 0.0]]),
        ([0, 1], [[0.5, 0.5], [0.0, 0.0]]),
    ],
)
def test_damaged_ranks_are_refused(edges, shares):
    with pytest.raises(ValueError, match="damaged"):
        PairedRanks(np.array(edges, dtype=float), np.array(shares))


def test_damaged_means_are_refused():
    for means in ([0.0, 1.0, 1.0], [0.0], [0.0, np.nan]):
        with pytest.raises(ValueError, match="damaged"):
            ResidualDistribution(np.array(means))
