"""Commands and scripts in processes of their own, and what they spent."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal_torch.user_error import UserError

ROOT = Path(__file__).resolve().parents[2]
SEPSIS = ROOT / "checkpoints/sepsis"
LOAN = ROOT / "checkpoints/loan"


@dataclass(frozen=True)
class Spent:
    """What a command spent.

    Attributes:
        wall: Seconds until it ended.
        cpu: Seconds of all its processes.
        memory: The largest resident set of one of them, in MB.
        out: What it printed.
    """

    wall: float
    cpu: float
    memory: float
    out: str

    @property
    def figures(self) -> dict[str, float]:
        """The numbers, rounded to what they are good for."""
        return {"wall": round(self.wall, 2), "cpu": round(self.cpu, 2), "memory": round(self.memory, 1)}

    @property
    def answer(self) -> Any:
        """What a script of this folder printed last, a line of JSON."""
        return json.loads(self.out.strip().splitlines()[-1])


def typed(folder: Path, verb: str, *arguments: str) -> Spent:
    """Types a verb of the package in a folder.

    Args:
        folder: The folder.
        verb: decide or train.
        *arguments: What is typed behind it.

    Raises:
        UserError: if the command fails.
    """
    return spent(folder, str(ROOT / f"scripts/{verb}.py"), *arguments)


def scripted(folder: Path, script: str, *arguments: object) -> Spent:
    """Runs a script of this folder.

    Args:
        folder: The current folder.
        script: Its name.
        *arguments: Its arguments.

    Raises:
        UserError: if it fails.
    """
    return spent(folder, "-m", f"benchmarks.scale.{script}", *map(str, arguments))


def spent(folder: Path, *arguments: str) -> Spent:
    """Runs Python with some arguments, in processes with one thread each unless they ask for more.

    Args:
        folder: The current folder.
        *arguments: The arguments of Python.

    Raises:
        UserError: if it fails, or leaves processes behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    result, log = folder / "spent.json", folder / "said.log"
    result.unlink(missing_ok=True)
    settings = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    tree = [sys.executable, str(ROOT / "benchmarks/scale/tree.py"), str(result.resolve()), sys.executable]
    with log.open("w", encoding="utf-8") as stream:
        done = subprocess.run(
            [*tree, *arguments],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            check=False,
        )
    if done.returncode or not result.exists():
        told = log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"]
        ended = f"ended with code {done.returncode}, and said: {told[-1]}"
        raise UserError(ended, shlex.join(arguments), f"See {log}")
    found = json.loads(result.read_text(encoding="ascii"))
    return Spent(found["wall"], found["cpu"], found["memory"], done.stdout)
