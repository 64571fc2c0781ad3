"""Storage of a campaign's trials: in memory, or in a file that several processes share.

With a file, a change locks the file, reads what other processes have written, and takes effect once it is on
disk. Without a file, trials are kept in memory with the same interface. A call that raises an error has
changed nothing. The file is JSON, readable by people and continued by any process:

    {"format": "rehearsal-trials/1",
     "task": {"graph": ..., "actions": ..., "reward": ..., "limits": ..., "context": ...},
     "seed": 0, "initial": 6,
     "trials": [
      {"id": 1, "state": "completed", "asked": {"a": 0.25}, "nodes": {"Y": 1.5}},
      {"id": 2, "state": "pending", "asked": {"a": 0.75}}],
     "recommended": [
      {"after": 1, "action": {"a": 0.25}, "predicted": 1.5, "std": 0.1, "reward": ...}]}

No times are written, so that the same steps give the same bytes. Numbers are written without loss. A newer
format has another number, and is refused by name. The file is replaced atomically.

Source: JSON snapshots of a campaign as in Ax and BoFire.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.data.size_limits import SizeError, check_seed, whole
from rehearsal_torch.data.trials.recommendation_history import PastRecommendation
from rehearsal_torch.data.trials.trial import MOST, STATES, Trial, refused
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.data.trials.typed_settings import tolerances
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError, json_of, text_of
from rehearsal_torch.files.lock import InUseError, locked
from rehearsal_torch.files.redaction import InputError, beginning

FORMAT = "rehearsal-trials/1"
FAMILY = FORMAT.split("/")[0]
BYTES = 64 * 2**20  # At some thousands of bytes per trial, more trials than are ever run.


class TrialFileError(InputError):
    """A file of trials that cannot be read or written; the message lists every fault."""


class Campaign(BaseModel):
    """The content of the file: the task as plain data, whose reward is None for a Python function, the seed,
    the number of experiments before the first model, the trials, and the recommendations so far.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    format: str = FORMAT
    task: dict[str, Any]
    seed: int
    initial: Annotated[int, Field(ge=MIN_ROWS, le=MOST)]
    trials: Annotated[tuple[Trial, ...], Field(strict=False)] = ()
    recommended: Annotated[tuple[PastRecommendation, ...], Field(strict=False)] = ()

    @field_validator("trials")
    @classmethod
    def _numbered(cls, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
        numbers = [trial.id for trial in trials]
        misplaced = [later for earlier, later in pairwise(numbers) if later <= earlier]
        if misplaced:
            expected = "expected trials in ascending order of their ids"
            raise ValueError(f"{expected}; {misplaced[0]} is repeated or out of order")
        return trials

    def text(self) -> str:
        """The text of the file, with one line per trial."""

        def line(value: Any) -> str:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)

        head = [
            f'"format": {line(self.format)}',
            f'"task": {line(self.task)}',
            f'"seed": {self.seed}, "initial": {self.initial}',
        ]
        trials = ",\n".join(f"  {trial.line}" for trial in self.trials)
        head.append(f'"trials": [\n{trials}]' if trials else '"trials": []')
        if past := ",\n".join(f"  {line(entry.model_dump(exclude_none=True))}" for entry in self.recommended):
            head.append(f'"recommended": [\n{past}]')
        return "{" + ",\n ".join(head) + "}\n"


def read_campaign(path: str | Path, known: str | None = None) -> tuple[Campaign | None, str]:
    """The campaign of a file, None if its text is `known`, and the text; or a TrialFileError."""
    try:
        text = text_of(path, BYTES)
        return None if text == known else campaign_of(json_of(text, str(path)), str(path)), text
    except PlainFileError as error:
        raise TrialFileError(str(error)) from error


def campaign_of(plain: Any, where: str) -> Campaign:
    """The campaign of plain data."""
    version = plain.get("format") if isinstance(plain, Mapping) else None
    if version != FORMAT:
        if isinstance(version, str) and version.startswith(f"{FAMILY}/"):
            fault = f"got {beginning(version, 60)}: it was written by another version of rehearsal_torch"
            raise TrialFileError(f"{where}: expected the format {FORMAT}; {fault}, read it with that version")
        expected = f'expected a file of trials with "format": "{FORMAT}"'
        raise TrialFileError(f"{where}: {expected}; got {_shown_kind(plain)}: is it the right file?")
    try:
        return Campaign.model_validate(plain)
    except ValidationError as error:
        faults = [_fault(detail["loc"], detail, plain) for detail in error.errors(include_url=False)]
        raise TrialFileError(str(refused(where, faults))) from error


def write_campaign(path: str | Path, campaign: Campaign) -> str:
    """Replaces the file atomically, and returns its text; the old file stays if it cannot be written."""
    text = campaign.text()
    try:
        write_text(path, text)
    except OSError as error:
        remedy = "nothing was recorded: free some space or choose another file, and repeat it"
        raise TrialFileError(f"{path}: cannot be written ({error.strerror or error}); {remedy}") from error
    return text


def _fault(location: Sequence[str | int], error: Mapping[str, Any], plain: Mapping[str, Any]) -> str:
    """The plain message of a fault that pydantic found: trial, key, and what was expected."""
    names = [str(key) for key in location]
    if len(location) > 1 and location[0] == "trials" and isinstance(location[1], int):
        trial = plain["trials"][location[1]]
        number = trial.get("id") if isinstance(trial, Mapping) else None
        numbered = isinstance(number, int) and number <= MOST
        names[:2] = [f"trial {number}" if numbered else f"trials, entry {location[1] + 1}"]
    where, kind = ": ".join(names), error["type"]
    value = f"got {beginning(repr(error['input']), 60)}"
    if kind == "missing":
        return f"{where}: is missing"
    if kind == "extra_forbidden":
        return f"{where}: is not a key of this format"
    if kind == "value_error":
        return f"{where}: {error['ctx']['error']}"
    expected = {
        "literal_error": f"one of {', '.join(STATES)}",
        "float_type": "a finite number",
        "finite_number": "a finite number",
        "int_type": "a whole number",
        "dict_type": "an object, name to value",
        "model_type": "an object, a trial",
        "string_type": "a string",
        "tuple_type": "a list",
        "greater_than_equal": f"at least {error.get('ctx', {}).get('ge')}",
        "less_than_equal": f"at most {error.get('ctx', {}).get('le')}",
    }.get(kind)
    return f"{where}: expected {expected}; {value}" if expected else f"{where}: {error['msg']}; {value}"


def _shown_kind(plain: Any) -> str:
    if not isinstance(plain, Mapping):
        return type(plain).__name__
    if "format" in plain:
        return f"the format {beginning(repr(plain['format']), 60)}"
    return f"an object with {', '.join(map(str, list(plain)[:6])) or 'nothing'}"


PATIENCE = 60.0  # Seconds to wait for another process that holds the lock.


class TrialStore:
    """A task, a seed, an initial design, and the trials so far. The file is written at once; a TrialFileError
    if it cannot be used, has another seed or initial design, or does not match the task; a ValueError without
    a usable task.

    Args:
        task: None takes that of the file.
        seed: None takes that of the file, or 0.
        initial: Experiments before the first model; None takes that of the file, or the task's.
        file: A .json file of the trials, continued if it exists; None keeps them in memory.
        tolerance: How far reported settings may lie from a pending trial's (`CausalTask.tolerances`).
    """

    def __init__(
        self,
        task: CausalTask | Mapping[str, Any] | None,
        seed: int | None = None,
        initial: int | None = None,
        file: str | Path | None = None,
        tolerance: float | Mapping[str, float] | None = None,
    ) -> None:
        if file is not None and Path(file).suffix != ".json":
            expected = "expected a name that ends in .json for a file of trials"
            raise TrialFileError(f"{file}: {expected}; tables of experiments are read with `read`")
        self.file = None if file is None else Path(file)
        with self._locked():
            begun, self._text = None, ""
            if self.file is not None and self.file.exists():
                begun, self._text = read_campaign(self.file)
            self.task = self._task(task, begun)
            self.tolerance = tolerances(self.task, tolerance)
            self.seed = self._setting("seed", seed, begun, 0)
            check_seed(self.seed)
            self.initial = self._setting("initial", initial, begun, self.task.initial_count)
            if self.initial < MIN_ROWS:
                expected = f"expected at least {MIN_ROWS} initial experiments"
                raise ValueError(f"{expected}; got {self.initial}: a model needs at least as many")
            if self.initial > MOST:
                raise ValueError(f"initial: expected at most {MOST:,} experiments before the first model")
            self.log = self._checked_log(begun)
            self.keep(self.log)

    @contextmanager
    def locked_log(self) -> Iterator[TrialLog]:
        """Locks the file and yields its current trials; the caller saves a new log with `keep`. An InUseError
        after a minute's wait.
        """
        with self._locked():
            yield self.fresh()

    def fresh(self) -> TrialLog:
        """The trials with those of other processes; a TrialFileError if other content changed."""
        campaign, text = (None, "") if self.file is None else read_campaign(self.file, self._text)
        if campaign is not None:
            ours = self.campaign(self.log)
            if (campaign.task, campaign.seed, campaign.initial) != (ours.task, ours.seed, ours.initial):
                words = "another process changed the task, the seed or the initial design"
                raise TrialFileError(f"{self.file}: {words}: load the file again")
            self.log, self._text = self._checked_log(campaign), text
        return self.log

    def keep(self, log: TrialLog) -> None:
        """Makes a log the current state, on disk first: if it cannot be written, nothing has changed."""
        if self.file is not None:
            campaign = self.campaign(log)
            if campaign.text() != self._text:
                self._text = write_campaign(self.file, campaign)
        self.log = log

    def campaign(self, log: TrialLog) -> Campaign:
        """The content of the file for a log."""
        # The trials of a log have been checked.
        return Campaign.model_construct(
            format=FORMAT,
            task=self.task.to_plain(not isinstance(self.task.reward, FunctionReward)),
            seed=self.seed,
            initial=self.initial,
            trials=log.trials,
            recommended=log.recommended,
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self.file is None:
            yield
            return
        deadline = time.monotonic() + PATIENCE
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(locked(self.file))
                    break
                except InUseError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
                except OSError as error:
                    reason = f"cannot be written ({error.strerror or error})"
                    words = f"{self.file}: {reason}: choose a path that can be written"
                    raise TrialFileError(words) from error
            yield

    def _task(self, task: CausalTask | Mapping[str, Any] | None, begun: Campaign | None) -> CausalTask:
        if task is not None:
            return CausalTask.of(task)
        if begun is None:
            raise ValueError("expected a task, or a file of trials that holds one; got neither")
        if begun.task.get("reward") is None:
            words = "the reward is a Python function, which is not stored in the file: pass the task as well"
            raise TrialFileError(f"{self.file}: {words}")
        try:
            return CausalTask.of(begun.task)
        except (ValueError, TypeError, KeyError) as error:
            raise TrialFileError(f"{self.file}: task: {error}") from error

    def _setting(self, name: str, value: object, begun: Campaign | None, default: int) -> int:
        stored, value = None if begun is None else getattr(begun, name), whole(value)
        if value is None:
            return default if stored is None else int(stored)
        if isinstance(value, bool) or not isinstance(value, int):
            raise SizeError(f"{name}: expected a whole number; got {value!r}")
        if stored is not None and value != stored:
            remedy = "leave it out, or start another file"
            words = f"was started with {name}={stored}; got {name}={value}: {remedy}"
            raise TrialFileError(f"{self.file} {words}")
        return value

    def _checked_log(self, begun: Campaign | None) -> TrialLog:
        kept = ((), ()) if begun is None else (begun.trials, begun.recommended)
        log = TrialLog(self.task, kept[0], self.tolerance, kept[1]).backdated()
        if faults := log.faults():
            raise TrialFileError(str(refused(f"{self.file}: the trials do not match the task", faults)))
        return log
