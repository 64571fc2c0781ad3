"""Launchers that submit several jobs of a sweep at once: one process on a cluster runs them in turn.

    hydra/launcher=batches_slurm hydra.launcher.jobs_per_submission=25    on SLURM
    hydra/launcher=batches_local                                          detached, on this machine

A job of a few seconds takes as long again to queue, and to start Python and import its packages; here that
is paid once for each submission. All else is hydra-submitit-launcher's: its settings, its folder of what jobs
print, a folder for each job. A job that fails does not stop those behind it; one that ends its process does.
Submissions run side by side, on one machine all at once; a time limit is that of a submission.

Hydra finds this module because it lies in `hydra_plugins`, for every program in the environment: it imports
nothing of the package. Without hydra-submitit-launcher (extra ``cluster``) it offers nothing.

Source: ours; that this is left to users of Hydra is said in hydra-ecosystem/hydra#2633, who asks for it in
#2786.
"""

import json
from collections.abc import Sequence
from importlib.util import find_spec

from hydra.core.utils import JobReturn

if find_spec("hydra_plugins.hydra_submitit_launcher") is not None:
    from dataclasses import dataclass

    from hydra.core.config_store import ConfigStore
    from hydra.core.singleton import Singleton
    from hydra_plugins.hydra_submitit_launcher.config import LocalQueueConf, SlurmQueueConf
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import LocalLauncher, SlurmLauncher

    class _Batches:
        """What both launchers share. To the launcher that they stand on, a submission is one job, whose
        overrides are those of each of its jobs, as JSON.
        """

        jobs_per_submission: int
        first: int

        def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
            """Submits all jobs, and waits for them; what they returned, in their order.

            Raises:
                ValueError: if jobs_per_submission is below 1.
                submitit.core.utils.FailedJobError: if the process of a submission ended before its jobs.
            """
            size = self.jobs_per_submission
            if size < 1:
                raise ValueError(f"hydra.launcher.jobs_per_submission: expected at least 1; got {size}")
            self.first = initial_job_idx
            written = [json.dumps(list(overrides)) for overrides in job_overrides]
            groups = [written[start : start + size] for start in range(0, len(written), size)]
            return [each for group in super().launch(groups, initial_job_idx) for each in group]  # type: ignore[misc]

        def __call__(
            self,
            sweep_overrides: list[str],
            job_dir_key: str,
            job_num: int,
            job_id: str,  # noqa: ARG002 (that of the whole submission)
            singleton_state: dict[type, Singleton],
        ) -> list[JobReturn]:
            """Runs the jobs of one submission in turn, on the machine to which they were submitted."""
            start = self.first + (job_num - self.first) * self.jobs_per_submission
            run = super().__call__  # type: ignore[misc]
            return [
                run(json.loads(text), job_dir_key, number, f"job_id_for_{number}", singleton_state)
                for number, text in enumerate(sweep_overrides, start)
            ]

    class SlurmBatches(_Batches, SlurmLauncher):
        """Submissions to SLURM."""

        def __init__(self, jobs_per_submission: int = 10, **params: object) -> None:
            """Args:
            jobs_per_submission: How many jobs a submission runs, at most.
            params: The settings of hydra-submitit-launcher.
            """
            super().__init__(**params)
            self.jobs_per_submission = jobs_per_submission

    class LocalBatches(_Batches, LocalLauncher):
        """Submissions that are processes of this machine."""

        def __init__(self, jobs_per_submission: int = 10, **params: object) -> None:
            """Args:
            jobs_per_submission: How many jobs a submission runs, at most.
            params: The settings of hydra-submitit-launcher.
            """
            super().__init__(**params)
            self.jobs_per_submission = jobs_per_submission

    @dataclass
    class SlurmBatchesConf(SlurmQueueConf):
        """The settings of `SlurmBatches`."""

        _target_: str = "hydra_plugins.rehearsal_batches.SlurmBatches"
        jobs_per_submission: int = 10

    @dataclass
    class LocalBatchesConf(LocalQueueConf):
        """The settings of `LocalBatches`."""

        _target_: str = "hydra_plugins.rehearsal_batches.LocalBatches"
        jobs_per_submission: int = 10

    for _name, _settings in (("batches_slurm", SlurmBatchesConf), ("batches_local", LocalBatchesConf)):
        ConfigStore.instance().store(
            group="hydra/launcher", name=_name, node=_settings(), provider="rehearsal_batches"
        )
