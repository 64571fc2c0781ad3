"""Collecting: the shards of a cohort as one run.

The lines of all shards are put in the order of their indices, as they are, so that the merged decisions.jsonl is the
one that an unsharded run would have written, byte for byte.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.commands.user_error import UserError
from rehearsal_torch.history import RunFolder

APART = ("shard", "shards", "out", "resume", "workers")


def cohorts(sweep: Path) -> list[list[RunFolder]]:
    """The shards below a folder, cohort by cohort: jobs that differ in nothing but their shard.

    Args:
        sweep: A sweep's folder.
    """
    found: dict[str, list[RunFolder]] = defaultdict(list)
    numbered = (path for path in sweep.iterdir() if path.is_dir() and path.name.isdecimal())
    for path in sorted(numbered, key=lambda path: int(path.name)):
        folder = RunFolder(path)
        if folder.begun and int(folder.read_yaml("config.yaml").get("shards", 1)) > 1:
            config = {key: value for key, value in folder.read_yaml("config.yaml").items() if key not in APART}
            found[json.dumps(config, sort_keys=True, default=str)].append(folder)
    return list(found.values())


def collect(sweep: Path) -> list[RunFolder]:
    """Merges the shards below a folder.

    Args:
        sweep: A sweep's folder. One cohort is merged into the folder itself, several each into a subfolder ``cohort-0``, ``cohort-1``, ...

    Returns:
        The merged runs.

    Raises:
        UserError: if there is no shard, or one is missing or unfinished.
    """
    if not sweep.is_dir():
        raise UserError("there is no such folder", str(sweep), "Give the folder of a sweep over shard=range(N)")
    groups = cohorts(sweep)
    if not groups:
        raise UserError("holds no shards", str(sweep), "Give the folder of a sweep over shard=range(N) shards=N")
    return [_merged(shards, sweep if len(groups) == 1 else sweep / f"cohort-{number}") for number, shards in enumerate(groups)]


def _merged(shards: list[RunFolder], path: Path) -> RunFolder:
    configs = [shard.read_yaml("config.yaml") for shard in shards]
    place = {int(config["shard"]): shard for config, shard in zip(configs, shards, strict=True)}
    wanted = int(configs[0]["shards"])
    if {int(config["shards"]) for config in configs} != {wanted}:
        raise UserError("its jobs disagree on the number of shards", str(path), "Begin a new sweep")
    missing = [number for number in range(wanted) if number not in place or place[number].read_json("status.json").get("state") != "ok"]
    if missing:
        names = ", ".join(map(str, missing))
        raise UserError(
            f"shard {names} of {wanted} is missing or unfinished", str(path), f"Type the sweep's command again with resume={path}; what is done is kept"
        )
    merged = RunFolder(path)
    merged.write_yaml("config.yaml", configs[0] | {"shard": 0, "shards": 1, "out": str(path)})
    runs = [place[number].read_json("run.json") for number in range(wanted)]
    apart = [text for text in runs[0]["overrides"] if not text.startswith(("shard=", "shards="))]
    seconds = round(sum(float(run["seconds"]) for run in runs), 3)
    merged.write_json("run.json", runs[0] | {"overrides": apart, "seconds": seconds, "merged_from": wanted})
    lines: dict[int, str] = {}
    for number in range(wanted):
        text = (place[number].path / "decisions.jsonl").read_text(encoding="utf-8") if (place[number].path / "decisions.jsonl").is_file() else ""
        lines.update({int(json.loads(line)["index"]): line for line in text.split("\n") if line})
    merged.write("decisions.jsonl", "".join(f"{lines[index]}\n" for index in sorted(lines)))
    merged.write_metrics(sorted((row for number in range(wanted) for row in place[number].metrics()), key=lambda row: (row[1], row[0])))
    if (place[0].path / "data.yaml").is_file():
        merged.write_yaml("data.yaml", place[0].read_yaml("data.yaml"))
    if any((shard.path / "truth.csv").is_file() for shard in shards):
        order = {json.loads(lines[index])["identity"]: index for index in lines}
        merged.write("truth.csv", _truths([place[number].path / "truth.csv" for number in range(wanted)], order))
    merged.close("ok", f"merged from {wanted} shards", apart, seconds)
    return merged


def _truths(paths: list[Path], order: dict[str, int]) -> str:
    """The shards' comparisons with the truth, in the order of the situations."""
    texts = [path.read_text(encoding="utf-8").splitlines() for path in paths if path.is_file()]
    rows = sorted((row for text in texts for row in text[1:]), key=lambda row: order[row.partition(",")[0]])
    return "\n".join([texts[0][0], *rows, ""])


def conclude(sweep: Path) -> list[dict[str, Any]]:
    """Merges, and prints each merged run's report.

    Returns:
        The merged folders' paths and how many decisions they hold.
    """
    from rehearsal_torch.reporting.report import report

    found = []
    for merged in collect(sweep):
        print(report(merged.path), flush=True)
        found.append({"folder": str(merged.path), "decisions": len(merged.decisions())})
    return found


def main(arguments: Sequence[str]) -> int:
    """Runs the command.

    Args:
        arguments: The sweeps' folders, each as FOLDER or run=FOLDER.

    Returns:
        The exit code: 0, or 2 where something typed must be mended.
    """
    if not arguments or any(text in ("-h", "--help") for text in arguments):
        print("Merges the shards of a sweep over shard=range(N).\n\nUsage: python scripts/collect.py FOLDER [FOLDER ...]")
        return 0 if arguments else 2
    try:
        for text in arguments:
            for merged in conclude(Path(text.removeprefix("run="))):
                print(f"Merged {merged['decisions']} decisions into {merged['folder']}", flush=True)
    except UserError as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        print(error, file=sys.stderr, flush=True)
        return 2
    return 0
