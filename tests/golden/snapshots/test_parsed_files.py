"""What every problem and task file of docs, examples and tests is read to."""

import pytest
import yaml

from tests.golden.snapshots.parsed_files import block, blocks, problem, problem_files


def written(found):
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)


@pytest.mark.slow
def test_problem_files_are_read_to_what_they_were_read_to(file_regression):
    found = {name: problem(path) for name, path in problem_files()}
    assert len(found) > 60
    file_regression.check(written(found), extension=".yaml", encoding="utf-8")


def test_blocks_of_pages_are_read_to_what_they_were_read_to(tmp_path, monkeypatch, file_regression):
    found = {}
    for number, (name, content) in enumerate(blocks()):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        found[name] = block(content, folder)
    assert len(found) > 8
    file_regression.check(written(found), extension=".yaml", encoding="utf-8")
