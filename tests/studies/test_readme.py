"""A README from blocks and sections."""

import pytest

from rehearsal_torch.reporting.style import panels
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.readme import Section, image, write_readme


def test_blocks_are_separated_by_empty_lines_and_empty_ones_are_left_out(tmp_path):
    write_readme(
        RunFolder(tmp_path),
        ["# Title", "", Section(), Section(["## Part", ["| a |", "| --- |"], []]), "End."],
    )
    assert (tmp_path / "README.md").read_text() == "# Title\n\n## Part\n\n| a |\n| --- |\n\nEnd.\n"
    assert not (tmp_path / "figures").exists()


def test_figures_are_saved_and_shown_below_their_section(tmp_path):
    def parts():
        yield Section(["## Part"], {"learning_curve": panels()[0]})
        yield "End."

    write_readme(RunFolder(tmp_path), parts())
    text = (tmp_path / "README.md").read_text()
    assert text == "## Part\n\n![learning curve](figures/learning_curve.svg)\n\nEnd.\n"
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "learning_curve.png",
        "learning_curve.svg",
    }


def test_a_part_that_fails_leaves_the_previous_readme(tmp_path):
    (tmp_path / "README.md").write_text("before\n")

    def parts():
        yield "# Title"
        raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows"):
        write_readme(RunFolder(tmp_path), parts())
    assert (tmp_path / "README.md").read_text() == "before\n"


def test_an_image_has_an_alternative_text():
    assert (
        image("nhanes_marginals", "NHANES marginals") == "![NHANES marginals](figures/nhanes_marginals.svg)"
    )
