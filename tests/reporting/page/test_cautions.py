"""All warnings."""

from rehearsal_torch.reporting.page.cautions import cautions, notice, of_the_run
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs


def test_a_checkpoint_that_has_seen_the_rows_is_told(tmp_path):
    record = recorded_runs.RECORD | {"held_out_seen": True}
    run = recorded_runs.alterations(tmp_path, record=record, config={"checkpoint": "there"})
    assert any("in the fit of the checkpoint" in each for each in of_the_run(material(run)))


def test_no_warnings_are_told(tmp_path):
    line = recorded_runs.recommended() | {"findings": []}
    found = material(recorded_runs.alterations(tmp_path, [line], card={}))
    assert cautions(found) == "<p>The run recorded no warnings.</p>"
    assert notice(found) is None
