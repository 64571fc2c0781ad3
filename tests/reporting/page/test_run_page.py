"""The page of a run: complete, well formed, self-contained, and never more than what was recorded."""

import json
import re
from dataclasses import replace

import pytest
import yaml

from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError
from rehearsal_torch.reporting import run_report
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.run_page import FILE, origin, page, recorded_rows, run_page
from rehearsal_torch.reporting.run_report import report
from tests.conftest import MACHINE_WORDS, machines
from tests.toys import recorded_runs
from tests.toys.read_page import Page

EVIL = "<script>alert(1)</script>"
ORDER = ["answer", "cases", "trust", "findings", "assumptions", "data", "provenance"]


def write_page(folder, **options):
    write_text(folder / FILE, page(material(folder, **{"ended": False, **options})))


def read(folder, **options):
    write_page(folder, **options)
    return Page((folder / FILE).read_text(encoding="utf-8"))


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
    # Where a run recorded nothing of what would overturn it, nothing is said.
    expected = [name for name in ORDER if name != "trust" or kind == "alterations"] + ["rows"] * rows
    assert [attributes["id"] for name, attributes in found.tags if name == "section"] == expected
    assert not re.search(r"\bnan\b|\binf\b|\bNone\b|\{\}|Traceback", found.said)


def test_a_name_that_is_markup_stays_a_text_everywhere(tmp_path):
    card = recorded_runs.CARD | {"graph": recorded_runs.GRAPH}
    card = json.loads(json.dumps(card).replace("rate", EVIL).replace("score", f"{EVIL}2"))
    line = json.loads(
        json.dumps(recorded_runs.recommended()).replace("rate", EVIL).replace("score", f"{EVIL}2")
    )
    evil = {"kind": "note", "text": EVIL}
    odd_kind = {"kind": "note", "text": f"{EVIL}3"}
    line |= {"identity": EVIL, "score": {}, "reason": evil, "findings": [evil, odd_kind]}
    record = recorded_runs.RECORD | {"command": EVIL, "choices": {"decision": EVIL, "dataset": '"onload="x'}}
    run = recorded_runs.alterations(tmp_path, [line], card, record, {"name": EVIL, EVIL: [EVIL]})
    found = read(run, rows=True)
    assert found.faults == []
    assert found.count("script") == 1, "that which sorts"
    assert f"May help: set {EVIL} to 0.3." in found.said
    assert f"Report: {EVIL}" in found.said
    doses = read(machines(tmp_path / "run", words={"unit": EVIL, "levels": {"service": [EVIL] * 3}}))
    assert doses.faults == []


def test_the_answer_comes_first_then_the_cases_with_a_box_each(tmp_path):
    said = read(recorded_runs.alterations(tmp_path)).said
    parts = [
        "1 may help",
        "1 cannot tell",
        "2 cases, one by one",
        "ann may help set rate to 0.3",
        "bob cannot tell",
    ]
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert "May help: set rate to 0.3. Known before deciding: score 0.25. The estimated" in said
    assert "Rate is far out." in said
    assert said.index("Findings") < said.index("An estimate that needs less contradicts it 1 of 2 cases")
    cells = [attributes for name, attributes in read(tmp_path).tags if name == "td"]
    assert {"0.6", "0.8"} <= {cell.get("data-value") for cell in cells}


def test_cases_are_ordered_by_their_gains_and_the_smallest_are_left_out_of_many(tmp_path):
    lines = [recorded_runs.recommended(place, f"c{place}", point=0.7 + 0.01 * place) for place in range(5)]
    view = run_page(material(recorded_runs.alterations(tmp_path, lines), cases=3))
    assert [case.name for case, _ in view.decisions] == ["c4", "c3", "c2"]
    assert view.more == 2
    assert (view.scale, view.unit) == ("60 to 90 %", "Gain, points")
    bar = view.decisions[0][1]
    assert (bar.before, bar.after, bar.lower, bar.upper) == pytest.approx(
        (0.0, 46.67, 13.33, 100.0), abs=0.01
    )
    assert "Show all" not in read(tmp_path).said


def test_of_many_cases_the_first_rows_are_seen_at_once(tmp_path):
    lines = [recorded_runs.recommended(place, f"c{place}") for place in range(45)]
    assert "Show all 45 rows" in read(recorded_runs.alterations(tmp_path, lines)).said


@pytest.mark.slow
def test_a_page_of_other_episodes_says_what_the_terminal_says_and_nothing_of_patients(machine_run):
    printed = report(machine_run)
    said = Page((machine_run / FILE).read_text(encoding="utf-8")).said.partition("The whole configuration")[0]
    for text in ("2 machines, one by one", "service from major to none"):
        assert text in said
    for foreign in ("patient", "dose", "vaso", "fluids", "SOFA", "mcg", "cumulative reward"):
        assert foreign.lower() not in said.lower(), foreign
    assert "risk and cost" in printed


def test_the_page_says_what_a_step_counts_and_which_change_adds_nothing(tmp_path):
    folder = machines(tmp_path / "run")
    lines = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    name, *_ = lines[0]["alteration"]
    lines[0] |= {"alteration": {name: 1, "action[0]": 1}, "parts": {name: {"point": 0.0}}}
    (folder / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    reward = {"components": {"hot": {"heat": {"> 60": 1, "> 80": 3}}}, "costs": {"service": [0, 1, 4]}}
    run = json.loads((folder / "run.json").read_text())
    parts = {"objective": {"reward": reward, "rules": {"most_levels": 1}}}
    (folder / "run.json").write_text(json.dumps(run | {"reward": reward, "parts": parts}))
    content = run_page(material(folder))
    levels = MACHINE_WORDS["levels"]["service"]
    costs = ", ".join(f"{level}: {cost}" for level, cost in zip(levels, (0, 1, 4), strict=True))
    assert content.points == [("hot", "heat > 60: 1, > 80: 3"), ("cost of service", costs)]
    assert yaml.safe_load(content.configuration)["objective"] == parts["objective"]
    assert Page(page(material(folder))).said.count("this change alone adds nothing") == 1


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


def test_units_and_nested_values(tmp_path):
    more = {
        "features": {"GCS": {"min": 3.0, "median": 13.0, "max": 15.0, "unit": "points"}, "odd": 3},
        "splits": {"train": {"patients": 5}, "test": {"patients": 2}},
        "levels": {"a": [1, 2], "b": 3},
        "candidates": [["bmi"], ["bp"], ["bmi", "bp"]],
    }
    said = read(recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | more)).said
    assert "GCS 3 13 15 points" in said
    assert "splits train (patients 5), test (patients 2)" in said
    assert "levels a (1, 2), b (3)" in said
    assert "sets of variables that may be set together bmi; bp; bmi and bp" in said


def test_rows_are_shown_only_when_asked_for(tmp_path):
    line = recorded_runs.recommended()
    line["answer"] = {"rows": {"rate": [0.3], "repaid": [0.65]}, "altered": [[0, 0]]}
    run = recorded_runs.alterations(tmp_path, [line, recorded_runs.refused()])
    assert run_page(material(run)).rows is None
    known, observed = recorded_rows(material(run))
    assert (known.heads, known.rows) == (["case", "score"], [["ann", "0.25"], ["bob", "0.5"]])
    assert (observed.heads, observed.rows) == (["case", "rate", "repaid"], [["ann", "0.3", "0.65"]])


def test_episodes_step_by_step_as_the_table_calls_them(sepsis_run, machine_run):
    found = material(sepsis_run, rows=True)
    first = recorded_rows(found)[0]
    assert first.caption == "Episode stay-0, step by step"
    heads = ["step", "SOFA (points), observed", "predicted", "vasopressor, observed", "vasopressor, changed"]
    assert first.heads[:5] == heads
    assert first.rows[1] == ["2", "12.5", "12.25", "0.04", "0.113", "279", "80"]
    for start, head in ((0, "week"), (3, "week"), (None, "step")):
        words = replace(found.words, step="one week", first=start)
        assert recorded_rows(replace(found, words=words))[0].heads[0] == head
    row = recorded_rows(material(machine_run))[0].rows[1]
    assert row == ["2", "12.5", "12.25", "major", "none", "reduced", "reduced"]


def test_values_of_held_out_rows_are_left_out_unless_rows_are_asked_for(tmp_path):
    line = recorded_runs.recommended() | {"present": {"rate": 0.7}, "score": {"desired_no_action": 1.0}}
    folder = recorded_runs.alterations(tmp_path, [line])
    said = read(folder).said
    assert "The cases are rows of the table that were held out. What is known of each is left out" in said
    assert "rehearsal report RUN rows=true" in said
    for value in ("Known before deciding: score", "from 0.7 to", "left at"):
        assert value not in said
    asked = read(folder, rows=True).said
    assert "May help: lower rate from 0.7 to 0.3. Known before deciding: score 0.25." in asked
    assert "were held out" not in asked


def test_the_numbers_are_those_of_the_console(tmp_path, monkeypatch):
    monkeypatch.setattr(run_report, "figures", lambda run, words: {})
    run = recorded_runs.alterations(tmp_path)
    console, said = " ".join(report(run, tables=True).split()), read(run).said
    assert "estimated probability 0.650" in said
    assert "estimated probability │ 0.650" in console
    score = "Held-out score of the untouched rows: none, as no row was held out"
    assert score in said
    assert score in console


def test_an_unknown_commit_is_told(tmp_path):
    run = recorded_runs.alterations(tmp_path, record=recorded_runs.RECORD | {"commit": None}, config={})
    told = "not known: the package was installed without its history"
    assert ("commit", told) in origin(material(run))
    (tmp_path / "run.json").unlink()
    assert [name for name, _ in origin(material(run))] == ["run folder"]
