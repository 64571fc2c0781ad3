"""One job of a study."""

import pytest

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.studies.job import Protocol, attempted, configured, decided_rounds, learning_rounds
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.request import read
from rehearsal_torch.studies.study_files import study

ONE = Job("main", "w", "", "m", 0, (), ("w", "m", "0"))
PROTOCOL = Protocol(CONF, {"rounds": 3}, (), "abc")


def test_an_error_becomes_the_message_of_the_line():
    def fail(protocol, job):
        raise ValueError("much\n  too small")

    found = attempted(fail, PROTOCOL, ONE)
    assert (found.job, found.rows) == (ONE, [])
    assert found.line["state"] == "failed"
    assert found.line["message"] == "ValueError: much too small"
    assert (found.line["commit"], found.line["rounds"]) == ("abc", 0)


def test_what_went_well_has_rows_and_facts():
    def compute(protocol, job):
        return [{"seed": job.seed, "rounds": protocol.options["rounds"]}] * 2, {"fit_seconds": 0.5}

    found = attempted(compute, PROTOCOL, ONE)
    assert found.rows == [{"seed": 0, "rounds": 3}] * 2
    assert (found.line["state"], found.line["rounds"], found.line["fit_seconds"]) == ("ok", 2, 0.5)
    assert found.line["seconds"] >= 0


def test_a_protocol_is_what_was_asked_for():
    found = Protocol.of(read(study("auf"), ["contexts=3", "trainer.max_epochs=5"]))
    assert (found.conf, found.options["contexts"], found.overrides) == (CONF, 3, ("trainer.max_epochs=5",))


@pytest.mark.slow
def test_rounds_are_those_of_the_configuration():
    typed = [
        "+experiment=cbo",
        "decision=random_actions",
        "dataset=ackley",
        "dataset.size.rounds=2",
        "seed=1",
    ]
    found = list(decided_rounds(configured(CONF, typed)))
    assert [line["index"] for line in found] == [0, 1]
    assert all(line["seconds"] >= 0 and "expected" in line["score"] for line in found)


@pytest.mark.slow
def test_the_surrogate_has_learnt_from_all_rounds_before_the_latest():
    typed = [
        "+experiment=cbo",
        "dataset=dropwave",
        "dataset.size.rounds=2",
        "dataset.size.initial=6",
        "seed=1",
    ]
    model, found = learning_rounds(configured(CONF, typed))
    assert [len(model.visited()) for _ in found] == [6, 7]
    assert len(model.visited()) == 8
