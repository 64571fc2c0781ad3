import numpy as np
import pytest

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.sizes import (
    LARGEST_SEED,
    NUMBERS,
    SizeError,
    allowance,
    bounded,
    check_seed,
    reserve,
)
from rehearsal_torch.estimators.mixture import GaussianMixtures
from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.lipschitz_network import LipschitzNetwork
from rehearsal_torch.seeding import spaced_generator
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.surrogates.kernel.spectral_ridge import SpectralRidge

HUGE = 10**9


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (-1, "at least 0; got -1"),
        (True, "at least 0; got True"),
        ("1", "at least 0; got '1'"),
        (1.0, "at least 0; got 1.0"),
        (LARGEST_SEED + 1, "at most 8796093022207; got one of 44 bits"),
        pytest.param(10**5000, "at most 8796093022207; got one of 16610 bits", id="beyond what is written"),
    ],
)
def test_a_seed_is_a_whole_number_that_every_generator_takes(seed, words):
    with pytest.raises(SizeError, match=rf"\Aseed: expected a whole number of {words}\Z"):
        check_seed(seed)
    check_seed(LARGEST_SEED)
    assert type(check_seed(np.int64(3))) is int
    assert spaced_generator(LARGEST_SEED, 999_999).initial_seed() < 2**63


@pytest.mark.parametrize(
    ("build", "key"),
    [
        (lambda: LipschitzNetwork(2, 1, 2, HUGE, (1.0,)), "hidden"),
        (lambda: LipschitzNetwork(HUGE, 1, 2, 3, (1.0,)), "smooth"),
        (lambda: LipschitzNetwork(20_000, 1, 2, 20_000, (1.0,)), "hidden"),
        (lambda: ConditionalFlow(2, 1, (8, HUGE)), r"hidden\[1\]"),
        (lambda: ConditionalFlow(2, 1, (60_000, 60_000)), "hidden"),
        (lambda: ConditionalFlow(2, 1, bins=HUGE), "bins"),
        (lambda: DoseLevels(["a"], HUGE), "levels"),
        (lambda: DoseLevels(["a", "b", "c"], 500), r"levels \*\* doses"),
        (lambda: GaussianMixtures(2, HUGE), "components"),
        (lambda: SpectralEnsemble(members=HUGE), "members"),
        (lambda: SpectralRidge(features=HUGE), "features"),
        (lambda: ProductRidge(solver="fourier", features=HUGE), "features"),
        (lambda: ProductRidge(solver="nystrom", rank=HUGE), "rank"),
    ],
)
def test_sizes_that_no_machine_holds_are_refused_by_name(build, key):
    with pytest.raises(SizeError, match=rf"^{key}: expected .*; got [\d]+"):
        build()


@pytest.mark.parametrize("value", [0, -3, 1.5, True, "many", None, 11])
def test_a_size_is_a_whole_number_in_range(value):
    with pytest.raises(SizeError, match=r"features: expected a whole number from 1 to 10; got "):
        bounded("features", value, 10)
    bounded("features", 10, 10)


def test_an_allowance_is_spent_and_ends():
    reserve("hidden", NUMBERS)
    with allowance(10):
        reserve("hidden", 6)
        with pytest.raises(SizeError, match="at most the remaining 4 numbers"):
            reserve("hidden", 5)
        reserve("hidden", 4)
    reserve("hidden", 100)
    with pytest.raises(SizeError, match="at most 134217728 numbers"):
        reserve("hidden", NUMBERS + 1)
