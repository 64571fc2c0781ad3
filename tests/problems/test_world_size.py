"""Sizes of worlds: what they hold, and what is no size."""

import re

import pytest

from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from rehearsal_torch.problems.world_size import Rounds, SampleSize, setting


def test_the_start_design_follows_from_the_number_of_actions_unless_it_is_given():
    assert [Rounds().start(actions) for actions in (2, 6)] == [6, 14]
    assert Rounds(initial=7).start(6) == 7


def test_worlds_want_their_own_kind_of_size():
    message = "size: expected a Rounds, in a configuration size.rounds and size.initial; got SampleSize("
    with pytest.raises(ValueError, match=re.escape(message)):
        Dropwave(size=SampleSize())
    with pytest.raises(ValueError, match=r"size: expected a SampleSize, .*; got Rounds\("):
        Loan(size=Rounds())
    assert setting("size", Rounds(3), Rounds) == Rounds(3)
