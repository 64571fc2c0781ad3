"""Run folders: the complete record of a run, as files.

    config.yaml       the resolved configuration
    run.json          command, seed, kind of problem, versions, commit, data fingerprint, machine, seconds,
                      with a checkpoint whether its fit has seen the held-out rows
    status.json       ok, failed, interrupted or skipped, with a message
    .hydra/           the configuration, Hydra's settings and the overrides, as Hydra records them; never read
    sweep.json        of a sweep: its command, and the overrides that the jobs differ by
    metrics.csv       step,name,value
    decisions.jsonl   one JSON object per decision, written as soon as it is made; in an online run, with the
                      world's response
    method_choice.csv, method_choice.json    with decision=auto: the methods compared, and the one chosen
    truth.csv         the comparison with a known truth
    surrogate.csv     for trials: the learnt surrogate as curves
    claims.csv        for cases of a table: the claims over each action, for a few decisions
    checkpoint/       the fitted surrogate
    table.csv, figures/*.png, figures/*.svg    the report; for episodes, also changes.csv
    report.html       the same as one page

Files are replaced atomically (written to a temporary file, then renamed); only decisions and metrics grow
line by line, and an incomplete last line left by a killed run is dropped when the folder is resumed.

A folder may have been damaged, edited, or written by another program: files are read as plain data of limited
size, and content in another format than a run writes is refused with the file, the line, the expected format
and a remedy. An unreadable line that is followed by others is never dropped.
"""

import csv
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml

from rehearsal_torch.data.finding import KINDS
from rehearsal_torch.files.atomic_write import appending, make_folder, remove_unfinished, write_text
from rehearsal_torch.files.bounded_yaml import (
    NUMBER,
    TEXTS,
    WHOLE,
    WHOLES,
    PlainFileError,
    checked,
    is_a,
    json_of,
    read_json,
    read_yaml,
    shown,
)
from rehearsal_torch.files.lock import locked
from rehearsal_torch.round_record import Round, nulls_for_nan

# The metric that times a decision.
SECONDS = "decision/seconds"
# The largest number of bytes of a line.
LINE = 2**26
State = Literal["ok", "failed", "interrupted", "skipped"]

# The kinds of the values in the files of a run, by key (`files.bounded_yaml`).
_SCHEMAS: dict[str, dict[str, str]] = {
    "run.json": {
        "script": "a string",
        "command": "a string",
        "overrides": TEXTS,
        "seed": WHOLE,
        "seconds": NUMBER,
        "data_fingerprint": "a string or null",
        "held_out_seen": "true, false or null",
        "kind": "a string or null",
        "choices": "a mapping",
    },
    "status.json": {"state": "a string", "message": "a string", "overrides": TEXTS, "seconds": NUMBER},
    "sweep.json": {"script": "a string", "overrides": TEXTS, "decisive": TEXTS},
    "decisions.jsonl": {
        "index": WHOLE,
        "identity": "a string",
        "observed_outcomes": "a mapping of numbers",
        "times": TEXTS,
        "bounds": "a mapping",
        "kind": "a string",
        "status": "a string",
        "value": "a number or null",
        "estimate": "a mapping or null",
        "baseline": "a mapping or null",
        "unchanged": "a mapping",
        "gain": "a mapping",
        "present": "a mapping of numbers",
        "recommendation": "a mapping of numbers or null",
        "doses": "a mapping",
        "hidden_cause": "a mapping",
        "findings": "a list of mappings",
        "reason": "a mapping or null",
        "trace": "a mapping",
        "draws": "a mapping",
        "trajectory": "a mapping",
        "score": "a mapping of numbers",
        "certificate": "a mapping",
        "alteration": "a mapping of numbers or null",
        "success": "true, false or null",
        "reward": "a number or null",
        "answer": "a mapping",
    },
}


_REMEDY = "restore the file from a copy; if there is none, start the run again in another folder"


class RunFolderError(PlainFileError):
    """A damaged file of a run folder; the message names file, line, expected format and remedy."""


class RunFolder:
    """The folder of one run; it need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def begun(self) -> bool:
        """Whether a run has begun in this folder."""
        return (self.path / "config.yaml").is_file() and (self.path / "run.json").is_file()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Locks the folder (`files.lock.locked`), and removes the unfinished files of a killed process."""
        make_folder(self.path)
        with locked(self.path):
            for name in ("checkpoint", "figures"):
                remove_unfinished(self.path / name)
            yield

    def write(self, name: str, text: str) -> None:
        """Replaces a file atomically."""
        write_text(self.path / name, text)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replaces a JSON file; NaN and the infinities become null."""
        text = json.dumps(nulls_for_nan(content), indent=2, ensure_ascii=False, allow_nan=False)
        self.write(name, f"{text}\n")

    def read_json(self, name: str, needed: Sequence[str] = ()) -> dict[str, Any]:
        """The content of a JSON file, which must have the keys `needed`; empty if there is no such file."""
        path = self.path / name
        if not path.exists():
            return {}
        return checked(read_json(path), str(path), _SCHEMAS.get(name, {}), needed, _REMEDY)

    def write_yaml(self, name: str, content: Mapping[str, Any]) -> None:
        """Replaces a YAML file."""
        self.write(name, yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))

    def read_yaml(self, name: str) -> dict[str, Any]:
        """The content of a YAML file; empty if there is no such file."""
        path = self.path / name
        if not path.exists():
            return {}
        content = read_yaml(path)
        return checked({} if content is None else content, str(path), {}, (), _REMEDY)

    def close(self, state: State, message: str, overrides: Sequence[str], seconds: float) -> None:
        """Writes status.json."""
        content = {"state": state, "message": message, "overrides": list(overrides)}
        self.write_json("status.json", content | {"seconds": round(seconds, 3)})

    def decisions(self) -> list[dict[str, Any]]:
        """The decisions so far."""
        return [line for _, line in self.decision_lines()]

    def metrics(self) -> list[tuple[int, str, float]]:
        """The metrics so far: (step, name, value)."""
        rows = []
        for number, text in enumerate(self._complete_lines("metrics.csv"), 1):
            if number == 1:
                continue
            try:
                ((step, name, value),) = csv.reader([text])
                rows.append((int(step), name, float(value)))
            except (ValueError, csv.Error) as error:
                fault = f"expected step,name,value; got {shown(text)}"
                raise self._damaged("metrics.csv", number, fault) from error
        return rows

    def write_metrics(self, rows: Sequence[tuple[int, str, float]]) -> None:
        """Replaces all metrics."""
        lines = "".join(f"{step},{name},{value!r}\n" for step, name, value in rows)
        self.write("metrics.csv", f"step,name,value\n{lines}")

    def mend(self) -> list[dict[str, Any]]:
        """Drops incomplete last lines, and the timings of the decisions lost with them; returns the remaining
        decisions. RunFolderError, and no change, if a complete line cannot be read.
        """
        decided, rows = self.decision_lines(), self.metrics()
        if (self.path / "decisions.jsonl").is_file():
            self.write("decisions.jsonl", "".join(f"{text}\n" for text, _ in decided))
        indices = {line["index"] for _, line in decided}
        if (self.path / "metrics.csv").is_file():
            self.write_metrics([row for row in rows if row[1] != SECONDS or row[0] in indices])
        return [line for _, line in decided]

    def record(self, rounds: Iterator[Round]) -> Iterator[Round]:
        """Writes each round as soon as it is made and yields it, as the caller iterates."""
        if not (self.path / "metrics.csv").is_file():
            self.write_metrics([])
        with (
            appending(self.path / "decisions.jsonl") as to_decisions,
            appending(self.path / "metrics.csv") as to_metrics,
        ):
            for current in rounds:
                # The timing first: a kill in between leaves a timing alone, which `mend` removes.
                to_metrics(f"{current.index},{SECONDS},{float(current.decision.seconds)!r}\n")
                to_decisions(current.line() + "\n")
                yield current

    def decision_lines(self) -> list[tuple[str, dict[str, Any]]]:
        """The text and parsed object of each complete line of decisions.jsonl; RunFolderError if damaged."""
        name, decided = "decisions.jsonl", []
        for number, text in enumerate(self._complete_lines(name), 1):
            where = f"{self.path / name}, line {number}"
            try:
                line = checked(json_of(text, where), where, _SCHEMAS[name], ("index", "status"))
                if fault := _fault(line):
                    raise PlainFileError(fault)
            except PlainFileError as error:
                raise self._damaged(name, number, error.fault) from error
            decided.append((text, line))
        return decided

    def _complete_lines(self, name: str) -> Iterator[str]:
        """The lines of a file, one at a time, without an incomplete last one."""
        path = self.path / name
        if not path.exists():
            return
        if not path.is_file():
            raise RunFolderError(f"{path}: expected a file; got a folder: move it elsewhere")
        with path.open("rb") as stream:
            lines = iter(partial(stream.readline, LINE + 1), b"")
            for number, line in enumerate(lines, 1):
                if len(line) > LINE:
                    fault = f"expected at most {LINE // 2**20} MiB per line; got more"
                    raise self._damaged(name, number, fault)
                if not line.endswith(b"\n"):
                    return
                try:
                    text = line[:-1].decode("utf-8")
                except UnicodeDecodeError as error:
                    fault = f"expected text in UTF-8; got {shown(repr(line))}"
                    raise self._damaged(name, number, fault) from error
                if "\0" in text:
                    fault = "NUL bytes, which a crash leaves in a file that was not written completely"
                    raise self._damaged(name, number, f"expected text; got {fault}")
                yield text

    def _damaged(self, name: str, number: int, fault: str) -> RunFolderError:
        earlier = f"the {number - 1} before it are kept" if number > 1 else "none is kept"
        remedy = f"restore the file from a copy, or delete line {number}"
        if name == "decisions.jsonl":
            remedy += f" and all lines after it: their decisions are made again, {earlier}"
        return RunFolderError(f"{self.path / name}, line {number}: {fault}. Nothing was changed: {remedy}")


def replace_folder(folder: Path, finished: Path) -> None:
    """Moves a completely written folder to its final path, and deletes the one that it replaces, whose name a
    kill in between leaves as ``.NAME.PID.old``.
    """
    if not folder.exists():
        finished.rename(folder)
        return
    previous = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    folder.rename(previous)
    finished.rename(folder)
    if previous.is_symlink():
        previous.unlink()
    else:
        shutil.rmtree(previous)


def _fault(line: Mapping[str, Any]) -> str:
    """The first inconsistency in the fields of a decision; empty if there is none."""
    status, alteration = line["status"], line.get("alteration")
    if status not in ("do", "may", "leave"):
        return f"status: expected do, may or leave; got {shown(status)}"
    if (alteration is None) != (status == "leave"):
        return f"status: {status} does not go with the alteration {shown(alteration)}"
    for finding in (*(line.get("findings") or ()), *([line["reason"]] if line.get("reason") else ())):
        valid = isinstance(finding, dict) and finding.get("kind") in KINDS
        if not valid or not is_a(finding.get("text"), "a string"):
            return f"expected findings and a reason of a known kind, with a text; got {shown(finding)}"
    for name in ("estimate", "baseline", "unchanged", "gain"):
        if parts := line.get(name):
            for key in ("point", *(key for key in ("lower", "upper", "level") if key in parts)):
                if not is_a(parts.get(key), NUMBER):
                    return f"{name}.{key}: expected a number; got {shown(parts.get(key))}"
    if (draws := line.get("draws")) and not _are_draws(draws):
        return f"draws: expected those of a gain; got {shown(draws)}"
    if line.get("kind") == "rehearse" and not isinstance(line.get("given"), dict):
        return f"given: expected a mapping of the context's values; got {shown(line.get('given'))}"
    if not isinstance(settings := (line.get("trace") or {}).get("would_set") or {}, dict):
        return f"trace.would_set: expected a mapping; got {shown(settings)}"
    if "answer" in line and not _is_table(line["answer"]):
        return "answer: expected rows, a list of numbers per variable, and altered, [row, column] pairs"
    return ""


def _are_draws(draws: Mapping[str, Any]) -> bool:
    """Whether the draws can be read as `data.mean_gain.GainDraws`."""
    lists = [draws.get("gain"), draws.get("lowest", draws.get("gain"))]
    if not all(counts and is_a(counts, WHOLES) for counts in lists):
        return False
    fits = draws.get("fits")
    if not isinstance(fits, int) or fits < 1 or any(len(counts or ()) % fits for counts in lists):
        return False
    return is_a(draws.get("beyond"), NUMBER) and is_a(draws.get("level"), NUMBER) and "untouched" in draws


def _is_table(answer: Mapping[str, Any]) -> bool:
    """Whether the recorded response of the world is a table."""
    rows, altered = answer.get("rows"), answer.get("altered")
    columns = list(rows.values()) if isinstance(rows, dict) else []
    if not columns or not isinstance(altered, list):
        return False
    if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
        return False
    if not all(value is None or is_a(value, NUMBER) for column in columns for value in column):
        return False
    sizes = (len(columns[0]), len(columns))
    return all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(is_a(index, WHOLE) and 0 <= index < size for index, size in zip(pair, sizes, strict=True))
        for pair in altered
    )
