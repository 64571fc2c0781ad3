import time

import pytest
import torch

from rehearsal_torch.studies.workers import shared


def power(base, exponent):
    return exponent, base**exponent, torch.get_num_threads()


def test_one_process_gives_results_in_order():
    assert [found[:2] for found in shared(power, 3, range(4), workers=1)] == [(0, 1), (1, 3), (2, 9), (3, 27)]


@pytest.mark.slow
def test_several_give_the_same_in_any_order_with_one_thread_each():
    found = list(shared(power, 3, range(6), workers=2))
    assert sorted(each[:2] for each in found) == [(n, 3**n) for n in range(6)]
    assert {threads for _, _, threads in found} == {1}


def test_after_the_deadline_nothing_is_handed_out():
    assert list(shared(power, 3, range(4), workers=1, deadline=time.monotonic() - 1)) == []
    due = shared(power, 3, range(4), workers=1, deadline=time.monotonic() + 60)
    assert next(due)[:2] == (0, 1)
