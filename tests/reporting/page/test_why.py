"""What would overturn the decisions."""

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.why import why
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
    assert "stay-4 - - no 1.5" in said
    assert "too few rows (episode stay-1)" in said


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
