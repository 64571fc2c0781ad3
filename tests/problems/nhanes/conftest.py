"""A small generator, fitted once for all tests of the folder."""

import pytest

from rehearsal_torch.problems.nhanes.fitting import fit_generator
from tests.problems.nhanes.test_fitting import people


@pytest.fixture(scope="session")
def small():
    return fit_generator(people(), trees=60)
