"""Sentences that cases share."""

from rehearsal_torch.reporting.page.grouped import name_of


def test_a_case_has_its_identity_or_its_number_as_name():
    assert name_of({"identity": "ann", "index": 3}) == "ann"
    assert name_of({"index": 3}) == "3"
    assert name_of({"identity": "", "index": 0}) == "0"
