"""Calls of the package written down as plain data, and what comes of them: accepted, or refused where.

A call is an object of JSON:

    call      module:name of the function or class, or module:Class.method
    args      what stands behind it; of a method of an object, the object first
    named     the same by name
    files     path to content, of the folder in which the call is made; base64 where it is no text
    folders   empty folders of it
    cwd       the folder below it in which the call is made, where that is another

What JSON lacks is an object with a key that begins with $: ``{"$tuple": [...]}`` and so on (`_MADE`). In
texts, ``{here}`` stands for the folder of the call, and ``{root}`` for the checkout.

The place that a refusal names is what stands before its first ``: `` that is no sentence (`place`).
"""

import base64
import contextlib
import io
import re
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from rehearsal_torch.cli.configuration_keys import check
from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.user_error import as_user_error
from tests.fuzz.verdicts import sentence
from tests.places import ROOT

# A key, a name in quotes, a list of names, a word with a number, or where in a text something stands.
_QUOTED = r"'[^']*'|\"[^\"]*\"|`[^`]*`|[\[(][^\])]*[\])]"
_PIECE = rf"(?:at character \d+ of .*|the \w+|[a-z]+ (?:\d+|{_QUOTED})|{_QUOTED}|[^\s,'\"]+)"
_PLACE = re.compile(rf"{_PIECE}(?:, {_PIECE})*")
_NAMED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]")
_LISTED = "- "
# Places of which there are more than these are counted.
MOST = 4
_LONGEST = 60


def made(plain: Any, here: Path) -> Any:
    """The value that is written down."""
    if isinstance(plain, str):
        return plain.replace("{here}", str(here)).replace("{root}", str(ROOT))
    if isinstance(plain, list):
        return [made(each, here) for each in plain]
    if not isinstance(plain, dict):
        return plain
    tag = next(iter(plain), "")
    if tag.startswith("$"):
        return _MADE[tag](plain, here)
    return {made(key, here): made(each, here) for key, each in plain.items()}


def named(name: str) -> Any:
    """The function, class or method of ``module:name``."""
    module, _, inside = name.partition(":")
    found = import_module(module)
    for part in inside.split("."):
        found = getattr(found, part)
    return found


def _record(plain: Mapping[str, Any], here: Path) -> Any:
    fields = {name: made(each, here) for name, each in plain["fields"].items()}
    return named(plain["$data"])(**fields)


def _frame(plain: Mapping[str, Any], here: Path) -> pd.DataFrame:
    columns = made(plain["$frame"], here)
    return pd.DataFrame(
        {name: pd.Series(columns[name], dtype=kind) for name, kind in plain["dtypes"].items()}
    )


def _tensor(plain: Mapping[str, Any], here: Path) -> torch.Tensor:
    found = torch.tensor(made(plain["$tensor"], here), dtype=getattr(torch, plain["dtype"]))
    return found.reshape(plain["shape"]) if "shape" in plain else found


_MADE: dict[str, Callable[[Mapping[str, Any], Path], Any]] = {
    "$path": lambda plain, here: Path(made(plain["$path"], here)),
    "$tuple": lambda plain, here: tuple(made(plain["$tuple"], here)),
    "$set": lambda plain, here: set(made(plain["$set"], here)),
    "$frozenset": lambda plain, here: frozenset(made(plain["$frozenset"], here)),
    "$range": lambda plain, here: range(*plain["$range"]),
    "$items": lambda plain, here: {made(key, here): made(each, here) for key, each in plain["$items"]},
    "$bytes": lambda plain, here: base64.b64decode(plain["$bytes"]),
    "$surrogates": lambda plain, here: bytes.fromhex(plain["$surrogates"]).decode("utf-16", "surrogatepass"),
    "$numpy": lambda plain, here: np.dtype(plain["dtype"]).type(plain["$numpy"]),
    "$array": lambda plain, here: np.array(made(plain["$array"], here), dtype=plain["dtype"]),
    "$tensor": _tensor,
    "$frame": _frame,
    "$name": lambda plain, here: named(plain["$name"]),
    "$data": _record,
}


def laid_out(call: Mapping[str, Any], contents: Mapping[str, Any], here: Path) -> Path:
    """Writes the files of a call, and returns the folder in which it is made.

    Args:
        call: The call; its ``files`` are names of `contents`.
        contents: Name to text, or to ``{"b64": bytes}``.
        here: An empty folder.
    """
    for name in call.get("folders", ()):
        (here / name).mkdir(parents=True, exist_ok=True)
    for name, key in call.get("files", {}).items():
        file, content = here / name, contents[key]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else base64.b64decode(content["b64"]))
    inside = here / call.get("cwd", ".")
    inside.mkdir(parents=True, exist_ok=True)
    return inside


def verdict(call: Mapping[str, Any], contents: Mapping[str, Any], here: Path) -> tuple[str, int, str]:
    """What comes of a call: "accepted", "refused", or the class of an error that the package does not raise
    itself; the exit code that a command ends with; and the places that the refusal names.

    Args:
        call: The call.
        contents: The contents of its files.
        here: An empty folder.
    """
    code, raised = 0, list[Exception]()

    def work() -> int:
        answer = named(call["call"])(
            *(made(each, here) for each in call.get("args", ())),
            **{name: made(each, here) for name, each in call.get("named", {}).items()},
        )
        return int(answer) if call["call"].endswith((":main", ":run")) else 0

    def run() -> int:
        with as_user_error(""):
            try:
                return work()
            except Exception as error:
                raised.append(error)
                raise

    out, err = io.StringIO(), io.StringIO()
    inside = laid_out(call, contents, here)
    with (
        contextlib.chdir(inside),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            code = exit_code(run, "Interrupted.")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except Exception:
            code = 1
    if not raised:
        return ("accepted", 0, "") if code == 0 else ("refused", code, places(err.getvalue().strip(), here))
    first = raised[0]
    meant = type(first).__module__.startswith("rehearsal_torch") or sentence(first) is not None
    return "refused" if meant else type(first).__name__, code, places(str(first), here)


def places(said: str, here: Path) -> str:
    """What a refusal names, joined by blanks and |: a place for each fault that it lists, or the only one."""
    plain = said.replace(f"{here}/", "").replace(f"{ROOT}/", "").replace(str(here), ".")
    lines = plain.splitlines() or [""]
    faults = [line.removeprefix(_LISTED) for line in lines if line.startswith(_LISTED)] or lines[:1]
    found = [place(line) for line in faults]
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return " | ".join([*found[:MOST], *more])


def place(fault: str) -> str:
    """The place that a fault begins with: pieces that end in ``: `` and are no sentences; without one, the
    first name in quotes or brackets.
    """
    found, rest = list[str](), fault
    while True:
        piece, colon, after = rest.partition(": ")
        if not colon or not _PLACE.fullmatch(piece):
            break
        found, rest = [*found, piece], after
    if not found:
        inside = _NAMED.search(fault)
        found = [] if inside is None else [f"names {inside.group()}"]
    return ascii(": ".join(found))[1:-1][:_LONGEST]


def typed(overrides: list[str], script: str = "decide", multirun: bool = False) -> None:
    """Composes and checks what is typed behind a command, as the command does before it imports or writes
    anything.

    Raises:
        UserError: for what is refused.
    """
    config, jobs = composed(overrides, multirun)
    check(config, script, jobs, overrides)
