"""What the commands that reproduce a paper share: ending with a code, names that must be known, the note of
what was typed.

``run.json`` in a study's folder lists every command that added to it, with versions and commit, and the
settings that all its rows share. Nothing here imports anything heavy, so that help and slips are answered at
once.
"""

import argparse
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rehearsal_torch.cli.errors import UserError, exit_code
from rehearsal_torch.cli.installation import conf_folder
from rehearsal_torch.cli.job import provenance
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.committed import check_clean, pack, unpack

Asked = TypeVar("Asked", bound=argparse.Namespace)


def study_parser(
    told: str | None, stages: Sequence[str], out: str, unit: str, example: str
) -> argparse.ArgumentParser:
    """A parser with the options that the commands share: stages, budget, workers, where results go,
    overrides.

    Args:
        told: The command's description.
        stages: All stages, in order; all are run unless some are named.
        out: Where results go.
        unit: What begins no more after the budget, such as "repeat".
        example: An override.
    """
    prog = spoken(f"reproduce_{Path(out).name}")
    parser = argparse.ArgumentParser(
        prog=prog, description=told, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--stages",
        nargs="+",
        choices=stages,
        default=list(stages),
        metavar="STAGE",
        help=f"any of {' '.join(stages)} (default: all)",
    )
    parser.add_argument(
        "--budget-minutes",
        type=float,
        default=None,
        help=f"no new {unit} begins after so many minutes (default: no limit)",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each (default: 2)")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"where results go (default: {out})")
    parser.add_argument("--conf", type=Path, default=conf_folder(), help=argparse.SUPPRESS)
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help=f"overrides of all {unit}s, such as {example}",
    )
    return parser


def ended(run: Callable[[Asked, list[str]], int], asked: Asked, arguments: Sequence[str] | None) -> int:
    """The exit code of run(asked, what was typed), while nobody else writes into the study's folder."""
    typed = list(sys.argv[1:] if arguments is None else arguments)

    def alone() -> int:
        out: Path = asked.out
        held = own(out)
        with held.lock():
            check_clean(out)
            unpack(out)
            try:
                return run(asked, typed)
            finally:
                pack(out)

    return exit_code(alone, "Interrupted; type the same again to go on.")


def own(out: Path) -> RunFolder:
    """A study's folder, if it is missing, empty, or one that a study wrote; nothing of it is touched.

    Raises:
        UserError: if it holds something else, which a study would write over.
        PlainFileError: if its run.json is damaged.
    """
    if out.exists() and not out.is_dir():
        raise UserError("expected a folder; this is a file", f"--out {out}", "Choose another --out")
    folder = RunFolder(out)
    others = (
        sorted(path.name for path in out.iterdir() if not path.name.startswith(LOCK)) if out.is_dir() else []
    )
    if others and "commands" not in folder.read_json("run.json"):
        raise UserError(
            f"the folder is not empty and holds no study ({', '.join(others[:3])})",
            f"--out {out}",
            "Choose another --out",
        )
    return folder


def one_thread() -> None:
    """One thread a process, for the linear algebra too; it reads this when it is first imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def known(given: Sequence[str] | None, all_: Sequence[str], option: str) -> list[str]:
    """The names that were given, in the study's order; None for all.

    Raises:
        UserError: if one is not among them.
    """
    odd = [name for name in given or [] if name not in all_]
    if odd:
        raise UserError(f"expected some of {' '.join(all_)}; got {' '.join(odd)}", option)
    return list(all_) if given is None else [name for name in all_ if name in given]


def agree(out: RunFolder, settings: Mapping[str, object], extra: Sequence[str]) -> None:
    """Rows of one protocol are not mixed with those of another.

    Args:
        out: The study's folder.
        settings: Option to value, of those that all rows must share.
        extra: Overrides, likewise.

    Raises:
        UserError: if the rows there were made with others.
    """
    before = out.read_json("run.json")
    wanted = {**settings, "extra": list(extra)}
    if set(wanted) <= set(before) and any(before[key] != value for key, value in wanted.items()):
        told = " ".join(f"--{key} {before[key]}" for key in settings) + (
            f" --set {shlex.join(before['extra'])}" if before["extra"] else ""
        )
        raise UserError(
            f"the rows there were made with {told}",
            str(out.path),
            "Choose another --out, or move the folder away",
        )


def note(
    out: RunFolder, script: str, typed: Sequence[str], told: Mapping[str, object], seed: int = 0
) -> None:
    """Adds what was typed to run.json; what it said before and is not said again stays."""
    before = out.read_json("run.json")
    command = " ".join([spoken(script), shlex.join(typed)]).strip()
    commands = list(dict.fromkeys([*before.get("commands", []), command]))
    out.write_json(
        "run.json", before | provenance(script, [], seed) | {"command": command, "commands": commands, **told}
    )


def origin(run: Mapping[str, Any], jobs: Iterable[Mapping[str, str]]) -> str:
    """Where a study's rows come from: commands, commits, versions, minutes.

    Args:
        run: Its run.json.
        jobs: The lines of its jobs.csv.
    """
    lines = list(jobs)
    commits = Counter(
        line["commit"][:12] + ("+changes" if line["commit"].endswith("+changes") else "") for line in lines
    )
    told = ", ".join(f"{name or 'unknown'} ({count} repeats)" for name, count in commits.items())
    commands = ", ".join(f"`{command}`" for command in run.get("commands", []))
    versions = ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items() if version)
    spent = sum(float(line["seconds"]) for line in lines) / 60
    return f"Made by {commands}; commits: {told or 'none'}; {versions}; {spent:.0f} minutes of one core."


def say(began: float, text: str) -> None:
    """A line with the seconds since `began`."""
    print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)
