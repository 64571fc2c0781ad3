"""The fuzz lane: `make fuzz`, or one input of it alone: pytest -m fuzz tests/fuzz -k "tasks[137]"."""

import os
from collections import Counter

import pytest

from tests.fuzz.verdicts import FaultError, outcome

# Inputs a family, of which FUZZ_INPUTS asks for more, and whole commands.
INPUTS, COMMANDS = int(os.environ.get("FUZZ_INPUTS", "300")), 20


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        count = COMMANDS if metafunc.function.__name__.endswith("_command") else INPUTS
        metafunc.parametrize("number", range(count), ids=[f"{number:03}" for number in range(count)])


@pytest.fixture
def judged(request, record_property, monkeypatch, tmp_path):
    """Judges what comes of an input, and counts it."""
    monkeypatch.chdir(tmp_path)
    name = request.function.__name__.removeprefix("test_")
    family, way = name.removesuffix("_command"), "whole commands" if name.endswith("_command") else "inputs"

    def judge(work, shown="", **limits):
        verdict = "failed"
        try:
            verdict = outcome(work, **limits)
        except FaultError as fault:
            alone = f'pytest -m fuzz tests/fuzz -k "{name}[{request.node.callspec.id}]"'
            pytest.fail(
                f"{family}, {way}, number {request.node.callspec.id} (alone: "
                f"{alone})\n{str(shown)[:3000]}\n{fault}",
                pytrace=False,
            )
        finally:
            record_property("fuzz", [family, way, verdict])

    return judge


def pytest_terminal_summary(terminalreporter):
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
    ]
    counts = Counter(
        tuple(value) for report in reports for key, value in report.user_properties if key == "fuzz"
    )
    if not counts:
        return
    terminalreporter.write_sep("=", "fuzz: inputs by family")
    for family, way in sorted({key[:2] for key in counts}):
        each = {verdict: counts[family, way, verdict] for verdict in ("accepted", "refused", "failed")}
        terminalreporter.write_line(
            f"{family:<12} {way:<15} " + ", ".join(f"{count} {verdict}" for verdict, count in each.items())
        )


@pytest.fixture(scope="session", autouse=True)
def _quiet():
    """One thread, and no pictures on a screen."""
    os.environ.setdefault("MPLBACKEND", "agg")
