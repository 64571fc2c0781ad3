"""The pages of ten small runs as text, and the forms of what they record."""

import pytest

from tests.golden.snapshots.page_text import page_text
from tests.golden.snapshots.record_form import form
from tests.golden.snapshots.small_runs import RUNS, compared, run

pytestmark = pytest.mark.slow
RECORDS = ("decisions.jsonl", "run.json")


@pytest.mark.parametrize("name", RUNS)
def test_a_page_says_what_it_said(name, tmp_path, monkeypatch, file_regression):
    monkeypatch.chdir(tmp_path)
    folder = run(name, tmp_path)
    file_regression.check(page_text((folder / "report.html").read_text(encoding="utf-8")), basename=name)
    forms = "\n".join(f"[{record}]\n{form(folder / record)}" for record in RECORDS)
    file_regression.check(forms, basename=f"{name}.form")


def test_a_page_that_compares_runs_says_what_it_said(tmp_path, monkeypatch, file_regression):
    monkeypatch.chdir(tmp_path)
    page = compared(tmp_path).read_text(encoding="utf-8")
    file_regression.check(page_text(page), basename="comparison")
