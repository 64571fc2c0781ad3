"""The fixture by which a test records its run, or compares it with the record."""

import json
import warnings
from pathlib import Path

import pytest
import torch

from tests.golden.recorded import machine, spent
from tests.golden.tolerances import differences

RECORDS = Path(__file__).parent / "records"


@pytest.fixture
def golden(request, file_regression, tmp_path, monkeypatch):
    """Takes what is recorded of the run of this test; on one thread, in a folder of its own."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    began = spent()

    def near(obtained: Path, expected: Path) -> None:
        before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (expected, obtained))
        found = differences(before, after)
        assert not found, "\n".join([f"{expected.name} differs at {len(found)} places", *found[:20]])

    def check(run):
        seconds = round(spent() - began, 1)
        request.node.user_properties.append(("golden_seconds", seconds))
        content = {"machine": machine(), "cpu_seconds": seconds, "run": run}
        name = request.node.name.removeprefix("test_").replace("[", ".").rstrip("]")
        file_regression.check(
            json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
            encoding="utf-8",
            extension=".json",
            fullpath=RECORDS / f"{name}.json",
            check_fn=near,
        )

    # What a run says on the way is not recorded.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield check
    torch.set_num_threads(threads)
