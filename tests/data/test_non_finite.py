import pytest
import torch
from linear_operator.utils.errors import NotPSDError

from rehearsal_torch.data.non_finite import alike, in_numbers


@pytest.mark.parametrize(
    "fail",
    [
        lambda: 1 / 0,
        lambda: torch.linalg.cholesky(-torch.eye(2)),
        lambda: (_ for _ in ()).throw(NotPSDError("not positive definite")),
    ],
    ids=["division", "torch", "linear_operator"],
)
def test_what_ends_in_no_number_is_said_of_the_rows(fail):
    def asked():
        with in_numbers("these rows"):
            return next(found) if isinstance(found := fail(), type(_ for _ in ())) else found

    with pytest.raises(ValueError, match="no answer follows from these rows: "):
        asked()


def test_other_faults_stay_what_they_are():
    with pytest.raises(RuntimeError, match="shapes"), in_numbers("these rows"):
        raise RuntimeError("shapes do not agree")


def test_columns_that_mark_the_same_rows_go_together():
    known = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1]], dtype=torch.bool)
    found = [(places.tolist(), rows.tolist()) for places, rows in alike(known)]
    assert found == [([0, 2], [True, True]), ([1, 3], [False, True])]
