"""One job of a study."""

import pytest

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.studies.job import Protocol, attempted, configured, lines
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.request import read
from rehearsal_torch.studies.study_files import study

ONE = Job("main", "w", "", "m", 0, (), ("w", "m", "0"))


def test_an_error_becomes_the_message_of_the_line():
    def fail():
        raise ValueError("much\n  too small")

    found = attempted(ONE, fail, "abc")
    assert (found.job, found.rows) == (ONE, [])
    assert found.line["state"] == "failed"
    assert found.line["message"] == "ValueError: much too small"
    assert (found.line["commit"], found.line["rounds"]) == ("abc", 0)


def test_what_went_well_has_rows_and_facts():
    found = attempted(ONE, lambda: ([{"a": 1}, {"a": 2}], {"fit_seconds": 0.5}), "abc")
    assert (found.line["state"], found.line["rounds"], found.line["fit_seconds"]) == ("ok", 2, 0.5)
    assert found.line["seconds"] >= 0


def test_a_protocol_is_what_was_asked_for():
    found = Protocol.of(read(study("auf"), ["contexts=3", "trainer.max_epochs=5"]))
    assert (found.conf, found.options["contexts"], found.overrides) == (CONF, 3, ("trainer.max_epochs=5",))


@pytest.mark.slow
def test_rounds_are_those_of_the_configuration():
    typed = ["+experiment=cbo", "decision=random_actions", "dataset=ackley", "dataset.rounds=2", "seed=1"]
    found = list(lines(configured(CONF, typed)))
    assert [line["index"] for line in found] == [0, 1]
    assert all(line["seconds"] >= 0 and "expected" in line["score"] for line in found)
