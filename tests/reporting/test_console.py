"""What a terminal shows of a finished run: sentences of the page, warnings once, numbers in short."""

import json

from rehearsal_torch.reporting import console
from rehearsal_torch.reporting.page.answers import answers as on_the_page
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs


def joined(lines):
    return " ".join(" ".join(lines).split())


def test_a_case_is_one_sentence_which_the_page_has_too(tmp_path):
    of = material(recorded_runs.alterations(tmp_path))
    said, page = joined(console.answers(of)), " ".join(str(on_the_page(of)).split())
    assert said.startswith("Case ann: Set ")
    for sentence in said.split(". ")[1:2]:
        assert sentence in page
    assert "Case bob: " in said


def test_units_of_the_data_set_stand_beside_what_is_set(tmp_path):
    record = recorded_runs.RECORD | {"words": {"units_of": {"rate": "%"}}}
    lines = [recorded_runs.recommended() | {"present": {"rate": 0.5}}]
    of = material(recorded_runs.alterations(tmp_path, lines, record=record))
    assert joined(console.answers(of)).startswith("Case ann: Lower rate from 0.5 to 0.3 %. ")


def test_ten_cases_are_told_and_the_rest_are_counted(tmp_path):
    lines = [recorded_runs.recommended() | {"index": place, "identity": f"c{place}"} for place in range(13)]
    of = material(recorded_runs.alterations(tmp_path, lines))
    said = console.answers(of)
    assert said[-1] == "... and 3 more: decisions.jsonl"
    assert sum(line.startswith("Case ") for line in said) == 10
    assert max(map(len, said)) <= console.WIDTH


def test_warnings_that_differ_in_numbers_alone_are_one_with_its_cases(tmp_path):
    lines = [
        recorded_runs.recommended()
        | {"index": place, "identity": f"c{place}", "warnings": [f"support: {place}.5 away", *more]}
        for place, more in enumerate((["rare"], [], ["rare"], []))
    ]
    of = material(recorded_runs.alterations(tmp_path, lines))
    said = console.warnings(of)
    assert "  - support: 0.5 away (all 4 cases; the numbers are those of case c0)" in said
    assert "  - rare (cases c0, c2)" in said
    assert said[0] == "Warnings"


def test_what_was_told_before_the_fit_is_not_told_again(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    (run / "data.yaml").write_text('"caution: graph": too thin\n"caution: rows": few\n')
    said = joined(console.warnings(material(run), told=("too thin",)))
    assert "too thin" not in said
    assert "- rows: few" in said


def test_trials_have_one_answer_and_say_how_far_it_has_come(tmp_path):
    of = material(recorded_runs.trials(tmp_path))
    assert joined(console.answers(of)).startswith("Recommendation after 3 decisions: Keep ")
    assert "Its true expected reward: 8.000 of 10.000" in joined(console.numbers(of))


def test_episodes_are_told_by_their_changes_and_outcomes(machine_run):
    of = material(machine_run)
    said = joined(console.answers(of))
    assert said.startswith("Machine 0: Change ")
    assert "Cumulative risk and cost: " in said
    assert "2 machines, at most 3 changed actions each" in joined(console.numbers(of))


def test_a_run_without_decisions_says_so(machine_run):
    (machine_run / "decisions.jsonl").write_text("")
    of = material(machine_run)
    assert console.answers(of) == [f"No decisions in {machine_run} yet."]
    assert console.numbers(of) == []


def test_files_are_named_by_what_they_are(machine_run):
    of = material(machine_run)
    paths = [machine_run / name for name in ("table.csv", "figures/a.png", "figures/a.svg", "report.html")]
    assert console.files(of, paths) == [
        f"Report: {machine_run / 'report.html'}",
        "Tables: table.csv",
        "Figures (.png and .svg in figures): a",
    ]


def test_a_reason_stands_beside_a_case_without_a_recommendation(machine_run):
    lines = [json.loads(line) for line in (machine_run / "decisions.jsonl").read_text().splitlines()]
    lines[0] |= {"alteration": None, "status": "no_action", "reason": "nothing is better"}
    (machine_run / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = joined(console.answers(material(machine_run)))
    assert "Machine 0: No change is recommended." in said
    assert "Why: nothing is better." in said
