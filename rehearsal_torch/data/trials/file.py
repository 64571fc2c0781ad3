"""The JSON file of a campaign: a task and all its trials, readable by people and continued by any process.

    {"format": "rehearsal-trials/1",
     "task": {"graph": ..., "actions": ..., "reward": ..., "limits": ...},
     "seed": 0, "initial": 6,
     "trials": [
      {"id": 1, "state": "completed", "asked": {"a": 0.25}, "nodes": {"Y": 1.5}},
      {"id": 2, "state": "pending", "asked": {"a": 0.75}}]}

No times are written, so that the same steps give the same bytes. Numbers are written without loss. A newer
format has another number, and is refused by name. The file is replaced atomically.

Source: JSON snapshots of a campaign as in Ax and BoFire.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rehearsal_torch.data.causal_task import MIN_ROWS
from rehearsal_torch.data.trials.trial import MOST, STATES, Trial, refused
from rehearsal_torch.files.addresses import InputError, beginning
from rehearsal_torch.files.plain import PlainFileError, json_of, text_of
from rehearsal_torch.files.writing import write_text

FORMAT = "rehearsal-trials/1"
FAMILY = FORMAT.split("/")[0]
# At some thousands of bytes per trial, more trials than are ever run.
BYTES = 64 * 2**20


class TrialFileError(InputError):
    """A file of trials that cannot be read or written; the message lists every fault."""


class Campaign(BaseModel):
    """The content of the file.

    Attributes:
        format: The name and number of the format.
        task: The task as plain data; its reward is None for a Python function.
        seed: Determines the initial design and, with the trials, the suggestions.
        initial: The number of experiments before the first model.
        trials: The trials in the order of their numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    format: str = FORMAT
    task: dict[str, Any]
    seed: int
    initial: Annotated[int, Field(ge=MIN_ROWS, le=MOST)]
    trials: Annotated[tuple[Trial, ...], Field(strict=False)] = ()

    @field_validator("trials")
    @classmethod
    def _numbered(cls, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
        numbers = [trial.id for trial in trials]
        wrong = [later for earlier, later in pairwise(numbers) if later <= earlier]
        if wrong:
            raise ValueError(
                f"expected trials in ascending order of their ids; {wrong[0]} is repeated or out of order"
            )
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
        return "{" + ",\n ".join([*head, f'"trials": [\n{trials}]' if trials else '"trials": []']) + "}\n"


def read_campaign(path: str | Path, known: str | None = None) -> tuple[Campaign | None, str]:
    """The campaign of a file, and the file's text.

    Args:
        known: A text whose campaign is known already: of this one it is None.

    Raises:
        TrialFileError: if it cannot be read, is not JSON, is in another format, or anything in it is wrong;
            all faults are listed.
    """
    try:
        text = text_of(path, BYTES)
        return None if text == known else campaign_of(json_of(text, str(path)), str(path)), text
    except PlainFileError as error:
        raise TrialFileError(str(error)) from error


def campaign_of(plain: Any, where: str) -> Campaign:
    """The campaign of plain data.

    Raises:
        TrialFileError: if it is in another format, or anything in it is wrong; all faults are listed.
    """
    made = plain.get("format") if isinstance(plain, Mapping) else None
    if made != FORMAT:
        if isinstance(made, str) and made.startswith(f"{FAMILY}/"):
            raise TrialFileError(
                f"{where}: expected the format {FORMAT}; got {beginning(made, 60)}: it was written by "
                "another version of rehearsal_torch, read it with that version"
            )
        raise TrialFileError(
            f'{where}: expected a file of trials with "format": "{FORMAT}"; got {_kind(plain)}: is it the '
            "right file?"
        )
    try:
        return Campaign.model_validate(plain)
    except ValidationError as error:
        faults = [_fault(each["loc"], each, plain) for each in error.errors(include_url=False)]
        raise TrialFileError(str(refused(where, faults))) from error


def write_campaign(path: str | Path, campaign: Campaign) -> str:
    """Replaces the file atomically, and returns its text.

    Raises:
        TrialFileError: if it cannot be written; the old file stays unchanged.
    """
    text = campaign.text()
    try:
        write_text(path, text)
    except OSError as error:
        reason = error.strerror or error
        raise TrialFileError(
            f"{path}: cannot be written ({reason}); nothing was recorded: free some space or choose another "
            "file, and repeat it"
        ) from error
    return text


def _fault(place: Sequence[str | int], error: Mapping[str, Any], plain: Mapping[str, Any]) -> str:
    """The plain message of a fault that pydantic found: trial, key, and what was expected."""
    names = [str(each) for each in place]
    if len(place) > 1 and place[0] == "trials" and isinstance(place[1], int):
        trial = plain["trials"][place[1]]
        number = trial.get("id") if isinstance(trial, Mapping) else None
        named = isinstance(number, int) and number <= MOST
        names[:2] = [f"trial {number}" if named else f"trials, entry {place[1] + 1}"]
    where, kind = ": ".join(names), error["type"]
    got = f"got {beginning(repr(error['input']), 60)}"
    if kind == "missing":
        return f"{where}: is missing"
    if kind == "extra_forbidden":
        return f"{where}: is not a key of this format"
    if kind == "value_error":
        return f"{where}: {error['ctx']['error']}"
    wanted = {
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
    return f"{where}: expected {wanted}; {got}" if wanted else f"{where}: {error['msg']}; {got}"


def _kind(plain: Any) -> str:
    if not isinstance(plain, Mapping):
        return f"{type(plain).__name__}"
    return (
        f"the format {beginning(repr(plain['format']), 60)}"
        if "format" in plain
        else f"an object with {', '.join(map(str, list(plain)[:6])) or 'nothing'}"
    )
