"""A plugin of pytest by which coverage.py knows which test runs: -p tests.mutation.contexts."""

from collections.abc import Generator

import pytest
from coverage import Coverage


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    """Gives what is run to the test's name, without its parameters."""
    running = Coverage.current()
    if running is not None:
        running.switch_context(item.nodeid.partition("[")[0])
    yield
    if running is not None:
        running.switch_context("")
