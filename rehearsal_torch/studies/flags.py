"""Translation of the flags used before version 0.2.0 to ``key=value``.

    --stages table1 eta --seeds 0 1      stages=[table1,eta] seeds=[0,1]
    --settings 'dropwave unit'           worlds=['dropwave unit']             (cbo)
    --repeats 5 --taus .3 .5             seeds=range(5) settings=[0.3,0.5]    (online)
    --set trainer.max_epochs=5           trainer.max_epochs=5

The scripts ``reproduce_*.py`` still take these flags: committed results list the commands that made them,
many of which have flags.
"""

import re
from collections.abc import Sequence

from rehearsal_torch.cli.errors import UserError, did_you_mean
from rehearsal_torch.studies.study_files import study as study_of

_LISTS = ("stages", "worlds", "methods", "seeds")
_SINGLE = ("workers", "budget_minutes", "out")
_PLAIN = re.compile(r"[\w./+-]+\Z", re.ASCII)
# For each study, the flags whose key has another name.
_RENAMED = {
    "auf": {"most": "max_rows"},
    "cbo": {"settings": "worlds"},
    "online": {"taus": "settings", "agents": "methods"},
    "sepsis": {},
}


def translated(study: str, typed: Sequence[str]) -> list[str]:
    """The arguments as ``key=value``; arguments that have this form already stay as they are.

    Args:
        study: The study's name.
        typed: The arguments.

    Raises:
        UserError: for an unknown flag, or one without a value.
    """
    found: dict[str, list[str]] = {}
    overrides: list[str] = []
    values: list[str] = overrides
    for text in typed:
        if not text.startswith("--"):
            values.append(text)
            continue
        name, equals, value = text.removeprefix("--").partition("=")
        flag = name.replace("-", "_")
        if flag == "set":
            values = overrides
            continue
        key = _key(study, flag)
        values = found.setdefault(key, [])
        if equals:
            values.append(value)
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
    """A number as settings are named: 0.3 for .3."""
    return f"{float(text):g}" if re.fullmatch(r"\d*\.\d+", text) else text


def _quoted(text: str) -> str:
    """A value in quotes if Hydra would not read it as a plain string."""
    if _PLAIN.match(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
