"""The table over trainings, from rows that can be checked by hand."""

from reproduction.sepsis.trainings import CLAIM, COLUMNS, spread


def row(training, value, quantity="improvement", feature=CLAIM, estimator="true"):
    cells = (str(training), "0", "recommended", quantity, feature, estimator, str(value))
    return dict(zip(COLUMNS, cells, strict=True))


def test_means_are_those_of_the_trainings():
    rows = [row(0, 0.02), row(0, 0.04), row(1, -0.01), row(1, 0.02), row(0, 5.0, "rmse", "GCS")]
    _, _, improvement, worse = spread(rows)
    cells = [each.strip() for each in improvement.strip("| ").split(" | ")]
    assert cells[4:] == ["1.75", "1.77", "0.5", "3", "2", "2"]
    cells = [each.strip() for each in worse.strip("| ").split(" | ")]
    assert (cells[1], *cells[4:]) == ("worse off", "25", "35.4", "0", "50", "2", "2")
    assert spread([]) == []
