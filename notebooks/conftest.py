"""Every notebook is a test that runs it whole: one of them slow (`make test-slow`), the others nightly."""

from pathlib import Path

import pytest

SLOW = {"sepsis.ipynb"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each notebook."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("slow" if item.path.name in SLOW else "nightly")
