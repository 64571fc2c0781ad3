"""Rounds, and the folder that keeps them.

A run folder is the whole record of a run:

    config.yaml       the resolved configuration
    run.json          command, seed, versions, commit, data fingerprint, machine, seconds
    status.json       ok, failed or skipped, with a sentence
    metrics.csv       step,name,value
    decisions.jsonl   one JSON object a decision, written as it is made; where the run learns, with what the world answered
    checkpoint/       the fitted surrogate
    table.csv, figures/*.png, figures/*.svg    what the report makes of it

Files are replaced whole (written beside, then renamed); only decisions and metrics grow line by line, and a line
that a killed run left torn is dropped when the folder is taken up again. Lines hold no clock times, so that they
are equal, byte for byte, however often a run was interrupted and however many processes shared it.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import Decision
    from rehearsal_torch.data.situation import Situation
    from rehearsal_torch.data.table import Table

SECONDS = "decision/seconds"
State = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Round:
    """One situation, and what was made of it.

    Attributes:
        index: The situation's number in its problem.
        situation: What was known.
        decision: What was decided.
        certificate: How sure we are, name to number; None where nothing certifies.
        score: What the problem's own yardstick says, name to number.
        answer: The row(s) that followed, where the world was asked for them to learn from.
        success: Whether they are what was wanted; None where nobody was asked, or the world has no word on it.
        reward: What they are worth, the mean where there are several; None where nobody was asked, or the world has no reward.
        trajectory: For an episode, what the decision means step by step (`CounterfactualReturn.trajectory`); empty otherwise.
        kind: What the problem asks (`Problem.kind`).
    """

    index: int
    situation: "Situation"
    decision: "Decision"
    certificate: Mapping[str, float] | None
    score: Mapping[str, float]
    answer: "Table | None" = None
    success: bool | None = None
    reward: float | None = None
    trajectory: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def line(self) -> str:
        """The round as a line of JSON; numbers that JSON lacks (nan, inf) become null."""
        certificate = {} if self.certificate is None else {"certificate": dict(self.certificate)}
        trajectory = {"trajectory": dict(self.trajectory)} if self.trajectory else {}
        whole = {
            "index": self.index,
            "kind": self.kind,
            **self.situation.facts(),
            **self.decision.to_dict(),
            **trajectory,
            **certificate,
            "score": dict(self.score),
        }
        if self.answer is not None:
            rows = dict(zip(self.answer.names, self.answer.values.mT.tolist(), strict=True))
            whole |= {
                "success": self.success,
                **({} if self.reward is None else {"reward": self.reward}),
                "answer": {"rows": rows, "altered": _cells(self.answer)},
            }
        return json.dumps(_finite(whole), ensure_ascii=False, allow_nan=False)


def decision_of(line: Mapping[str, Any]) -> "Decision":
    """The decision that a line recorded; what JSON lacks (nan, the infinities) comes back as nan.

    Raises:
        KeyError: if the line holds none.
        ValueError: if its parts contradict each other.
    """
    import torch

    from rehearsal_torch.data.decision import Decision, Estimate
    from rehearsal_torch.spaces.alteration import Alteration

    def alteration(key: str) -> Alteration | None:
        plain = line.get(key)
        return None if plain is None else Alteration(tuple(plain), torch.tensor(list(plain.values()), dtype=torch.float64).mT)

    def estimate(key: str) -> Estimate | None:
        plain = line.get(key)
        return None if plain is None else Estimate(plain["point"], plain["of"], plain.get("lower"), plain.get("upper"), plain.get("level"))

    return Decision(
        alteration("alteration"),
        math.nan if line["value"] is None else float(line["value"]),
        status=line["status"],
        estimate=estimate("estimate"),
        baseline=estimate("baseline"),
        recommendation=alteration("recommendation"),
        doses={name: tuple(doses) for name, doses in line.get("doses", {}).items()},
        warnings=tuple(line["warnings"]),
        reason=line["reason"],
        trace=dict(line["trace"]),
    )


def answered(line: Mapping[str, Any]) -> "Table":
    """The answer that a line of a loop that learns recorded, as it was to the last bit.

    Raises:
        KeyError: if the line holds none.
    """
    import torch

    from rehearsal_torch.data.table import Table

    told = line["answer"]
    # What JSON lacks was written as null.
    columns = [[math.nan if value is None else value for value in column] for column in told["rows"].values()]
    values = torch.tensor(columns, dtype=torch.float64).mT.contiguous()
    altered = torch.zeros_like(values, dtype=torch.bool)
    for row, column in told["altered"]:
        altered[row, column] = True
    return Table(tuple(told["rows"]), values, altered)


class RunFolder:
    """A run's folder.

    Args:
        path: Where it is, or is going to be.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def begun(self) -> bool:
        """Whether a run has begun here."""
        return (self.path / "config.yaml").is_file() and (self.path / "run.json").is_file()

    def write(self, name: str, text: str) -> None:
        """Replaces a file as a whole, so that nobody ever reads half of it."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replaces a JSON file; numbers that JSON lacks become null."""
        self.write(name, json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file's content; empty where there is no such file."""
        path = self.path / name
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    def write_yaml(self, name: str, content: Mapping[str, Any]) -> None:
        """Replaces a YAML file."""
        self.write(name, yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))

    def read_yaml(self, name: str) -> dict[str, Any]:
        """A YAML file's content; empty where there is no such file."""
        path = self.path / name
        return dict(yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.is_file() else {}

    def close(self, state: State, message: str, overrides: Sequence[str], seconds: float) -> None:
        """Writes status.json."""
        self.write_json("status.json", {"state": state, "message": message, "overrides": list(overrides), "seconds": round(seconds, 3)})

    def decisions(self) -> list[dict[str, Any]]:
        """The decisions so far."""
        return [json.loads(line) for line in self._complete("decisions.jsonl")]

    def metrics(self) -> list[tuple[int, str, float]]:
        """The metrics so far: (step, name, value)."""
        rows = csv.reader(self._complete("metrics.csv")[1:])
        return [(int(step), name, float(value)) for step, name, value in rows]

    def write_metrics(self, rows: Sequence[tuple[int, str, float]]) -> None:
        """Replaces all metrics."""
        self.write("metrics.csv", "step,name,value\n" + "".join(f"{step},{name},{value!r}\n" for step, name, value in rows))

    def mend(self) -> list[dict[str, Any]]:
        """Drops torn last lines, and the seconds of decisions that went with them.

        Returns:
            The decisions that are left.
        """
        done = self._complete("decisions.jsonl")
        if (self.path / "decisions.jsonl").is_file():
            self.write("decisions.jsonl", "".join(f"{line}\n" for line in done))
        decisions = [json.loads(line) for line in done]
        kept = {decision["index"] for decision in decisions}
        if (self.path / "metrics.csv").is_file():
            self.write_metrics([row for row in self.metrics() if row[1] != SECONDS or row[0] in kept])
        return decisions

    def record(self, rounds: Iterator[Round]) -> Iterator[Round]:
        """Writes each round as it comes, and passes it on."""
        if not (self.path / "metrics.csv").is_file():
            self.write_metrics([])
        decisions, metrics = self.path / "decisions.jsonl", self.path / "metrics.csv"
        with decisions.open("a", encoding="utf-8", newline="\n") as lines, metrics.open("a", encoding="utf-8", newline="\n") as rows:
            for each in rounds:
                rows.write(f"{each.index},{SECONDS},{float(each.decision.seconds)!r}\n")
                rows.flush()
                lines.write(each.line() + "\n")
                lines.flush()
                yield each

    def _complete(self, name: str) -> list[str]:
        """A file's lines without a torn last one."""
        path = self.path / name
        if not path.is_file():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        return [line.decode("utf-8") for line in lines]


def write_folder(folder: Path, beside: Path) -> None:
    """Puts a folder that was written elsewhere into its place, in one step where the place is free."""
    if folder.exists():
        old = folder.with_name(f".{folder.name}.old")
        folder.rename(old)
        beside.rename(folder)
        for path in sorted(old.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        old.rmdir()
    else:
        beside.rename(folder)


def _cells(table: "Table") -> list[list[int]]:
    """The altered cells, row and column each."""
    found: list[list[int]] = table.altered.nonzero().tolist()
    return found


def _finite(value: Any) -> Any:
    """The same with null for nan and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
