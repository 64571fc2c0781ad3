"""The location of the package and its configuration: a checkout of the repository, or an installed wheel.

A checkout has the configuration beside the package (``conf``); a wheel contains it
(``rehearsal_torch/conf``). Nothing else is read from outside the package, but the commit of a checkout.
"""

import subprocess
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(str(files(__name__.partition(".")[0])))
# Committed results, relative to the checkout: data that is written, not code that writes it.
RESULTS = Path("docs/results")
APP = ("fastapi", "uvicorn")  # What `rehearsal explore` needs, which is installed with the extra `app`.


def has_app() -> bool:
    """Whether what `rehearsal explore` needs is installed."""
    return all(find_spec(name) is not None for name in APP)


def checkout(package: Path = _PACKAGE) -> Path | None:
    """The root of the repository that the package is imported from; None if it is installed."""
    root = package.parent
    inside = (package / "conf" / "config.yaml").is_file()
    beside = (root / "conf" / "config.yaml").is_file() and (root / "pyproject.toml").is_file()
    return root if beside and not inside else None


def conf_folder(package: Path = _PACKAGE) -> Path:
    """The folder with ``config.yaml``: that of the checkout, otherwise the installed one."""
    root = checkout(package)
    return package / "conf" if root is None else root / "conf"


def commit() -> str | None:
    """The checkout's commit, with "+changes" if files besides results differ; None without one."""
    root = checkout()
    if root is None or not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    return head and head + ("+changes" if changed_files(root, RESULTS) else "")


def changed_files(root: Path, besides: Path) -> list[str]:
    """The tracked files of a working copy that differ from its commit, except those in a folder."""
    arguments = ("status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){besides}")
    return [line[3:] for line in (_git(root, *arguments) or "").splitlines()]


def _git(root: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.rstrip() if answer.returncode == 0 else None
