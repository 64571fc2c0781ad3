"""Where the project lies, and where real data lie for those who have them.

Set REHEARSAL_DATA to a folder with bermuda/bermuda.csv, mimic_demo/ and nhanes/ to run the tests on real data
as well.
"""

import inspect
import os
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
# A transition model as published, with SOFA as a state: linear rewards, branch and bound, A*.
PUBLISHED_SEPSIS = ROOT / "tests" / "fixtures" / "sepsis_published"
DATA = Path(os.environ.get("REHEARSAL_DATA") or ROOT / "no data named")
PACKAGE = "rehearsal_torch"


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted((ROOT / PACKAGE).rglob("*.py"))


def concrete(room: str, *kinds: type) -> set[type]:
    """The classes of some kinds in a room of the package that are not abstract."""
    found = set[type]()
    for each in walk_packages(import_module(room).__path__, f"{room}."):
        members = [value for value in vars(import_module(each.name)).values() if isinstance(value, type)]
        found |= {one for one in members if issubclass(one, kinds) and not inspect.isabstract(one)}
    return {one for one in found if one.__module__.startswith(f"{PACKAGE}.")}
