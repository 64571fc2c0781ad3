"""Flags of the scripts ``reproduce_*.py``, as they were typed before version 0.2.0, as ``key=value``.

    --stages table1 eta --seeds 0 1      stages=[table1,eta] seeds=[0,1]
    --settings 'dropwave unit'           worlds=['dropwave unit']             (cbo)
    --repeats 5 --taus .3 .5             seeds=range(5) settings=[0.3,0.5]    (online)
    --set trainer.max_epochs=5           trainer.max_epochs=5

Committed results name the commands that made them, many of them with flags.
"""

import re
from collections.abc import Sequence

from rehearsal_torch.cli.errors import UserError, did_you_mean
from rehearsal_torch.studies.study_files import study as study_of

_LISTS = ("stages", "worlds", "methods", "seeds")
_SINGLE = ("workers", "budget_minutes", "out")
_PLAIN = re.compile(r"[\w./+-]+\Z", re.ASCII)
# Study to flag to key, where they differ.
_RENAMED = {
    "auf": {"most": "max_rows"},
    "cbo": {"settings": "worlds"},
    "online": {"taus": "settings", "agents": "methods"},
    "sepsis": {},
}


def translated(study: str, typed: Sequence[str]) -> list[str]:
    """What was typed with flags, in the grammar of today; texts ``key=value`` stay.

    Args:
        study: The study's name.
        typed: What was typed.

    Raises:
        UserError: for a flag that there never was, or one without its value.
    """
    found: dict[str, list[str]] = {}
    overrides: list[str] = []
    words: list[str] = overrides
    for text in typed:
        if not text.startswith("--"):
            words.append(text)
            continue
        name, equals, value = text.removeprefix("--").partition("=")
        flag = name.replace("-", "_")
        if flag == "set":
            words = overrides
            continue
        key = _key(study, flag)
        words = found.setdefault(key, [])
        if equals:
            words.append(value)
    lists = (*_LISTS, "settings")
    answer = []
    for key, values in found.items():
        if not values:
            raise UserError("a value is missing", f"--{key}", f"Write {key}=VALUE")
        if key == "repeats":
            answer.append(f"seeds=range({values[-1]})")
        elif key in lists:
            answer.append(f"{key}=[{','.join(map(_quoted, map(_short, values)))}]")
        else:
            answer.append(f"{key}={_quoted(values[-1])}")
    return [*answer, *overrides]


def _key(study: str, flag: str) -> str:
    own = tuple(study_of(study).options)
    renamed = _RENAMED[study]
    known = (*_LISTS, *_SINGLE, *own, *renamed, *(["repeats"] if study == "online" else []))
    if flag not in known:
        raise UserError("there is no such option", f"--{flag.replace('_', '-')}", did_you_mean(flag, known))
    return renamed.get(flag, flag)


def _short(text: str) -> str:
    """A number as names write it: 0.3 for .3."""
    return f"{float(text):g}" if re.fullmatch(r"\d*\.\d+", text) else text


def _quoted(text: str) -> str:
    """A value that Hydra reads as it is, whatever characters it has."""
    if _PLAIN.match(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
