"""The commit of the working copy that the package is imported from."""

import subprocess
from pathlib import Path

from rehearsal_torch.files.installation import checkout

# Committed results, relative to the checkout: data that is written, not code that writes it.
RESULTS = Path("docs/results")


def commit() -> str | None:
    """The commit of this working copy, with "+changes" if tracked files other than results differ; None if
    there is none.
    """
    root = checkout()
    if root is None or not (root / ".git").exists():
        return None
    found = _git(root, "rev-parse", "HEAD")
    if found is None:
        return None
    return found + ("+changes" if changed_files(root, RESULTS) else "")


def changed_files(root: Path, besides: Path) -> list[str]:
    """The tracked files of a working copy that differ from its commit, except those in a folder.

    Args:
        besides: The excluded folder, relative to it.
    """
    asked = ("status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){besides}")
    return [line[3:] for line in (_git(root, *asked, strip=False) or "").splitlines()]


def _git(root: Path, *arguments: str, strip: bool = True) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0:
        return None
    return answer.stdout.strip() if strip else answer.stdout
