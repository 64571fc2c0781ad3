"""Every notebook is a test that runs it whole: two of them slow, the others of the bench lane."""

from pathlib import Path

import pytest

SLOW = {"sepsis.ipynb", "campaign.ipynb"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each notebook."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("slow" if item.path.name in SLOW else "bench")
