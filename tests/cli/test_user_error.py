"""What people are told."""

import pytest
from hydra.utils import instantiate

from rehearsal_torch.cli.errors import UserError, as_user_error, did_you_mean, user_error_from


def test_an_error_is_one_paragraph():
    assert (
        str(UserError("there is no key", "seeed", "Did you mean seed?"))
        == "seeed: there is no key. Did you mean seed?"
    )
    assert str(UserError("expected a folder", remedy="Give one")) == "expected a folder. Give one."


def test_the_nearest_are_named():
    assert did_you_mean("gredy", ["greedy", "astar"]) == "Did you mean greedy?"
    assert did_you_mean("zzz", ["b", "a"]) == "Choose from a, b"
    assert did_you_mean("zzz", map(str, range(50))) == ""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("expected 1\nor 2"),
        FileNotFoundError("no table"),
        KeyError("no column 'SOFA'; the columns are a, b"),
        RuntimeError("expected a GPU; there is none"),
    ],
)
def test_refusals_in_words_are_for_people(error):
    with pytest.raises(UserError, match="dataset: "), as_user_error("dataset"):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        AssertionError("1 == 2"),
        TypeError("f() takes no arguments"),
        KeyError("x"),
        IndexError("out of range"),
    ],
)
def test_faults_of_ours_stay_faults(error):
    with pytest.raises(type(error)), as_user_error("dataset"):
        raise error


def test_what_hydra_wraps_is_unwrapped():
    with pytest.raises(UserError) as caught, as_user_error("trainer"):
        instantiate({"_target_": "rehearsal_torch.training.descent.Descent", "max_epochs": 0})
    assert str(caught.value).startswith("trainer: expected numbers above zero; got max_epochs=0")
    assert "Error in call" not in str(caught.value)


def test_a_worker_that_was_killed_is_told():
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    assert "was killed" in str(
        user_error_from(
            TerminatedWorkerError("A worker process managed by the executor was unexpectedly terminated.")
        )
    )


@pytest.mark.parametrize("name", ["FailedJobError", "UncompletedJobError"])
def test_a_submission_that_ended_is_told(name):
    from submitit.core import utils

    told = str(user_error_from(getattr(utils, name)("Job (task=0) has no output")))
    assert told.startswith("what was submitted ended before its jobs did")
    assert "resume=FOLDER" in told
