"""The data card."""

from rehearsal_torch.reporting.page.data_card import data_card
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(tmp_path, **more):
    run = recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | more)
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{data_card(material(run))}</html>')


def test_long_values_are_cut(tmp_path):
    assert "x" * 300 + " ..." in shown(tmp_path, note="x" * 400).said
