"""How much is compared."""

import pytest

from rehearsal_torch.method_choice.candidate import Limits


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": 19}, "choose.rows: expected a whole number of at least 20; got 19"),
        ({"cases": 2.5}, "choose.cases: expected a whole number of at least 1; got 2.5"),
        ({"repeats": 1}, "choose.repeats: expected a whole number of at least 2; got 1"),
        ({"repeats": True}, "choose.repeats: expected a whole number of at least 2; got True"),
    ],
)
def test_a_limit_out_of_range_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Limits(**given)


def test_the_smallest_limits_are_taken():
    assert Limits(20, 1, 2) == Limits(rows=20, cases=1, repeats=2)
