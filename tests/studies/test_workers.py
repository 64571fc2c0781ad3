import sys
import time

import pytest
import torch
from joblib.externals.loky import process_executor

from rehearsal_torch.studies.workers import shared


def power(base, exponent):
    return exponent, base**exponent, torch.get_num_threads(), process_executor._MAX_MEMORY_LEAK_SIZE


def test_one_process_gives_results_in_order():
    assert [found[:2] for found in shared(power, 3, range(4), workers=1)] == [(0, 1), (1, 3), (2, 9), (3, 27)]


@pytest.mark.slow
def test_several_give_the_same_in_any_order_with_one_thread_each_and_may_keep_memory():
    """Where psutil is installed, workers were stopped, with a warning, once they held 300 MB more."""
    found = list(shared(power, 3, range(6), workers=2))
    assert sorted(each[:2] for each in found) == [(n, 3**n) for n in range(6)]
    assert {each[2:] for each in found} == {(1, sys.maxsize)}


def test_after_the_deadline_nothing_is_handed_out():
    assert list(shared(power, 3, range(4), workers=1, deadline=time.monotonic() - 1)) == []
    due = shared(power, 3, range(4), workers=1, deadline=time.monotonic() + 60)
    assert next(due)[:2] == (0, 1)
