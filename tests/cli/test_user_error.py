"""What people are told."""

import pytest
from hydra.utils import instantiate

from rehearsal_torch.user_error import UserError, as_user_error, user_error_from


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
        instantiate({"_target_": "rehearsal_torch.training.gradient_descent.Descent", "max_epochs": 0})
    assert str(caught.value).startswith("trainer: expected numbers above zero; got max_epochs=0")
    assert "Error in call" not in str(caught.value)


def test_a_worker_that_was_killed_is_told():
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    assert "was killed" in str(
        user_error_from(
            TerminatedWorkerError("A worker process managed by the executor was unexpectedly terminated.")
        )
    )


def test_a_submission_that_the_cluster_refuses_is_told_with_its_reason():
    from submitit.core import utils

    submit = (
        "echo 'sbatch: error: no such place: x' >&2; echo 'sbatch: error: Invalid partition.' >&2; exit 1"
    )
    with pytest.raises(utils.FailedJobError) as refused:
        utils.CommandFunction(["sh", "-c", submit], verbose=False)()
    assert str(user_error_from(refused.value)) == (
        "hydra/launcher: the cluster refused the submission, and no job was started (Invalid partition). "
        "Correct the settings hydra.launcher.*, and run the same command with resume=FOLDER."
    )
    told = str(user_error_from(utils.FailedSubmissionError("")))
    assert "no job was started (no reason given)" in told


def test_a_machine_without_slurm_is_told(tmp_path, monkeypatch):
    import submitit

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError) as raised:
        submitit.AutoExecutor(folder=tmp_path, cluster="slurm")
    told = str(user_error_from(raised.value))
    assert told.startswith("hydra/launcher: the commands of SLURM (sbatch, srun) are not on this machine")
    assert "hydra/launcher=submitit_local" in told


@pytest.mark.parametrize("name", ["FailedJobError", "UncompletedJobError"])
def test_a_submission_that_ended_is_told(name):
    from submitit.core import utils

    told = str(user_error_from(getattr(utils, name)("Job (task=0) has no output")))
    assert told.startswith("what was submitted ended before its jobs did")
    assert "resume=FOLDER" in told
