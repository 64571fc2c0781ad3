"""Faulty inputs: whether each is refused, with which exit code, and which place the refusal names."""

import json
from pathlib import Path

import pytest

from tests.golden.snapshots.plain_calls import verdict

HERE = Path(__file__).parent / "refusals"
CALLS = [json.loads(line) for line in (HERE / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
CONTENTS = json.loads((HERE / "contents.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_what_was_refused_is_refused_at_the_same_place(tmp_path, file_regression):
    lines = []
    for call in CALLS:
        here = tmp_path / f"{call['id']}"
        here.mkdir(exist_ok=True)
        said, code, places = verdict(call, CONTENTS, here)
        lines.append(
            f"{call['call'].removeprefix('rehearsal_torch.')} {call['id']}: {said} {code} {places}".rstrip()
        )
    assert len(lines) >= 800
    file_regression.check("\n".join(lines) + "\n")
