"""The verb collect: merges the shards of a sweep into one run.

The lines of all shards are sorted by index and otherwise unchanged, so that the merged decisions.jsonl is the
one of an unsharded run, byte for byte. What every shard writes alike (data card, choice of a method, claims
of the folds) is taken from the first; curves, which need all decisions, are made anew.

Which decisions have curves (`claims.csv` for cases of a table, `surrogate.csv` for trials) depends on all:
those with the largest, the median and the smallest difference. The curves are therefore made after the
merging, by the model and the data that the shards used: the checkpoint and the data set of the merged
configuration, with the fingerprint of the data that the shards recorded. Where one of them is no longer
there, the run is merged without curves, and a sentence says what is missing.

The configuration lies in a folder that others may have written: unless it was typed on this command line,
nothing is built of it but what a resumed folder may build (`methods.allowed`).
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.checkpoint import load
from rehearsal_torch.cli.choice.settled import settled
from rehearsal_torch.cli.verbs.fitting import curved
from rehearsal_torch.files.forms import WHOLE, checked
from rehearsal_torch.methods.allowed import trusted_modules
from rehearsal_torch.methods.build import screen
from rehearsal_torch.methods.conf import trusted_names
from rehearsal_torch.methods.run import suits
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, as_user_error, user_error_from

_WRITTEN = (
    "run.json",
    "config.yaml",
    "decisions.jsonl",
    "metrics.csv",
    "data.yaml",
    "truth.csv",
    "status.json",
)
# What a run may hold besides, the same in each shard.
_ALIKE = ("data.yaml", "method_choice.csv", "method_choice.json", "claims.json", "untouched.csv")
APART = ("shard", "shards", "out", "resume", "workers")


def cohorts(sweep: Path) -> list[list[RunFolder]]:
    """The shards in a folder, grouped by cohort: jobs that differ in nothing but their shard."""
    found: dict[str, list[RunFolder]] = defaultdict(list)
    numbered = (path for path in sweep.iterdir() if path.is_dir() and path.name.isdecimal())
    for path in sorted(numbered, key=lambda path: int(path.name)):
        folder = RunFolder(path)
        if folder.begun and _config(folder)["shards"] > 1:
            config = {
                key: value for key, value in folder.read_yaml("config.yaml").items() if key not in APART
            }
            found[json.dumps(config, sort_keys=True, default=str)].append(folder)
    return list(found.values())


def merge(sweep: Path) -> list[RunFolder]:
    """Merges the shards in a folder.

    Args:
        sweep: A sweep's folder. A single cohort is merged into the folder itself, several are merged into
            subfolders ``cohort-0``, ``cohort-1``, ...

    Raises:
        UserError: if there is no shard, or one is missing or unfinished.
    """
    groups = shards(sweep)
    return [
        _merged(parts, sweep if len(groups) == 1 else sweep / f"cohort-{number}")
        for number, parts in enumerate(groups)
    ]


def shards(sweep: Path) -> list[list[RunFolder]]:
    """The shards in a sweep's folder, grouped by cohort; at least one.

    Raises:
        UserError: if there is none, or merging would overwrite other files.
    """
    if not sweep.is_dir():
        raise UserError(
            "there is no such folder", str(sweep), "Give the folder of a sweep over shard=range(N)"
        )
    groups = cohorts(sweep)
    if not groups:
        raise UserError(
            "holds no shards", str(sweep), "Give the folder of a sweep over shard=range(N) shards=N"
        )
    for path in (
        [sweep] if len(groups) == 1 else [sweep / f"cohort-{number}" for number in range(len(groups))]
    ):
        there = [name for name in _WRITTEN if (path / name).exists()]
        if there and "merged_from" not in RunFolder(path).read_json("run.json"):
            raise UserError(
                f"holds {' and '.join(there[:3])} that this command did not write",
                str(path),
                "Move them elsewhere",
            )
    return groups


def _merged(parts: list[RunFolder], path: Path) -> RunFolder:
    configs = [_config(shard) for shard in parts]
    place = {config["shard"]: shard for config, shard in zip(configs, parts, strict=True)}
    wanted = configs[0]["shards"]
    if {config["shards"] for config in configs} != {wanted}:
        raise UserError("its jobs have different numbers of shards", str(path), "Start a new sweep")
    missing = [
        number
        for number in range(wanted)
        if number not in place or place[number].read_json("status.json").get("state") != "ok"
    ]
    if missing:
        names = ", ".join(map(str, missing))
        raise UserError(
            f"shard {names} of {wanted} is missing or unfinished",
            str(path),
            f"Run the sweep's command again with resume={path}; finished jobs are kept",
        )
    merged = RunFolder(path)
    runs = [place[number].read_json("run.json", ("overrides", "seconds")) for number in range(wanted)]
    apart = [text for text in runs[0]["overrides"] if not text.startswith(("shard=", "shards="))]
    seconds = round(sum(float(run["seconds"]) for run in runs), 3)
    # Everything is read before anything is written: a damaged shard leaves earlier merged results unchanged.
    lines: dict[int, str] = {}
    identities: dict[str, int] = {}
    for number in range(wanted):
        for text, line in place[number].decided():
            lines[line["index"]] = text
            identities[str(line.get("identity"))] = line["index"]
    metrics = sorted(
        (row for number in range(wanted) for row in place[number].metrics()), key=lambda row: (row[1], row[0])
    )
    merged.write_json("run.json", runs[0] | {"overrides": apart, "seconds": seconds, "merged_from": wanted})
    merged.write_yaml("config.yaml", configs[0] | {"shard": 0, "shards": 1, "out": str(path)})
    decided = "".join(f"{lines[index]}\n" for index in sorted(lines))
    written = path / "decisions.jsonl"
    if not written.is_file() or written.read_bytes() != decided.encode():
        without_curves(merged)
    merged.write("decisions.jsonl", decided)
    merged.write_metrics(metrics)
    for name in _ALIKE:
        if (place[0].path / name).is_file():
            merged.write(name, (place[0].path / name).read_text(encoding="utf-8"))
    if any((shard.path / "truth.csv").is_file() for shard in parts):
        merged.write(
            "truth.csv", _truths([place[number].path / "truth.csv" for number in range(wanted)], identities)
        )
    merged.close("ok", f"merged from {wanted} shards", apart, seconds)
    return merged


def _config(folder: RunFolder) -> dict[str, Any]:
    """A job's configuration, with its shard."""
    written = folder.read_yaml("config.yaml")
    # Keys stay in their order: the merged file is that of a single job.
    content = written | {key: value for key, value in (("shard", 0), ("shards", 1)) if key not in written}
    return checked(content, str(folder.path / "config.yaml"), {"shard": WHOLE, "shards": WHOLE})


def _truths(paths: list[Path], order: dict[str, int]) -> str:
    """The shards' comparisons with the ground truth, in the order of the cases."""
    texts = [path.read_text(encoding="utf-8").splitlines() for path in paths if path.is_file()]
    rows = sorted(
        (row for text in texts for row in text[1:]),
        key=lambda row: order.get(row.partition(",")[0], len(order)),
    )
    return "\n".join([texts[0][0], *rows, ""])


def conclude(sweep: Path, trusted: Sequence[str] | None = ()) -> None:
    """Merges the shards, makes the curves of each merged run, and prints its report.

    Args:
        trusted: Modules and classes outside this package that may be built for the curves; None if the
            sweep's configuration was typed on this command line.
    """
    for merged in merge(sweep):
        with_curves(merged, trusted)
        print(report(merged.path), flush=True)
        print(f"Merged {len(merged.decisions())} decisions into {merged.path}", flush=True)


def collect(sweeps: Sequence[Path], given: Mapping[str, str]) -> int:
    """Merges the shards of sweeps; returns 0.

    Raises:
        UserError: if there is no shard, one is missing, or a name in ``trusted=[...]`` is none.
    """
    names = given.get("trusted", "").strip("[]").split(",")
    trusted = trusted_names([name.strip() for name in names if name.strip()])
    for sweep in sweeps:
        shards(sweep)
        with RunFolder(sweep).lock():
            conclude(sweep, trusted)
    return 0


_FILES = {"rehearse": "claims.csv", "optimise": "surrogate.csv"}


def without_curves(merged: RunFolder) -> None:
    """Removes the curves of an earlier merging, whose decisions were others, with their figures.

    Args:
        merged: The folder of the merged run.
    """
    for name in _FILES.values():
        (merged.path / name).unlink(missing_ok=True)
        for drawn in (merged.path / "figures").glob(f"{name.removesuffix('.csv')}*"):
            drawn.unlink()


def with_curves(merged: RunFolder, trusted: Sequence[str] | None) -> bool:
    """Makes the curves of a merged run, as a run of its own would have; for episodes there are none.

    Args:
        merged: The folder of the merged run.
        trusted: Modules and classes outside this package that may be built; None if the configuration was
            typed on this command line.

    Returns:
        Whether they were made, or there are none to make; otherwise it was said why.
    """
    name = _FILES.get(merged.read_json("run.json").get("kind", ""))
    if name is None or (merged.path / name).is_file():
        return True
    try:
        _made(merged, trusted)
    except Exception as error:
        wrong = user_error_from(error)
        if wrong is None:
            raise
        print(
            f"Merged without {name} and its figure, for which the checkpoint and the data are read again: "
            f"{wrong}",
            file=sys.stderr,
            flush=True,
        )
        return False
    return True


def _made(merged: RunFolder, trusted: Sequence[str] | None) -> None:
    content = merged.read_yaml("config.yaml") | {"trusted": None if trusted is None else list(trusted)}
    config = OmegaConf.create(content)
    if config.get("checkpoint") is None:
        raise UserError("names no checkpoint", str(merged.path / "config.yaml"))
    screen(config)
    run, _, _ = settled(config, merged, sweep=True)
    with as_user_error(f"checkpoint={config.checkpoint}"):
        surrogate = load(config.checkpoint, task=run.problem.question(), trusted=trusted_modules(run.config))
    suits(run, surrogate)
    curved(run, merged, surrogate)
