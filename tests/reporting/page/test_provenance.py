"""Where a page comes from."""

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.provenance import origin, provenance
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(run):
    return Page(f'<html lang="en"><h1>t</h1>{provenance(material(run))}</html>')


def test_an_unknown_commit_is_told(tmp_path):
    run = recorded_runs.alterations(tmp_path, record=recorded_runs.RECORD | {"commit": None}, config={})
    page = shown(run)
    assert "commit not known: the package was installed without its history" in page.said
    assert "The run recorded no configuration." in page.said
    (tmp_path / "run.json").unlink()
    assert [name for name, _ in origin(material(run))] == ["run folder"]
