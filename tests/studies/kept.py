"""Results that are kept in git, copied to where a test may write."""

import shutil

from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.study_files import study
from tests.places import ROOT


def copied(name, folder):
    """A copy of a study's results without its figures."""
    return shutil.copytree(ROOT / study(name).out, folder / name, ignore=shutil.ignore_patterns("*.png"))


def regenerated(name, folder):
    """Whether a study's page is made again from its rows, byte by byte."""
    out = copied(name, folder)
    assert main([f"study={name}", "stages=figures", f"out={out}"]) == 0
    return (out / "README.md").read_bytes() == (ROOT / study(name).out / "README.md").read_bytes()
