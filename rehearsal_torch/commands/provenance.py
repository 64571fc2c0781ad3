"""Where a run comes from: what ran, on what, when; nothing of the environment beyond that."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import join
from typing import Any

PACKAGES = ("rehearsal-torch", "torch", "lightning", "hydra-core", "numpy", "scipy", "pandas")


def provenance(command: str, overrides: Sequence[str], seed: int) -> dict[str, Any]:
    """What `run.json` says when a run begins.

    Args:
        command: The script's name.
        overrides: What was typed behind it.
        seed: Where everything random starts.
    """
    return {
        "command": join(["python", f"scripts/{command}.py", *overrides]),
        "script": command,
        "overrides": list(overrides),
        "seed": seed,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "commit": commit(),
        "machine": {"system": platform.system(), "release": platform.release(), "architecture": platform.machine(), "cores": os.cpu_count()},
    }


def commit() -> str | None:
    """The commit of this working copy, with "+changes" where tracked files differ; None where there is none."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    found = _git(root, "rev-parse", "HEAD")
    if found is None:
        return None
    return found + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def _git(root: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return sys.modules[name].__version__ if name in sys.modules else None
