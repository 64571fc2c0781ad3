"""Reasons as JSON: the status says whose fault it is."""

import json
import threading
import time

import pytest

from rehearsal_torch.explorer.server import BusyError, Turns, message, reply
from rehearsal_torch.user_error import UserError


def failing(error):
    def answer():
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ValueError("a: expected a number"), 422, "a: expected a number"),
        (UserError("is gone", "table.csv", "Fetch it"), 422, "table.csv: is gone. Fetch it."),
        (BusyError("ask again"), 409, "ask again"),
    ],
)
def test_what_cannot_be_answered_has_its_reason(error, status, text):
    found = reply(failing(error))
    assert (found.status_code, json.loads(found.body)) == (status, {"message": text})


def test_a_fault_of_the_program_is_none_of_the_question():
    with pytest.raises(KeyError):
        reply(failing(KeyError("gone")))
    assert message(404, "nothing").status_code == 404


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
