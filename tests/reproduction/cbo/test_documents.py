"""The page of the study of causal Bayesian optimisation: differences seed by seed, their mean over problems,
medians."""

from rehearsal_torch.evaluation.claim_rows import trial_rows
from reproduction.cbo import documents
from tests.toys import trial_lines


def rows(problem, method, seed, ends, start=0.0, optimum=10.0):
    lines = [trial_lines.line(index, end, end, start, optimum) for index, end in enumerate(ends)]
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


def line(section, head):
    (found,) = [each for each in section.blocks[-1] if each.startswith(f"| {head} ")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_differences_are_shares_of_the_gap_seed_by_seed():
    section = documents.differences(some())
    assert line(section, "p")[1].startswith("+0.200 [")
    assert line(section, "q")[1].startswith("-0.100 [")
    assert line(section, "r")[1] == "-"


def test_their_mean_is_over_the_seeds_that_both_have_everywhere():
    # Seed 0: (.2 - .2) / 2, seed 1: (.4 + 0) / 2.
    assert line(documents.differences(some()), "mean of the problems above")[1].startswith("+0.100 [")
