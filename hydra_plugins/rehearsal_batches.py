"""Launchers that submit several jobs of a sweep at once: one process on a cluster runs them in turn.

    hydra/launcher=batches_slurm hydra.launcher.jobs_per_submission=25    on SLURM
    hydra/launcher=batches_local                                          detached, on this machine

A job of a few seconds takes as long again to queue, and to start Python and import its packages; here that
is paid once for each submission. Settings, the folder of what jobs print, and a folder for each job are those
of hydra-submitit-launcher. A job that fails does not stop those behind it; one that ends its process does.
Submissions run side by side, on one machine all at once; a time limit is that of a submission. One that is
killed stops no other: all are waited for, and the error at the end names those that ended before their jobs.
(hydra-submitit-launcher's own launchers end the sweep with the first of them.) On SLURM, `squeue` says which
have ended, since `sacct`, which submitit asks, needs accounting: without it, submitit waits forever for a job
that was killed.

Hydra finds this module because it lies in `hydra_plugins`, for every program in the environment: it imports
nothing of the package. Without hydra-submitit-launcher (extra ``cluster``) it offers nothing.

Source: ours; that this is left to users of Hydra is said in hydra-ecosystem/hydra#2633, who asks for it in
#2786.
"""

import json
import subprocess
import sys
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
        # What ends a submission, by its number.
        _END: str

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
            jobs = self._submitted(groups)
            try:
                found, ended = self._awaited(jobs, [len(group) for group in groups])
            except KeyboardInterrupt:
                left = dict.fromkeys(str(job.job_id).partition("_")[0] for job in jobs)
                told = f"What was submitted goes on, and writes to its folders; to end it: {self._END}"
                print(told, *left, file=sys.stderr, flush=True)
                raise
            if ended:
                many = f"{len(ended)} of {len(groups)} submissions"
                raise SubmissionsEndedError(f"{many} ended before their jobs did: {', '.join(ended)}")
            return found

        def _awaited(self, jobs: Sequence[Any], sizes: Sequence[int]) -> tuple[list[JobReturn], list[str]]:
            """What the jobs of all submissions returned, and which submissions ended too early, and why."""
            found: list[JobReturn] = []
            ended: list[str] = []
            first = self.first
            for job, size in zip(jobs, sizes, strict=True):
                try:
                    found += job.results()[0]
                except Exception as error:
                    numbers = f"job {first}" if size == 1 else f"jobs {first} to {first + size - 1}"
                    ended.append(f"{job.job_id} ({numbers}: {self._reason(job, error)})")
                first += size
            return found, ended

        def _reason(self, job: Any, error: Exception) -> str:  # noqa: ARG002 (SLURM is asked about the job)
            """Why a submission ended: the last line of an error of its process, where there was one."""
            lines = [line.strip() for line in str(error).splitlines() if line.strip(" -=")]
            if type(error).__name__ == "UncompletedJobError" or not lines:
                return "killed, or out of time or memory"
            return lines[-1][:200]

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

    def _queue() -> Any:
        """A watcher of submitit to which a submission has ended when `squeue` lists it no more. One that was
        suspended or queued again has not; where `squeue` does not answer, nothing is known.
        """
        from submitit.slurm.slurm import SlurmInfoWatcher

        class Queue(SlurmInfoWatcher):
            def _make_command(self) -> list[str] | None:
                if not self._registered - self._finished:
                    return None
                return ["squeue", "--noheader", "--array", "--me", "--format=%i"]

            def read_info(self, string: bytes | str) -> dict[str, dict[str, str]]:
                listed = set((string if isinstance(string, str) else string.decode()).split())
                return {
                    each: {"State": "RUNNING" if each in listed else "ENDED"}
                    for each in self._registered - self._finished
                }

        return Queue(delay_s=60)

    class SlurmBatches(_Batches, SlurmLauncher):
        """Submissions to SLURM."""

        _END = "scancel"

        def __init__(self, jobs_per_submission: int = 10, **params: object) -> None:
            """Args:
            jobs_per_submission: How many jobs a submission runs, at most.
            params: The settings of hydra-submitit-launcher.
            """
            super().__init__(**params)
            self.jobs_per_submission = jobs_per_submission

        def _submitted(self, groups: Sequence[Sequence[str]]) -> Sequence[Any]:
            jobs, queue = super()._submitted(groups), _queue()
            for job in jobs:
                for each in (job, *map(job.task, range(job.num_tasks))):
                    each.watcher = queue
                queue.register_job(str(job.job_id))
            return jobs

        def _reason(self, job: Any, error: Exception) -> str:
            told = super()._reason(job, error)
            if type(error).__name__ != "UncompletedJobError":
                return told
            ask = [
                "sacct",
                "--noheader",
                "--allocations",
                "--parsable2",
                "--format=State",
                f"--jobs={job.job_id}",
            ]
            try:
                said = subprocess.run(
                    ask, capture_output=True, text=True, check=True, timeout=60
                ).stdout.strip()
            except (OSError, subprocess.SubprocessError):  # a cluster without accounting
                return told
            return f"{told}; SLURM says {said.splitlines()[-1]}" if said else told

    class LocalBatches(_Batches, LocalLauncher):
        """Submissions that are processes of this machine."""

        _END = "kill"

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
