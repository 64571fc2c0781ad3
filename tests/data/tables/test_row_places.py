"""Places of some of many rows: in order, none twice, the first and the last among those that are spread."""

import numpy as np
import torch

from rehearsal_torch.data.tables.row_places import drawn, evenly


def test_places_are_spread_or_drawn():
    assert evenly(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert evenly(101, 5).tolist() == [0, 25, 50, 75, 100]
    # Single precision would end beyond the last row.
    assert int(evenly(2**25 + 2, 3)[-1]) == 2**25 + 1
    assert drawn(4, 4, torch.Generator()).tolist() == [0, 1, 2, 3]
    some = drawn(1000, 50, torch.Generator().manual_seed(1))
    assert torch.equal(some, some.unique()), "in order, none twice"
    assert len(some) == 50
    assert np.ptp(some.numpy()) > 800
