"""One answer at a time: others wait, or are turned away."""

import threading
import time

import pytest

from rehearsal_torch.explorer.turns import BusyError, Turns


def test_questions_wait_for_their_turn():
    turns, order = Turns(), []

    def answered(name):
        with turns.turn():
            order.append(f"{name} begins")
            time.sleep(0.01)
            order.append(f"{name} ends")

    threads = [threading.Thread(target=answered, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(order) == 6
    for begin, end in zip(order[::2], order[1::2], strict=True):
        assert begin.split()[0] == end.split()[0]


def test_a_question_that_waits_too_long_is_turned_away():
    turns = Turns(0.01)
    with (
        turns.turn(),
        pytest.raises(BusyError, match="another question is still being answered"),
        turns.turn(),
    ):
        pass
    with turns.turn():
        pass


def test_an_error_ends_the_turn():
    turns = Turns(0.01)
    with pytest.raises(KeyError), turns.turn():
        raise KeyError
    with turns.turn():
        pass
