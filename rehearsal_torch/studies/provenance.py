"""Where the rows of a study come from: commands, commits, versions and processor time, as text of its README.

A commit that ends in ``+changes`` had uncommitted changes when its rows were computed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal_torch.studies.committed import CHANGES


def caution(jobs: Iterable[Mapping[str, str]], unit: str = "jobs") -> str:
    """A warning that some rows do not come from a clean commit; empty if all do.

    Args:
        jobs: The lines of ``jobs.csv``, with their commits.
        unit: Name of what a line stands for, in the plural.
    """
    commits = [line["commit"] for line in jobs]
    unclean = sum(commit.endswith(CHANGES) for commit in commits)
    return _warning(f"{unclean} of {len(commits)} {unit}", "jobs.csv") if unclean else ""


def caution_of_run(run: Mapping[str, object]) -> str:
    """The same warning for a study that records a single commit for all rows.

    Args:
        run: The content of ``run.json``.
    """
    return _warning("The rows", "run.json") if str(run.get("commit")).endswith(CHANGES) else ""


def origin(run: Mapping[str, Any], lines: Iterable[Mapping[str, str]], unit: str) -> str:
    """Commands, commits with their number of jobs, and versions of the packages.

    Args:
        run: The content of ``run.json``.
        lines: The lines of ``jobs.csv``.
        unit: Name of what a line stands for, in the singular.
    """
    counts = Counter(
        line["commit"][:12] + (CHANGES if line["commit"].endswith(CHANGES) else "") for line in lines
    )
    commits = ", ".join(f"{name or 'unknown'} ({count} {unit}s)" for name, count in counts.items())
    versions = ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items() if version)
    return f"Made by {commands(run)}; commits: {commits or 'none'}; {versions}"


def commands(run: Mapping[str, Any]) -> str:
    """The commands listed in ``run.json``, as inline code."""
    return ", ".join(f"`{command}`" for command in run.get("commands", []))


def minutes(lines: Iterable[Mapping[str, str]]) -> str:
    """The total processor time of all jobs, from the lines of ``jobs.csv``."""
    return f"{sum(float(line['seconds']) for line in lines) / 60:.0f} minutes of one core"


def _warning(rows: str, file: str) -> str:
    return (
        f"> **Provenance.** {rows} were made from trees with uncommitted changes (`+changes` in {file}), so "
        "that their commit alone does not reproduce them. They stay until they are made again from a clean "
        "commit."
    )
