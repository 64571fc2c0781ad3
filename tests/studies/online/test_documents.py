"""The page of the study of rounds that learn from each other."""

import pytest

from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.online.documents import documents
from tests.studies.kept import regenerated


@pytest.mark.slow
def test_the_committed_page_comes_from_the_committed_rows(tmp_path):
    assert regenerated("online", tmp_path)


@pytest.mark.slow
def test_without_rows_the_page_says_so(tmp_path):
    documents(RunFolder(tmp_path))
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("# Structural rehearsal models: the paper's rounds\n")
    assert text.endswith("No round was played yet.\n")
