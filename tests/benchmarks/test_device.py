"""The comparison of devices with tiny sizes: every row is measured."""

import re
import subprocess
import sys

import pytest

from tests.places import ROOT

TINY = (
    *("--batches", "16"), *("--rows", "40"), *("--cases", "1", "3"), *("--sequences", "20"),
    *("--fitted", "60"), *("--repeat", "1"),
)  # fmt: skip
NAMES = [
    "step, batches of 16", "kernel fit, 40 rows", "decide, 1 case", "decide, 3 cases", "replay, 20 sequences",
    "GP round",
]  # fmt: skip


def typed(script, *arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.bench
def test_the_same_work_is_measured_on_both():
    done = typed("device.py", "cpu", *TINY)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[3:]]
    assert [row[0] for row in rows] == NAMES
    for _, here, rate, there, other, ratio, memory in rows:
        assert all(float(each.replace(",", "")) > 0 for each in (here, rate, there, other, ratio))
        assert memory == "-", "the CPU has none of its own"


@pytest.mark.bench
def test_what_compilation_gains_is_measured_on_a_named_device():
    done = typed("compiled.py", "512", "1", "cpu")
    assert done.returncode == 0, done.stderr[-4000:]
    found = re.findall(r"^\| (step|forward), ([\d,]+) rows \|", done.stdout, re.MULTILINE)
    assert found == [("step", "256"), ("forward", "32"), ("forward", "512"), ("forward", "4096")]
