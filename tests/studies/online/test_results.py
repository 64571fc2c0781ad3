"""Sections of the page: what was aimed at, and whether it was reached."""

import pytest

from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.online import results


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
    ("some", "told"),
    [
        (rows("qwz23", "0.7", 0.75), "0.750 at tau = .7 (at least .70), best possible 0.800; 2 repeats."),
        (
            rows("qwz23", "0.7", 0.6, target="recommend"),
            "0.600 at tau = .7 (below .70), best possible 0.800; 100% of the alterations set `recommend` "
            "(paper: 95.8%); 2 repeats.",
        ),
        (
            rows("qwz23_success", "", 0.79),
            "success alone comes to 0.790 in the last 20 rounds, 0.010 below the best possible (within .02); "
            "2 repeats.",
        ),
        (
            rows("qwz23_published", "0.9", 0.5),
            "at tau = .9, which not even the best possible 0.800 reaches, the constraint is dropped, as in "
            "the paper: `qwz23_published` comes to 0.500; 2 repeats.",
        ),
    ],
)
def test_goals_are_told_as_they_were_reached(some, told):
    assert results.goals(some) == [f"- bermuda: {told}"]


def test_table1_has_the_papers_figures_and_longer_runs_a_part_of_their_own():
    text, _ = results.table1(
        rows("qwz23", "0.7", 0.75), rows("ddpg", "", 0.2), {10_000: rows("ddpg", "", 0.5)}
    )
    found = [line for line in text if line.startswith("| bermuda")]
    assert [line.split(" | ")[-2] for line in found] == ["0.679", "0.230", "0.688"]
    assert "### After 10000 rounds" in text
    assert results.table1([], [], {}) == ([], {})


def test_counterparts_stand_on_the_same_repeats():
    some = [*rows("qwz23", "0.7", 0.75), *rows("causal", "0.7", 0.5), *rows("none", "", 0.2)]
    with drawing():
        text, figures = results.counterparts(some)
        assert set(figures) == {"counterparts"}
        assert results.policies(some) == ([], {}), "a single method is no comparison"
    assert text[2].startswith("The same repeats for all.")
    assert sum(line.startswith("| bermuda") for line in text) == 3
