"""Whether claims keep thresholds: a small version of the study, made anew and compared with numbers on file.

    python -m reproduction.calibration.thresholds            (make bench-calibration)

``thresholds.yaml`` says which worlds, methods, seeds and cases, and for each world and method

    gap         the largest |mean claim - mean truth|
    inside95    the smallest share of the 95 % intervals that hold the truth
    worse_off   the largest share of cases for which the decision is truly worse than no action
    share       the smallest gain over no action, as a share of the best possible gain

Nothing is kept. Arguments are those of `reproduction.run`, such as workers=1. Exit codes: 0 every threshold
holds; 1 one is broken, or a job failed; 2 an error in an argument; 130 interrupted.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.evaluation.claim_rows import Row
from rehearsal_torch.evaluation.method_summaries import grouped, mean
from rehearsal_torch.files.bounded_yaml import read_yaml
from reproduction.calibration.documents import claims_of
from reproduction.calibration.jobs import rows_of
from reproduction.page import table
from reproduction.plan import jobs, study
from reproduction.run import asked, computed

FILE = Path(__file__).with_name("thresholds.yaml")
STAGE = "rehearsal"
# Quantity to whether its threshold is the largest allowed value; else it is the smallest.
LARGEST = {"gap": True, "inside95": False, "worse_off": True, "share": False}


@dataclass(frozen=True)
class Check:
    """A threshold and the value that was found.

    Attributes:
        world: The world.
        method: The method.
        quantity: One of `LARGEST`.
        threshold: The largest or smallest value allowed.
        value: The value; NaN if there are no rows, or no intervals.
    """

    world: str
    method: str
    quantity: str
    threshold: float
    value: float

    @property
    def kept(self) -> bool:
        """Whether the threshold holds; NaN does not."""
        return self.value <= self.threshold if LARGEST[self.quantity] else self.value >= self.threshold

    def cells(self) -> dict[str, str]:
        """The check as a line of a table."""
        sign = "<=" if LARGEST[self.quantity] else ">="
        return {
            "world": self.world,
            "method": self.method,
            "quantity": self.quantity,
            "threshold": f"{sign} {self.threshold:.3f}",
            "value": f"{self.value:.3f}",
            "": "" if self.kept else "BROKEN",
        }


def plan(file: Path = FILE) -> dict[str, Any]:
    """The content of ``thresholds.yaml``."""
    content: dict[str, Any] = read_yaml(file)
    return content


def quantities(rows: Sequence[Row]) -> dict[str, float]:
    """The quantities of one world and method, means over seeds.

    Args:
        rows: The decisions.
    """
    seeds = claims_of(rows)
    means = {
        key: mean([line[key] for line in seeds])
        for key in ("claimed", "true", "no_action", "best", "inside95", "worse_off")
    }
    return {
        "gap": abs(means["claimed"] - means["true"]),
        "inside95": means["inside95"],
        "worse_off": means["worse_off"],
        "share": (means["true"] - means["no_action"]) / (means["best"] - means["no_action"]),
    }


def compared(rows: Sequence[Row], planned: Mapping[str, Any]) -> list[Check]:
    """The thresholds of the worlds and methods that were run, with the values found.

    Args:
        rows: The decisions.
        planned: The content of ``thresholds.yaml``.
    """
    found = grouped(rows, "dataset", "method")
    checks = []
    for world in planned["worlds"]:
        for method in planned["methods"]:
            some = found.get((world, method), [])
            values = quantities(some) if some else {}
            for name, threshold in planned["thresholds"][world][method].items():
                checks.append(Check(world, method, name, float(threshold), values.get(name, float("nan"))))
    return checks


def main(typed: Sequence[str] | None = None) -> int:
    """Runs the jobs, and prints every threshold with its value.

    Args:
        typed: The arguments; None for those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if typed is None else typed)
    return exit_code(lambda: _compared(words), "Interrupted; type the same again.")


def _compared(typed: Sequence[str]) -> int:
    planned = plan()
    options = asked("calibration", [f"contexts={planned['contexts']}", *typed])
    names = {axis: planned[axis] for axis in ("worlds", "methods")}
    todo = jobs(study("calibration"), STAGE, planned["seeds"], **names)
    rows: list[Row] = []
    failed = 0
    for job, found, line in computed(rows_of, options, todo, options["workers"]):
        print(" ".join(job.key), line["message"] or f"{line['seconds']:.1f} s", flush=True)
        rows += found
        failed += line["state"] != "ok"
    checks = compared(rows, planned)
    print("\n".join(table([check.cells() for check in checks])))
    broken = [check for check in checks if not check.kept]
    print(f"{len(checks) - len(broken)} of {len(checks)} thresholds hold")
    return 1 if broken or failed else 0


if __name__ == "__main__":
    sys.exit(main())
