"""The page of the study of rounds that learn from each other."""

import pytest

from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.run_folder import RunFolder
from reproduction.online import documents
from reproduction.page import Section, write_page
from reproduction.run import defaults


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


def test_table1_has_the_papers_figures_and_longer_runs_a_section_of_their_own():
    table1 = documents.table1(rows("qwz23", "0.7", 0.75), rows("ddpg", "", 0.2))
    longer = documents.longer(rows("ddpg", "", 0.5), 10_000)
    found = [line for line in [*table1.blocks[-1], *longer.blocks[-1]] if line.startswith("| bermuda")]
    assert [line.split(" | ")[-2] for line in found] == ["0.679", "0.230", "0.688"]
    assert longer.blocks[0] == "### After 10000 rounds"
    assert documents.table1([], []) == documents.longer([], 5) == Section()


def test_counterparts_stand_on_the_same_repeats():
    some = [*rows("qwz23", "0.7", 0.75), *rows("causal", "0.7", 0.5), *rows("none", "", 0.2)]
    with drawing():
        section = documents.counterparts(some)
        assert documents.policies(some) == Section(), "a single method is no comparison"
    assert set(section.figures) == {"counterparts"}
    assert section.blocks[1].startswith("The same repeats for all methods.")
    assert section.blocks[2] == ["- bermuda: `qwz23` minus `causal` +0.250 [+0.250, +0.250], 2 repeats."]
    assert sum(line.startswith("| bermuda") for line in section.blocks[3]) == 3


def test_a_tie_is_called_one():
    mine, theirs = rows("qwz23", "0.7", 0.75), rows("causal", "0.7", 0.75)
    for row in mine:
        row["p_true"] += 0.01 * (-1) ** row["repeat"]
    (item,) = documents.differences([*mine, *theirs])
    assert item == (
        "- bermuda: `qwz23` minus `causal` +0.000 [-0.010, +0.010], 2 repeats; no difference is shown."
    )
    assert documents.differences(mine) == []


def test_rounds_of_each_tau_are_in_rising_order():
    with drawing():
        section = documents.fig4([*rows("qwz23", "0.9", 0.5), *rows("qwz23", "0.3", 0.6)])
    assert [line.split(" | ")[1] for line in section.blocks[-1][2:]] == ["0.3", "0.9"]


def test_without_rows_the_page_says_so(tmp_path):
    out = RunFolder(tmp_path)
    write_page(out, documents.parts(out, defaults("online")))
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("# Structural rehearsal models: the paper's rounds\n")
    assert text.endswith("There are no repeats yet.\n")
