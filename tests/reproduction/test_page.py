"""A page from blocks and sections, its tables, and where its rows come from."""

from rehearsal_torch.reporting.figure_style import panels
from rehearsal_torch.run_folder import RunFolder
from reproduction.page import Section, caution, minutes, origin, write_page

LINES = [{"commit": "a" * 40, "seconds": "60"}, {"commit": "b" * 40 + "+changes", "seconds": "60"}]


def test_empty_parts_are_left_out_and_figures_stand_below_their_section(tmp_path):
    def parts():
        yield from ("# Title", "", Section())
        yield Section(["## Part", ["| a |", "| --- |"], []], {"learning_curve": panels()[0]})

    write_page(RunFolder(tmp_path), parts())
    text = (tmp_path / "README.md").read_text()
    assert text == "# Title\n\n## Part\n\n| a |\n| --- |\n\n![learning curve](figures/learning_curve.svg)\n"
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".svg"}


def test_a_page_says_how_its_rows_were_made():
    made = "Made by `python -m reproduction.auf`: 2 jobs, their commits in jobs.csv, versions in run.json"
    assert origin("auf", LINES) == made
    assert caution(LINES, "repeats").startswith("> **Provenance.** 1 of 2 repeats were made from trees with")
    assert caution(LINES[:1]) == ""
    assert minutes(LINES) == "2 minutes of one core"
