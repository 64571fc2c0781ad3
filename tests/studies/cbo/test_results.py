"""The study's tables: differences seed by seed, their mean over problems, medians."""

import pytest

from rehearsal_torch.evaluation.trial_rows import trial_rows
from rehearsal_torch.studies.cbo import results as cbo_results


def rows(problem, method, seed, ends, start=0.0, optimum=10.0):
    scores = [
        {"expected": end, "recommended": end, "optimum": optimum, "start": start, "regret": optimum - end}
        for end in ends
    ]
    lines = [
        {
            "index": index,
            "identity": str(index),
            "kind": "optimise",
            "given": {},
            "status": "recommended",
            "alteration": {"a": 0.5},
            "recommendation": {"a": 0.5},
            "estimate": {"point": 1.0, "of": "reward"},
            "reward": 1.0,
            "score": score,
            "seconds": 0.1,
        }
        for index, score in enumerate(scores)
    ]
    return trial_rows(problem, "", method, seed, lines)


def some():
    found = []
    for seed, (ours, theirs) in enumerate([(8.0, 6.0), (9.0, 5.0), (7.0, 7.0)]):
        found += rows("p", "excbo", seed, [0.0, ours]) + rows("p", "ucb", seed, [0.0, theirs])
    # Seed 2 is missing on the second problem, and the third is one that the other method was not tried on.
    for seed, (ours, theirs) in enumerate([(4.0, 8.0), (6.0, 6.0)]):
        found += rows("q", "excbo", seed, [ours], optimum=20.0) + rows(
            "q", "ucb", seed, [theirs], optimum=20.0
        )
    return [*found, *rows("r", "excbo", 0, [1.0])]


def line(text, head):
    (found,) = [each for each in text if each.startswith(f"| {head} ")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_differences_are_shares_of_the_gap_seed_by_seed():
    text = cbo_results.beaten(some())
    assert line(text, "p")[1].startswith("+0.200 [")
    assert line(text, "q")[1].startswith("-0.100 [")
    assert line(text, "r")[1] == "-"


def test_their_mean_is_over_the_seeds_that_both_have_everywhere():
    # Seed 0: (.2 - .2) / 2, seed 1: (.4 + 0) / 2.
    assert line(cbo_results.beaten(some()), "mean of the problems above")[1].startswith("+0.100 [")


def test_without_another_method_there_is_nothing_to_compare():
    assert cbo_results.beaten(rows("p", "excbo", 0, [1.0])) == []


def test_across_settings_each_counts_as_one():
    text = cbo_results.across(some(), "Together")
    assert text[0] == "## Together"
    # p: (.2 + .4 + 0) / 3, q: (-.2 + 0) / 2; r has nothing to compare with.
    assert line(text, "`ucb`")[:4] == ["`ucb`", "2", "5", "1"]
    assert line(text, "`ucb`")[4].startswith("+0.050 [")
    assert cbo_results.across(rows("p", "excbo", 0, [1.0]), "Together") == []


def test_medians_are_of_methods_with_enough_seeds():
    ours_and_theirs = [row for row in some() if row["problem"] == "p"]
    text = cbo_results.medians(ours_and_theirs, "Medians", least=3)
    assert text[0] == "## Medians"
    body = [[cell.strip() for cell in each.strip("|").split("|")] for each in text if each.startswith("| p ")]
    assert body[0] == ["p", "`excbo`", "3", "8", "7", "9", "8", "10"]
    assert len(body) == 2
    assert cbo_results.medians(ours_and_theirs, "Medians", least=4) == []


@pytest.mark.parametrize("start", [10.0, 11.0])
def test_a_start_at_the_optimum_leaves_no_gap(start):
    found = rows("p", "excbo", 0, [10.0], start=start) + rows("p", "ucb", 0, [9.0], start=start)
    assert line(cbo_results.beaten(found), "p")[1] == "-"
