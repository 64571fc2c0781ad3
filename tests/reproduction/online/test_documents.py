"""The page of the study of rounds that learn from each other."""

import pytest

from reproduction.online import documents


def rows(method, tau, probability, world="bermuda", oracle=0.8, target="DIC"):
    return [
        {
            "world": world,
            "method": method,
            "tau": tau,
            "repeat": repeat,
            "round": number,
            "target": target,
            "value": "0.5",
            "success": 1.0,
            "p_true": probability,
            "oracle": oracle,
            "information": 0.25,
            "lower": probability - 0.1,
            "upper": probability + 0.1,
            "seconds": 0.5,
        }
        for repeat in range(2)
        for number in range(1, 5)
    ]


@pytest.mark.parametrize(
    ("some", "text"),
    [
        (rows("qwz23", "0.7", 0.75), "0.750 at tau = .7 (at least .70), best possible 0.800; 2 repeats."),
        (
            rows("qwz23", "0.7", 0.6, target="recommend"),
            "0.600 at tau = .7 (below .70), best possible 0.800; 100% of the alterations set `recommend` "
            "(paper: 95.8%); 2 repeats.",
        ),
        (
            rows("qwz23_success", "", 0.79),
            "`qwz23_success` reaches 0.790 in the last 20 rounds, 0.010 below the best possible "
            "(within .02); 2 repeats.",
        ),
        (
            rows("qwz23_published", "0.9", 0.5),
            "at tau = .9, above the best possible 0.800, there is no constraint, as in the paper: "
            "`qwz23_published` reaches 0.500; 2 repeats.",
        ),
    ],
)
def test_each_claim_of_the_paper_has_a_line(some, text):
    assert documents.targets(some) == [f"- bermuda: {text}"]
