"""What is recorded of a run: statuses, settings, claims and interval ends of its decisions, no sentences."""

import csv
import json
import platform
import resource
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import scipy
import torch
import yaml

from rehearsal_torch.api.decisions import Decisions
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finding import undecided

CLAIMS = ("estimate", "baseline", "unchanged", "gain", "net_value", "net_gain")
AS_THEY_ARE = ("status", "recommendation", "doses", "cost", "certificate", "score")
ENDS = ("point", "lower", "upper")


def machine() -> dict[str, Any]:
    """What the last digits depend on. Two records of one machine are compared strictly."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8").partition("\n\n")[0] if info.is_file() else ""
    told = {key.strip(): each.strip() for key, _, each in (line.partition(":") for line in text.splitlines())}
    # Processors of several generations have one name.
    parts = [told[key] for key in ("model name", "cpu family", "model", "stepping") if key in told]
    return {
        "processor": ", ".join(parts) or platform.processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "threads": torch.get_num_threads(),
    }


def spent() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def of_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of one decision.

    Args:
        line: The decision as ``to_dict`` and ``decisions.jsonl`` write it.
    """
    found = {name: line[name] for name in AS_THEY_ARE if line.get(name)}
    if "certificate" in found:
        # Without the words that say what its bounds are of.
        numbers = {key: each for key, each in found["certificate"].items() if not isinstance(each, str)}
        found["certificate"] = numbers
    found["set"] = line["alteration"]
    for name in CLAIMS:
        if line.get(name) is not None:
            found[name] = {end: line[name][end] for end in ENDS if end in line[name]}
    if undecided(line):
        found["undecided"] = True
    # How many findings are of which kind: "support: 2".
    found["warnings"] = dict(Counter(each["kind"] for each in line["findings"]))
    return found


def of_decisions(decisions: Decisions) -> dict[str, Any]:
    """What is recorded of decisions from Python, with the width of the box of each setting."""
    cases = [case for case in decisions.cases if isinstance(case, RehearsalCase)]
    names = {name for case in cases for name in case.feasible}
    ranges = {name: [case.feasible[name] for case in cases if name in case.feasible] for name in names}
    widths = {name: max(high for _, high in of) - min(low for low, _ in of) for name, of in ranges.items()}
    return {"widths": widths, "decisions": [of_line(each.to_dict()) for each in decisions]}


def of_folder(folder: Path) -> dict[str, Any]:
    """What is recorded of a run's folder: its decisions."""
    card = yaml.safe_load((folder / "data.yaml").read_text(encoding="utf-8"))
    box = card.get("box") or card.get("actions") or {}
    widths = {name: each[1] - each[0] for name, each in box.items() if isinstance(each, list)}
    text = (folder / "decisions.jsonl").read_text(encoding="utf-8")
    return {"widths": widths, "decisions": [of_line(json.loads(line)) for line in text.splitlines()]}


def losses(folder: Path) -> dict[str, float]:
    """The last value of each loss of a training, from its run folder."""
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["name"].endswith("loss")]
    return {row["name"]: float(row["value"]) for row in rows}
