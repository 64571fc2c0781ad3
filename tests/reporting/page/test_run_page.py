"""The page of a run: complete, well formed, self-contained, and never more than what was recorded."""

import json
import re

import pytest
import yaml

from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.reporting.page.run_page import FILE, write_page
from rehearsal_torch.reporting.run_report import report
from tests.conftest import machines
from tests.toys import recorded_runs
from tests.toys.read_page import Page

EVIL = "<script>alert(1)</script>"
ORDER = ["answers", "why", "comparison", "assumptions", "data", "warnings", "provenance"]


def read(folder, **options):
    write_page(folder, **options)
    return Page((folder / FILE).read_text(encoding="utf-8"))


def ids(found):
    return [attributes["id"] for name, attributes in found.tags if name == "section"]


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("kind", ["alterations", "trials", "own", "episodes", "plain"])
def test_pages_of_all_kinds_are_well_formed_and_load_nothing(tmp_path, request, kind, rows):
    if kind in ("episodes", "plain"):
        run = request.getfixturevalue({"episodes": "sepsis_run", "plain": "plain_run"}[kind])
    elif kind == "alterations":
        run = recorded_runs.alterations(tmp_path)
    else:
        run = recorded_runs.trials(tmp_path, own=kind == "own")
    found = read(run, rows=rows)
    assert found.faults == []
    # Where a run recorded nothing of why, nothing is said.
    expected = [name for name in ORDER if name != "why" or kind not in ("plain", "own")] + ["rows"] * rows
    assert ids(found) == expected
    assert not re.search(r"\bnan\b|\binf\b|\bNone\b|\{\}|Traceback", found.said)


def test_a_name_that_is_markup_stays_a_text_everywhere(tmp_path):
    card = recorded_runs.CARD | {"graph": recorded_runs.GRAPH}
    card = json.loads(json.dumps(card).replace("rate", EVIL).replace("score", f"{EVIL}2"))
    line = json.loads(
        json.dumps(recorded_runs.recommended()).replace("rate", EVIL).replace("score", f"{EVIL}2")
    )
    line |= {"identity": EVIL, "score": {}, "reason": EVIL, "warnings": [EVIL]}
    record = recorded_runs.RECORD | {"command": EVIL, "choices": {"decision": EVIL, "dataset": '"onload="x'}}
    run = recorded_runs.alterations(tmp_path, [line], card, record, {"name": EVIL, EVIL: [EVIL]})
    found = read(run, rows=True)
    assert found.faults == []
    assert found.count("script") == 0
    assert f"Set {EVIL} to 0.3." in found.said
    assert f"Case {EVIL}" in found.said
    assert f"Report: {EVIL}" in found.said


@pytest.mark.slow
def test_a_page_of_other_episodes_says_what_the_terminal_says_and_nothing_of_patients(machine_run):
    printed = report(machine_run)
    said = Page((machine_run / FILE).read_text(encoding="utf-8")).said.partition("The whole configuration")[0]
    for words in ("2 machines; 2 with a recommendation", "Machine 0", "service from major to none"):
        assert words in said
    for foreign in ("patient", "dose", "vaso", "fluids", "SOFA", "mcg", "cumulative reward"):
        assert foreign.lower() not in said.lower(), foreign
    assert "risk and cost" in printed
    assert "observed risk and cost" in said


@pytest.mark.parametrize("edited", ["text", 3, [1], {"units_of": "x", "levels": [1], "unit": EVIL}])
def test_edited_words_never_break_the_page(tmp_path, edited):
    found = read(machines(tmp_path / "run", words=edited), rows=True)
    assert found.faults == []
    assert found.count("script") == 0


def test_equal_folders_have_equal_pages_and_a_page_is_replaced_as_a_whole(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    assert write_page(run) == run / FILE
    before = (run / FILE).read_bytes()
    (run / FILE).write_text("old")
    write_page(run)
    assert (run / FILE).read_bytes() == before
    assert not list(run.glob(".*part"))


def test_without_decisions_there_is_no_page(tmp_path):
    run = recorded_runs.alterations(tmp_path, [])
    assert write_page(run) is None
    assert not (run / FILE).exists()


def test_a_damaged_folder_is_refused_in_words_and_keeps_its_page(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    write_page(run)
    before = (run / FILE).read_bytes()
    with (run / "decisions.jsonl").open("a") as file:
        file.write("garbage\n")
    with pytest.raises(PlainFileError, match=r"decisions\.jsonl, line 3"):
        write_page(run)
    assert (run / FILE).read_bytes() == before


ODD = [None, 3, "text", [1, [2]], {"a": None}, {"a": {"b": [EVIL]}}, float("nan")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["graph", "box", "region", "context", "ranges", "desired", "features", "caution", "reward"]
)
def test_an_edited_card_never_breaks_the_page(tmp_path, name):
    run = recorded_runs.alterations(tmp_path)
    for value in ODD:
        (run / "data.yaml").write_text(yaml.safe_dump(recorded_runs.CARD | {name: value}))
        assert read(run).faults == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["support", "distance", "estimates", "search", "claimed_in_sample", "graphs", "acquisition"]
)
def test_an_edited_trace_never_breaks_the_page(tmp_path, name):
    lines = [recorded_runs.recommended(), recorded_runs.refused()]
    for value in ODD[:-1]:
        for line in lines:
            line["trace"][name] = value
        assert read(recorded_runs.alterations(tmp_path, lines)).faults == []
