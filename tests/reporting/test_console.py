"""What a terminal shows of a finished run: sentences of the page, warnings once, numbers in short."""

from rehearsal_torch.reporting import console
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs


def test_ten_cases_are_told_and_the_rest_are_counted(tmp_path):
    lines = [recorded_runs.recommended() | {"index": place, "identity": f"c{place}"} for place in range(13)]
    of = material(recorded_runs.alterations(tmp_path, lines))
    said = console.answers(of)
    assert said[-1] == "... and 3 more: decisions.jsonl"
    assert sum(line.startswith("Case ") for line in said) == 10
    assert max(map(len, said)) <= console.WIDTH


def test_warnings_that_differ_in_numbers_alone_are_one_with_its_cases(tmp_path):
    rare = {"kind": "note", "text": "rare"}

    def near(text):
        return {"kind": "support", "text": text}

    lines = [
        recorded_runs.recommended()
        | {"index": place, "identity": f"c{place}", "findings": [near(f"{place}.5 away"), *more]}
        for place, more in enumerate(([rare], [], [rare], []))
    ]
    of = material(recorded_runs.alterations(tmp_path, lines))
    said = console.warnings(of)
    assert "  - 0.5 away (all 4 cases; the numbers are those of case c0)" in said
    assert "  - rare (cases c0, c2)" in said
    assert said[0] == "Warnings"
