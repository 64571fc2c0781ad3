"""What would overturn the decisions."""

from base64 import b64decode
from itertools import pairwise

import pytest

from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.reasons import (
    DRAWN,
    assumptions,
    cautions,
    limits,
    notice,
    warnings_of_run,
    why,
)
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{why(of)}</html>')


def test_certificates_are_shown_with_what_they_bound(tmp_path):
    line = recorded_runs.recommended() | {"certificate": {"of": "posterior mean", "lower": 0.5, "n": 100}}
    page = shown(material(recorded_runs.alterations(tmp_path, [line])))
    told = "Bounds under the model, as recorded case bounds ann lower 0.5, n 100 of: posterior mean"
    assert told in page.said


def test_graphs_that_may_be_true(tmp_path):
    line = recorded_runs.recommended()
    line["trace"]["graphs"] = {
        "stand": 0.75,
        "worst": -0.05,
        "worst_named": "a -> b",
        "judged": 1.0,
        "graphs": 4,
    }
    said = shown(material(recorded_runs.alterations(tmp_path, [line]))).said
    assert (
        "Of 4 graphs that may be true, better than no action under 75.0%; under the worst graph (a -> b)"
        in said
    )


def test_episodes_have_their_proofs_and_hidden_causes(sepsis_run):
    found = material(sepsis_run)
    found.run.decisions[0]["hidden_cause"] = {
        "tipping": 0.25, "covariate": "age", "doses": 0.0, "state": "x", "explained": 0.5
    }  # fmt: skip
    found.run.decisions[1]["trace"]["hidden_cause"] = "too few rows"
    said = shown(found).said
    assert "stay-0 25.0% age: 0.0% yes 0" in said
    assert "stay-4 - - no -" in said, "a gap beyond what is gained says nothing"
    assert "too few rows (episode stay-1)" in said
    found.run.decisions[4] |= {"value": 2.0, "baseline": {"point": 0.5}}
    assert "stay-4 - - no 1.5" in shown(found).said


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
    assert "That does not suffice: " in shown(material(recorded)).said
    odd = {"graph": {"cliques": [["a"]], "edges": [["a"]]}, **ROLES}
    recorded = recorded_runs.alterations(tmp_path / "b", card=odd)
    assert "ettings of" not in shown(material(recorded)).said


def graph_shown(tmp_path, graph=recorded_runs.GRAPH):
    run = recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | {"graph": graph})
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{assumptions(material(run))}</html>')


@pytest.mark.parametrize(("count", "style"), [(0, None), (20, "min-width: ")])
def test_a_graph_that_is_too_wide_for_a_screen_stays_legible(tmp_path, count, style):
    names = ["score", *(f"v{number}" for number in range(count)), "repaid"]
    graph = {"cliques": [[name] for name in names], "edges": [list(pair) for pair in pairwise(names)]}
    page = graph_shown(tmp_path, graph)
    assert page.faults == []
    ((_, image),) = (each for each in page.tags if each[0] == "img")
    assert image.get("style", "").startswith(style or "")


@pytest.mark.parametrize("name", ["a$b$c", "$", "<script>alert(1)</script>", "$\\frac{1}{0}$", "x_y^z"])
def test_names_are_no_formulas_and_no_markup(tmp_path, name):
    graph = {"cliques": [[name], ["rate"], ["repaid"]], "edges": [[name, "rate"], ["rate", "repaid"]]}
    page = graph_shown(tmp_path, graph)
    assert page.faults == []
    assert page.count("img") == 1
    assert f"{name} → rate" in page.said


def test_letters_that_the_font_lacks_are_left_to_the_browser(tmp_path):
    graph = {"cliques": [["\u6c34"], ["rate"], ["repaid"]], "edges": [["\u6c34", "rate"]]}
    ((_, image),) = (each for each in graph_shown(tmp_path, graph).tags if each[0] == "img")
    assert "\u6c34" in b64decode(image["src"].partition(",")[2]).decode()


def test_a_graph_that_is_none_is_told(tmp_path):
    page = graph_shown(tmp_path, {"cliques": [["a"], ["b"]], "edges": [["a", "b", "c"]]})
    assert page.count("img") == 0
    assert "The graph in data.yaml cannot be drawn:" in page.said


def test_a_large_graph_is_listed_alone(tmp_path):
    names = [f"v{number}" for number in range(DRAWN + 1)]
    graph = {"cliques": [[name] for name in names], "edges": [list(pair) for pair in pairwise(names)]}
    page = graph_shown(tmp_path, graph)
    assert page.count("img") == 0
    assert f"The graph has {DRAWN + 1} variables, too many to be drawn." in page.said
    assert "v39 → v40" in page.said


def test_the_limits_of_the_task(tmp_path):
    found = material(recorded_runs.alterations(tmp_path))
    assert limits(found) == [("may be set", "rate (from 0 to 1)"), ("desired region", "repaid ≥ 0.6")]
    assert limits(material(recorded_runs.alterations(tmp_path / "bare", card={}))) == []


def test_a_checkpoint_that_has_seen_the_rows_is_told(tmp_path):
    record = recorded_runs.RECORD | {"held_out_seen": True}
    run = recorded_runs.alterations(tmp_path, record=record, config={"checkpoint": "there"})
    assert any("in the fit of the checkpoint" in each for each in warnings_of_run(material(run)))


def test_no_warnings_are_told(tmp_path):
    line = recorded_runs.recommended() | {"findings": []}
    found = material(recorded_runs.alterations(tmp_path, [line], card={}))
    assert cautions(found) == "<p>The run recorded no warnings.</p>"
    assert notice(found) is None
