"""Where a page comes from."""

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.provenance import origin, provenance
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(run):
    return Page(f'<html lang="en"><h1>t</h1>{provenance(material(run))}</html>')


def test_command_commit_versions_seed_and_configuration(tmp_path):
    page = shown(recorded_runs.alterations(tmp_path))
    assert page.faults == []
    for words in (
        "command rehearsal decide table.csv",
        "commit 0123abcd",
        "seed 3",
        "versions python 3.12.1, torch 2.0",
        "chosen decision cme, dataset table",
        "fingerprint of the data abc123",
        "name: loans seed: 3",
        str(tmp_path),
    ):
        assert words in page.said


def test_an_unknown_commit_is_told(tmp_path):
    run = recorded_runs.alterations(tmp_path, record=recorded_runs.RECORD | {"commit": None}, config={})
    page = shown(run)
    assert "commit not known: the package was installed without its history" in page.said
    assert "The run recorded no configuration." in page.said
    (tmp_path / "run.json").unlink()
    assert [name for name, _ in origin(material(run))] == ["run folder"]


def test_a_huge_configuration_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("rehearsal_torch.reporting.page.provenance.LONGEST", 500)
    page = shown(recorded_runs.alterations(tmp_path, config={"key": "x" * 480, "last": "never shown"}))
    assert "... (the rest is in config.yaml)" in page.said
    assert "never shown" not in page.said
