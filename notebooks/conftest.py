"""Every notebook is a slow test (`make test-slow`): it is run from the first cell to the last."""

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the notebooks as slow."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("slow")
