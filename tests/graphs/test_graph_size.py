"""Graphs from files are bounded."""

import pytest

from rehearsal_torch.graphs.graph_size import EDGES, VARIABLES, check_size


def test_sizes_are_bounded():
    check_size(VARIABLES, EDGES)
    with pytest.raises(ValueError, match="expected at most 1000 variables; got 1001"):
        check_size(VARIABLES + 1, 0)
    with pytest.raises(ValueError, match="expected at most 20000 edges"):
        check_size(2, EDGES + 1)
