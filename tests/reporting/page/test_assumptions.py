"""Assumptions and the graph."""

from base64 import b64decode
from itertools import pairwise

import pytest

from rehearsal_torch.reporting.page.assumptions import DRAWN, assumptions, limits
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(tmp_path, graph=recorded_runs.GRAPH):
    run = recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | {"graph": graph})
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{assumptions(material(run))}</html>')


@pytest.mark.parametrize(("count", "style"), [(0, None), (20, "min-width: ")])
def test_a_graph_that_is_too_wide_for_a_screen_stays_legible(tmp_path, count, style):
    names = ["score", *(f"v{number}" for number in range(count)), "repaid"]
    graph = {"cliques": [[name] for name in names], "edges": [list(pair) for pair in pairwise(names)]}
    page = shown(tmp_path, graph)
    assert page.faults == []
    ((_, image),) = (each for each in page.tags if each[0] == "img")
    assert image.get("style", "").startswith(style or "")


@pytest.mark.parametrize("name", ["a$b$c", "$", "<script>alert(1)</script>", "$\\frac{1}{0}$", "x_y^z"])
def test_names_are_no_formulas_and_no_markup(tmp_path, name):
    graph = {"cliques": [[name], ["rate"], ["repaid"]], "edges": [[name, "rate"], ["rate", "repaid"]]}
    page = shown(tmp_path, graph)
    assert page.faults == []
    assert page.count("img") == 1
    assert f"{name} → rate" in page.said


def test_letters_that_the_font_lacks_are_left_to_the_browser(tmp_path):
    graph = {"cliques": [["\u6c34"], ["rate"], ["repaid"]], "edges": [["\u6c34", "rate"]]}
    ((_, image),) = (each for each in shown(tmp_path, graph).tags if each[0] == "img")
    assert "\u6c34" in b64decode(image["src"].partition(",")[2]).decode()


@pytest.mark.parametrize(
    "graph",
    [
        {"cliques": [["a"], ["b"]], "edges": [["a", "b", "c"]]},
    ],
)
def test_a_graph_that_is_none_is_told(tmp_path, graph):
    page = shown(tmp_path, graph)
    assert page.count("img") == 0
    assert "The graph in data.yaml cannot be drawn:" in page.said


def test_a_large_graph_is_listed_alone(tmp_path):
    names = [f"v{number}" for number in range(DRAWN + 1)]
    graph = {
        "cliques": [[name] for name in names],
        "edges": [list(pair) for pair in pairwise(names)],
    }
    page = shown(tmp_path, graph)
    assert page.count("img") == 0
    assert f"The graph has {DRAWN + 1} variables, too many to be drawn." in page.said
    assert "v39 → v40" in page.said


def test_the_limits_of_the_task(tmp_path):
    found = material(recorded_runs.alterations(tmp_path))
    assert limits(found) == [("may be set", "rate (from 0 to 1)"), ("desired region", "repaid ≥ 0.6")]
    assert limits(material(recorded_runs.alterations(tmp_path / "bare", card={}))) == []
