"""All warnings."""

from rehearsal_torch.reporting.page.cautions import cautions, notice, of_the_run
from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.run_folder import RunFolder
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def read(made):
    return Page(f'<html lang="en"><h1>t</h1><h2 id="warnings">s</h2>{made}</html>')


def test_warnings_of_data_and_decisions_are_all_there(tmp_path):
    found = material(recorded_runs.alterations(tmp_path), ended=False)
    page = read(cautions(found))
    assert page.faults == []
    for words in ("observational data", "rate: hardly varies", "claim: rate is far out (case ann)"):
        assert words in page.said
    top = read(notice(found))
    assert top.faults == []
    assert "2 warnings of the run and its data and 1 case of 2 with warnings: read them" in top.said


def test_a_run_that_failed_says_so(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    RunFolder(run).close("interrupted", "continue with resume=x", [], 1.0)
    assert of_the_run(material(run, ended=False))[0] == (
        "The run did not end well (interrupted): continue with resume=x"
    )
    (run / "status.json").unlink()
    assert of_the_run(material(run, ended=False))[0].startswith("The run left no status: it was killed")
    assert of_the_run(material(run, ended=True)) == ["observational data", "rate: hardly varies"]


def test_a_checkpoint_that_has_seen_the_rows_is_told(tmp_path):
    record = recorded_runs.RECORD | {"held_out_seen": True}
    run = recorded_runs.alterations(tmp_path, record=record, config={"checkpoint": "there"})
    assert any("in the fit of the checkpoint" in each for each in of_the_run(material(run)))


def test_no_warnings_are_told(tmp_path):
    line = recorded_runs.recommended() | {"warnings": []}
    found = material(recorded_runs.alterations(tmp_path, [line], card={}))
    assert cautions(found) == "<p>The run recorded no warnings.</p>"
    assert notice(found) is None
