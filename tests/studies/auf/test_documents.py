"""The page of the study of avoiding undesired futures."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.auf.documents import documents
from rehearsal_torch.studies.auf.reproduction import record_in
from tests.studies.kept import regenerated


@pytest.mark.slow
def test_the_committed_page_comes_from_the_committed_rows(tmp_path):
    assert regenerated("auf", tmp_path)


@pytest.mark.slow
def test_figures_of_participants_are_asked_for_by_name(tmp_path):
    (tmp_path / "nhanes").mkdir()
    with pytest.raises(UserError, match=r"nhanes=.*: expected marginals\.svg, correlations\.svg there"):
        documents(RunFolder(tmp_path / "out"), record_in(tmp_path / "out"), tmp_path / "nhanes")
