"""The page of the sepsis study."""

import pytest

from rehearsal_torch.reporting.style import panels
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.committed import unpack
from rehearsal_torch.studies.sepsis import documents
from tests.places import ROOT
from tests.studies.kept import copied


@pytest.mark.slow
def test_the_committed_page_comes_from_the_committed_rows(tmp_path, monkeypatch):
    # The patient is drawn from a model, which is not committed.
    monkeypatch.setattr(documents, "_patient", lambda *given: panels()[0])
    out = copied("sepsis", tmp_path)
    unpack(out)
    documents.documents(RunFolder(out), None, {})
    assert (out / "README.md").read_bytes() == (ROOT / "docs/results/sepsis/README.md").read_bytes()
