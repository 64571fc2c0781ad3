"""The illustrations of the study: a borrower and a triangle."""

import pytest

from rehearsal_torch.reporting.figure_style import drawing, save
from reproduction.auf import triangle_panel
from reproduction.auf.illustrations import loan, triangle


def test_both_illustrations_bear_their_figures(tmp_path):
    with drawing():
        sections = loan(), triangle()
        for section in sections:
            for name, figure in section.figures.items():
                save(figure, tmp_path, name)
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1] for line in sections[0].blocks[-1]}
    assert (
        float(rows["single estimator"])
        < float(rows["no action"])
        < float(rows["nested estimator"])
        < float(rows["best rate"])
    )
    assert "mean at the centroid: 0.577" in (tmp_path / "triangle.svg").read_text()
    assert "best mean: 0.709" in (tmp_path / "triangle.svg").read_text()
    assert f"No action: {rows['no action']} desired" in (tmp_path / "loan.svg").read_text()


def test_the_best_mean_stands_below_the_centroid_where_the_triangle_is_wide():
    assert triangle_panel.BASE < triangle_panel.best() < 0
    assert triangle_panel.success(triangle_panel.TOP) == pytest.approx(0, abs=0.05)
