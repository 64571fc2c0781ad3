"""Launchers that submit several jobs of a sweep at once: one process on a cluster runs them in turn.

    hydra/launcher=batches_slurm hydra.launcher.jobs_per_submission=25    on SLURM
    hydra/launcher=batches_local                                          detached, on this machine

A job of a few seconds takes as long again to queue, and to start Python and import its packages; here that
is paid once for each submission. Settings, the folder of what jobs print, and a folder for each job are those
of hydra-submitit-launcher. A job that fails does not stop those behind it; one that ends its process does.
Submissions run side by side, on one machine all at once; a time limit is that of a submission. One that is
killed stops no other: all are waited for, and the error at the end names those that ended before their jobs.
(hydra-submitit-launcher's own launchers end the sweep with the first of them.)

Hydra finds this module because it lies in `hydra_plugins`, for every program in the environment: it imports
nothing of the package. Without hydra-submitit-launcher (extra ``cluster``) it offers nothing.

Source: ours; that this is left to users of Hydra is said in hydra-ecosystem/hydra#2633, who asks for it in
#2786.
"""

import json
from collections.abc import Sequence
from importlib.util import find_spec

from hydra.core.utils import JobReturn


class SubmissionsEndedError(RuntimeError):
    """Submissions that ended before their jobs did; the message names them."""


if find_spec("hydra_plugins.hydra_submitit_launcher") is not None:
    from dataclasses import dataclass
    from pathlib import Path
    from typing import Any

    from hydra.core.config_store import ConfigStore
    from hydra.core.singleton import Singleton
    from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf, LocalQueueConf, SlurmQueueConf
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import LocalLauncher, SlurmLauncher

    class _Batches:
        """What both launchers share. To the launcher that they stand on, a submission is one job, whose
        overrides are those of each of its jobs, as JSON.
        """

        jobs_per_submission: int
        first: int
        params: dict[str, Any]
        config: Any
        _EXECUTOR: str

        def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
            """Submits all jobs, and waits for them; what they returned, in their order.

            Raises:
                ValueError: if jobs_per_submission is below 1.
                SubmissionsEndedError: when all submissions have ended, if the process of one ended before its
                    jobs did.
            """
            size = self.jobs_per_submission
            if size < 1:
                raise ValueError(f"hydra.launcher.jobs_per_submission: expected at least 1; got {size}")
            self.first = initial_job_idx
            written = [json.dumps(list(overrides)) for overrides in job_overrides]
            groups = [written[start : start + size] for start in range(0, len(written), size)]
            found: list[JobReturn] = []
            ended: list[str] = []
            for place, job in enumerate(self._submitted(groups)):
                try:
                    found += job.results()[0]
                except Exception as error:
                    first = initial_job_idx + place * size
                    last = first + len(groups[place]) - 1
                    jobs = f"job {first}" if first == last else f"jobs {first} to {last}"
                    ended.append(f"{job.job_id} ({jobs}: {_reason(error)})")
            if ended:
                many = f"{len(ended)} of {len(groups)} submissions"
                raise SubmissionsEndedError(f"{many} ended before their jobs did: {', '.join(ended)}")
            return found

        def _submitted(self, groups: Sequence[Sequence[str]]) -> Sequence[Any]:
            """The submissions of the groups, as hydra-submitit-launcher makes them of jobs."""
            import submitit

            own = {"max_num_timeout"}
            base = {str(name) for name in BaseQueueConf.__dataclass_fields__}
            made = {f"{self._EXECUTOR}_{name}": self.params[name] for name in own & self.params.keys()}
            executor = submitit.AutoExecutor(
                folder=self.params["submitit_folder"], cluster=self._EXECUTOR, **made
            )
            left = {
                name: value
                for name, value in self.params.items()
                if name not in own and name != "submitit_folder"
            }
            executor.update_parameters(
                **{
                    name if name in base else f"{self._EXECUTOR}_{name}": value
                    for name, value in left.items()
                }
            )
            Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
            numbers = range(self.first, self.first + len(groups))
            return executor.map_array(
                self,
                [list(group) for group in groups],
                ["hydra.sweep.dir" for _ in groups],
                numbers,
                [f"job_id_for_{number}" for number in numbers],
                [Singleton.get_state() for _ in groups],
            )

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

    def _reason(error: Exception) -> str:
        """Why a submission ended: the last line of an error of its process, where there was one."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip(" -=")]
        if type(error).__name__ == "UncompletedJobError" or not lines:
            return "killed, or out of time or memory"
        return lines[-1][:200]

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
