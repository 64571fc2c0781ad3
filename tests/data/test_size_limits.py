import numpy as np
import pytest

from rehearsal_torch.data.size_limits import LARGEST_SEED, NUMBERS, SizeError, allowance, check_seed, reserve
from rehearsal_torch.seeding import spaced_generator


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
