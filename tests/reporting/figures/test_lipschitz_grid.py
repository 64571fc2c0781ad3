"""The grid of Lipschitz constants."""

from rehearsal_torch.reporting.figures import lipschitz_grid
from rehearsal_torch.reporting.style import drawing, save
from tests.toys.drawn import texts


def test_the_lipschitz_grid_writes_its_numbers_into_the_cells(tmp_path):
    with drawing():
        shown = texts(
            save(
                lipschitz_grid.draw({(0.1, 0.01): 123.4, (1.0, 0.01): 6.04, (1.0, 0.5): 2.0}),
                tmp_path,
                "grid",
            )[1]
        )
    for number in ("123", "6.0", "2.0", "0.01", "0.5", "0.1"):
        assert number in shown
    assert "Decrease of held-out log-likelihood (%)" in shown
