"""Errors beside the truth."""

import pytest

from rehearsal_torch.reporting.figures import truth_errors
from rehearsal_torch.reporting.style import drawing, save
from tests.toys.drawn import texts


def test_truth_errors_are_shares_of_the_error_without_abduction(tmp_path):
    rows = [
        {
            "k": "3",
            "episode": str(e),
            "sequence": "recommended",
            "quantity": "rmse",
            "feature": feature,
            "estimator": estimator,
            "value": str(value),
        }
        for e in range(2)
        for feature in ("SOFA", "GCS")
        for estimator, value in (("learnt", 1.0 + e), ("observed trajectory", 3.0), ("fresh noise", 6.0))
    ]
    with drawing():
        figure = truth_errors.draw(rows)
        shown = texts(save(figure, tmp_path, "truth")[1])
    learnt, unchanged, reference = figure.axes[0].get_lines()
    assert learnt.get_xdata() == pytest.approx([25.0, 25.0])
    assert unchanged.get_xdata() == pytest.approx([50.0, 50.0])
    assert list(reference.get_xdata()) == [100, 100]
    assert "Under the recommended actions" in shown
    assert "predicted by the model" in shown
    table = truth_errors.markdown(rows)
    assert any(line.startswith("| recommended | rmse | SOFA | learnt | 1.5 [") for line in table)
