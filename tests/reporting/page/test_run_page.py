"""The page of a run: complete, well formed, self-contained, and never more than what was recorded."""

import json
import re
from dataclasses import replace

import pytest
import yaml

from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError
from rehearsal_torch.reporting import run_report
from rehearsal_torch.reporting.page.html import facts
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.run_page import (
    FILE,
    answers,
    comparison,
    data_card,
    origin,
    page,
    recorded_rows,
    verdicts,
)
from rehearsal_torch.reporting.run_report import report
from tests.conftest import machines
from tests.toys import recorded_runs
from tests.toys.read_page import Page

EVIL = "<script>alert(1)</script>"
ORDER = ["answers", "why", "comparison", "assumptions", "data", "warnings", "provenance"]


def write_page(folder, **options):
    write_text(folder / FILE, page(material(folder, **{"ended": False, **options})))


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
    evil = {"kind": "note", "text": EVIL}
    line |= {"identity": EVIL, "score": {}, "reason": evil, "findings": [evil]}
    record = recorded_runs.RECORD | {"command": EVIL, "choices": {"decision": EVIL, "dataset": '"onload="x'}}
    run = recorded_runs.alterations(tmp_path, [line], card, record, {"name": EVIL, EVIL: [EVIL]})
    found = read(run, rows=True)
    assert found.faults == []
    assert found.count("script") == 0
    assert f"May help: set {EVIL} to 0.3." in found.said
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
    write_page(run)
    before = (run / FILE).read_bytes()
    (run / FILE).write_text("old")
    write_page(run)
    assert (run / FILE).read_bytes() == before
    assert not list(run.glob(".*part"))


def test_without_decisions_there_is_no_page(tmp_path):
    run = recorded_runs.alterations(tmp_path, [])
    report(run)
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


def card_shown(tmp_path, **more):
    run = recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | more)
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{data_card(material(run))}</html>')


def test_units_and_nested_values(tmp_path):
    said = card_shown(
        tmp_path,
        features={"GCS": {"min": 3.0, "median": 13.0, "max": 15.0, "unit": "points"}, "odd": 3},
        splits={"train": {"patients": 5}, "test": {"patients": 2}},
        levels={"a": [1, 2], "b": 3},
        candidates=[["bmi"], ["bp"], ["bmi", "bp"]],
        kept_aside=0,
    ).said
    assert "GCS 3 13 15 points" in said
    assert "splits patients train 5 test 2" in said
    assert "levels a (1, 2), b (3)" in said
    assert "sets of variables that may be set together bmi; bp; bmi and bp" in said
    assert "rows held out to score the method 0" in said


def rows_shown(run):
    return Page(f'<html lang="en"><h1>t</h1>{recorded_rows(material(run, rows=True))}</html>')


def test_rows_are_shown_only_when_asked_for(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    assert recorded_rows(material(run)) == ""
    page = rows_shown(run)
    assert page.faults == []
    assert "What was known of each case case score ann 0.25 bob 0.5" in page.said


def test_answers_of_a_world(tmp_path):
    line = recorded_runs.recommended()
    line["answer"] = {"rows": {"rate": [0.3], "repaid": [0.65]}, "altered": [[0, 0]]}
    said = rows_shown(recorded_runs.alterations(tmp_path, [line])).said
    assert "What was observed after each decision case rate repaid ann 0.3 0.65" in said


def test_episodes_step_by_step(sepsis_run):
    said = rows_shown(sepsis_run).said
    assert "Episode stay-0, step by step" in said
    assert "time step SOFA (points), observed predicted vasopressor, observed vasopressor, changed" in said
    assert "1 12.5 12.25 0.04 0.113 279 80" in said


def test_steps_are_called_as_the_table_calls_them_also_if_it_begins_at_0(sepsis_run):
    found = material(sepsis_run, rows=True)
    for first, head in ((0, "week SOFA"), (3, "week SOFA"), (None, "time step SOFA")):
        words = replace(found.words, step="one week", first=first)
        assert f"step by step {head}" in Page(str(recorded_rows(replace(found, words=words)))).said


def test_levels_step_by_step_have_their_names(machine_run):
    said = rows_shown(machine_run).said
    assert "Machine 0, step by step" in said
    assert "service, observed service, changed load, observed load, changed" in said
    assert "1 12.5 12.25 major none reduced reduced" in said


def answers_shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{answers(of)}</html>')


def test_verdicts_count_the_answers():
    refused = recorded_runs.refused()
    nothing = refused | {"reason": {"kind": "no_gain", "text": "nothing is better"}}
    lines = [recorded_runs.recommended(), refused, refused, nothing]
    assert verdicts(lines) == "1 with a recommendation, 1 without action, 2 refused"
    assert verdicts([]) == ""


def test_values_of_held_out_rows_are_left_out_unless_rows_are_asked_for(tmp_path):
    line = recorded_runs.recommended() | {"present": {"rate": 0.7}, "score": {"desired_no_action": 1.0}}
    folder = recorded_runs.alterations(tmp_path, [line])
    said = answers_shown(material(folder)).said
    assert "The cases are rows of the table that were held out. What is known of each is left out" in said
    assert "rehearsal report RUN rows=true" in said
    assert "Case ann May help: set rate to 0.3. The estimated" in said
    assert "Known before deciding" not in said
    assert "from 0.7 to" not in said
    assert "left at" not in said
    asked = answers_shown(material(folder, rows=True)).said
    assert "May help: lower rate from 0.7 to 0.3. Known before deciding: score 0.25." in asked
    assert "held out" not in asked


def comparison_shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{comparison(of)}</html>')


def test_the_numbers_are_those_of_the_console(tmp_path, monkeypatch):
    monkeypatch.setattr(run_report, "figures", lambda run, words: {})
    run = recorded_runs.alterations(tmp_path)
    page, console = comparison_shown(material(run)), " ".join(run_report.report(run, tables=True).split())
    assert page.faults == []
    assert "estimated probability 0.650" in page.said
    assert "estimated probability │ 0.650" in console
    score = "Held-out score of the untouched rows: none, as no row was held out"
    assert score in page.said
    assert score in console


def origin_shown(run):
    return Page(f'<html lang="en"><h1>t</h1>{facts(origin(material(run)))}</html>')


def test_an_unknown_commit_is_told(tmp_path):
    run = recorded_runs.alterations(tmp_path, record=recorded_runs.RECORD | {"commit": None}, config={})
    page = origin_shown(run)
    assert "commit not known: the package was installed without its history" in page.said
    (tmp_path / "run.json").unlink()
    assert [name for name, _ in origin(material(run))] == ["run folder"]
