import pytest

import rehearsal_torch as rt
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from tests.api.test_rehearse import TASK


@pytest.fixture(scope="session")
def care():
    """CARE on 80 loans; not to be changed."""
    return rt.learn(Loan(size=SampleSize(rows=80)).observations().to_frame(), TASK, method="care")
