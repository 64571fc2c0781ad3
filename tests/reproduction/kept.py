"""Results that are kept in git, copied to where a test may write, and jobs that were not run."""

import shutil
from importlib import import_module

from reproduction.plan import study
from reproduction.run import defaults, main
from tests.places import ROOT


def paper(name):
    return import_module(f"reproduction.{name}.documents").PAPER


def copied(name, folder):
    """A copy of a paper's results with one picture of each figure."""
    return shutil.copytree(ROOT / study(name)["out"], folder / name, ignore=shutil.ignore_patterns("*.png"))


def regenerated(name, folder):
    """Whether a paper's page is made again from its rows, byte by byte."""
    out = copied(name, folder)
    assert main(paper(name), ["stages=[figures]", f"out={out}"]) == 0
    return (out / "README.md").read_bytes() == (ROOT / study(name)["out"] / "README.md").read_bytes()


def record_in(name, folder, stage):
    return paper(name).record(folder, defaults(name), stage)
