"""Where the project lies, and where real data lie for those who have them.

Set REHEARSAL_DATA to a folder with bermuda/bermuda.csv, mimic_demo/ and nhanes/ to run the tests on real data
as well.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
# A transition model as published, with SOFA as a state: linear rewards, branch and bound, A*.
PUBLISHED_SEPSIS = ROOT / "tests" / "fixtures" / "sepsis_published"
DATA = Path(os.environ.get("REHEARSAL_DATA") or ROOT / "no data named")
PACKAGE = "rehearsal_torch"


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted((ROOT / PACKAGE).rglob("*.py"))
