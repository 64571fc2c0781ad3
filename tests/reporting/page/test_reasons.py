"""What the answers rest on: adjustment, graph, findings by kind."""

from base64 import b64decode
from itertools import pairwise

import pytest

from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.reasons import DRAWN, adjustments, by_kind, graph_view, warnings_of_run
from rehearsal_torch.reporting.page.run_page import page
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def test_findings_of_a_kind_are_one_group_with_the_numbers_of_its_first_case():
    def line(place, *findings):
        return {"index": place, "identity": f"c{place}", "findings": list(findings)}

    rare = {"kind": "note", "text": "rare"}
    lines = [
        line(place, {"kind": "support", "text": f"{place}.5 away"}, *more)
        for place, more in enumerate(((rare,), (), (rare,), ()))
    ]
    support, note = by_kind(lines)
    assert (support.kind, support.count, support.texts, support.varies, support.first) == (
        "support", 4, ("0.5 away",), True, "c0",
    )  # fmt: skip
    assert (note.kind, note.count, note.texts, note.varies) == ("note", 2, ("rare",), False)
    (reason,) = by_kind([{"reason": {"kind": "no_gain", "text": "none"}}, {"reason": None}], "reason")
    assert (reason.kind, reason.texts) == ("no_gain", ("none",))
    (edited,) = by_kind([{"reason": {"kind": "<b>", "text": "none"}}], "reason")
    assert edited.kind == "note"


EDGES = "age-bmi age-s5 s5-bp bmi-bp bp-y s5-y bmi-y"
GRAPH = {
    "cliques": [["age"], ["s5"], ["bmi"], ["bp"], ["y"]],
    "edges": [each.split("-") for each in EDGES.split()],
}
ROLES = {"context": ["age"], "box": {"bmi": [0, 1], "bp": [0, 1]}, "region": {"names": ["y"]}}


def test_what_does_not_suffice_is_said_and_a_card_that_cannot_be_read_is_left_out(tmp_path):
    pairs = {**GRAPH, "cliques": [["age"], ["s5"], ["bmi"], ["bp", "y"]], "edges": [["age", "bmi"]]}
    card = {"graph": pairs, **ROLES, "candidates": [["bp"]]}
    recorded = recorded_runs.alterations(tmp_path / "a", card=card)
    assert "That does not suffice: " in adjustments(material(recorded))[0]
    odd = {"graph": {"cliques": [["a"]], "edges": [["a"]]}, **ROLES}
    assert adjustments(material(recorded_runs.alterations(tmp_path / "b", card=odd))) == []


def graph_shown(tmp_path, graph=recorded_runs.GRAPH):
    run = recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | {"graph": graph})
    return Page(page(material(run)))


@pytest.mark.parametrize("name", ["a$b$c", "<script>alert(1)</script>", "$\\frac{1}{0}$", "x_y^z"])
def test_names_are_no_formulas_and_no_markup(tmp_path, name):
    graph = {"cliques": [[name], ["rate"], ["repaid"]], "edges": [[name, "rate"], ["rate", "repaid"]]}
    shown = graph_shown(tmp_path, graph)
    assert shown.faults == []
    assert shown.count("img") == 1
    assert f"{name} → rate" in shown.said


def test_letters_that_the_font_lacks_are_left_to_the_browser(tmp_path):
    graph = {"cliques": [["\u6c34"], ["rate"], ["repaid"]], "edges": [["\u6c34", "rate"]]}
    ((_, image),) = (each for each in graph_shown(tmp_path, graph).tags if each[0] == "img")
    assert "\u6c34" in b64decode(image["src"].partition(",")[2]).decode()


def test_a_graph_that_is_none_or_too_large_is_told(tmp_path):
    broken = graph_shown(tmp_path / "a", {"cliques": [["a"], ["b"]], "edges": [["a", "b", "c"]]})
    assert broken.count("img") == 0
    assert "The graph in data.yaml cannot be drawn:" in broken.said
    names = [f"v{number}" for number in range(DRAWN + 1)]
    graph = {"cliques": [[name] for name in names], "edges": [list(pair) for pair in pairwise(names)]}
    run = recorded_runs.alterations(tmp_path / "b", card=recorded_runs.CARD | {"graph": graph})
    view = graph_view(material(run))
    assert view.figure is None
    assert view.fault == f"The graph has {DRAWN + 1} variables, too many to be drawn."
    assert "v39 → v40" in view.edges


def test_a_checkpoint_that_has_seen_the_rows_is_told(tmp_path):
    record = recorded_runs.RECORD | {"held_out_seen": True}
    run = recorded_runs.alterations(tmp_path, record=record, config={"checkpoint": "there"})
    assert any("in the fit of the checkpoint" in text for text in warnings_of_run(material(run)))
