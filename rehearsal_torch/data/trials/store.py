"""Storage of a campaign's trials: in memory, or in a file that several processes share.

With a file, a change locks the file, reads what other processes have written, and takes effect once it is on
disk. Without a file, trials are kept in memory with the same interface. A call that raises an error has
changed nothing.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.data.sizes import SizeError, check_seed, whole
from rehearsal_torch.data.trials.file import FORMAT, Campaign, TrialFileError, read_campaign, write_campaign
from rehearsal_torch.data.trials.log import TrialLog
from rehearsal_torch.data.trials.trial import MOST, refused
from rehearsal_torch.files.lock import InUseError, locked

# Seconds to wait for another process that holds the lock.
PATIENCE = 60.0


def initial_count(task: CausalTask) -> int:
    """The default number of experiments before the first model: 2 (k + 1) with k actions, and at least 5."""
    return max(MIN_ROWS, 2 * (len(task.actions) + 1))


class TrialStore:
    """A task, a seed, an initial design, and the trials so far.

    Args:
        task: The task; None takes that of the file.
        seed: The seed; None takes that of the file, or 0.
        initial: The number of experiments before the first model; None takes that of the file, or
            `initial_count`.
        file: The file of the trials, with the suffix .json; None keeps them in memory. An existing file is
            continued.

    Raises:
        TrialFileError: if the file cannot be read or written, was started with another seed or initial
            design, or its trials do not match the task.
        ValueError: if there is no task or it cannot be used, or a number is out of range.
    """

    def __init__(
        self,
        task: CausalTask | Mapping[str, Any] | None,
        seed: int | None = None,
        initial: int | None = None,
        file: str | Path | None = None,
    ) -> None:
        if file is not None and Path(file).suffix != ".json":
            raise TrialFileError(
                f"{file}: expected a name that ends in .json for a file of trials; tables of experiments are "
                "read with `read`"
            )
        self.file = None if file is None else Path(file)
        with self._locked():
            begun, self._text = (
                read_campaign(self.file) if self.file is not None and self.file.exists() else (None, "")
            )
            self.task = self._task(task, begun)
            self.seed = self._agreed("seed", seed, None if begun is None else begun.seed, 0)
            check_seed(self.seed)
            self.initial = self._agreed(
                "initial", initial, None if begun is None else begun.initial, initial_count(self.task)
            )
            if self.initial < MIN_ROWS:
                raise ValueError(
                    f"expected at least {MIN_ROWS} initial experiments; got {initial}: a model needs at "
                    "least as many"
                )
            if self.initial > MOST:
                raise ValueError(f"initial: expected at most {MOST:,} experiments before the first model")
            self.log = self._going_with(() if begun is None else begun.trials)
            self.keep(self.log)

    @contextmanager
    def changing(self) -> Iterator[TrialLog]:
        """The current trials; other processes cannot change them until the block ends.

        Raises:
            InUseError: if another process holds the lock for more than a minute.
            TrialFileError: if the file cannot be read, or another process changed its task, seed or initial
                design.
        """
        with self._locked():
            yield self.fresh()

    def fresh(self) -> TrialLog:
        """The current trials, including those written by other processes.

        Raises:
            TrialFileError: if the file cannot be read, or another process changed its task, seed or initial
                design.
        """
        if self.file is not None:
            found, text = read_campaign(self.file, self._text)
            if found is not None:
                own = self.campaign(self.log)
                if (found.task, found.seed, found.initial) != (own.task, own.seed, own.initial):
                    raise TrialFileError(
                        f"{self.file}: another process changed the task, the seed or the initial design: "
                        "load the file again"
                    )
                self.log, self._text = self._going_with(found.trials), text
        return self.log

    def keep(self, log: TrialLog) -> None:
        """Makes a log the current state, on disk first.

        Raises:
            TrialFileError: if it cannot be written; nothing has changed then.
        """
        if self.file is not None:
            campaign = self.campaign(log)
            if campaign.text() != self._text:
                self._text = write_campaign(self.file, campaign)
        self.log = log

    def campaign(self, log: TrialLog) -> Campaign:
        """The content of the file for a log."""
        # The trials of a log have been checked.
        return Campaign.model_construct(
            format=FORMAT, task=_plain(self.task), seed=self.seed, initial=self.initial, trials=log.trials
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self.file is None:
            yield
            return
        until = time.monotonic() + PATIENCE
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(locked(self.file))
                    break
                except InUseError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.05)
                except OSError as error:
                    raise TrialFileError(
                        f"{self.file}: cannot be written ({error.strerror or error}): choose a path that can "
                        "be written"
                    ) from error
            yield

    def _task(self, task: CausalTask | Mapping[str, Any] | None, begun: Campaign | None) -> CausalTask:
        if task is not None:
            return CausalTask.of(task)
        if begun is None:
            raise ValueError("expected a task, or a file of trials that holds one; got neither")
        if begun.task.get("reward") is None:
            raise TrialFileError(
                f"{self.file}: the reward is a Python function, which is not stored in the file: pass the "
                "task as well"
            )
        try:
            return CausalTask.of(begun.task)
        except (ValueError, TypeError, KeyError) as error:
            raise TrialFileError(f"{self.file}: task: {error}") from error

    def _agreed(self, what: str, given: object, begun: int | None, usual: int) -> int:
        """The given number, or that of the file, or the default."""
        given = whole(given)
        if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
            raise SizeError(f"{what}: expected a whole number; got {given!r}")
        if begun is not None and given is not None and given != begun:
            raise TrialFileError(
                f"{self.file} was started with {what}={begun}; got {what}={given}: leave it out, or start "
                "another file"
            )
        if given is not None:
            return given
        return usual if begun is None else begun

    def _going_with(self, trials: tuple[Any, ...]) -> TrialLog:
        log = TrialLog(self.task, trials)
        if faults := log.faults():
            raise TrialFileError(str(refused(f"{self.file}: the trials do not match the task", faults)))
        return log


def _plain(task: CausalTask) -> dict[str, Any]:
    """The task as plain data; the reward is None for a Python function."""
    if not isinstance(task.reward, FunctionReward):
        return task.to_plain()
    limits = (
        None
        if task.limits is None
        else {"normals": task.limits.normals.tolist(), "offsets": task.limits.offsets.tolist()}
    )
    return {"graph": task.graph.to_plain(), "actions": task.box.to_plain(), "reward": None, "limits": limits}
