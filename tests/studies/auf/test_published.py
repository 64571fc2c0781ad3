from rehearsal_torch.studies.auf.published import TABLE1, TABLE2, TABLE3, TABLE4
from tests.places import ROOT


def test_every_method_that_is_printed_can_be_run():
    names = {path.stem for path in (ROOT / "conf/decision").glob("*.yaml")}
    printed = {method for line in TABLE1.values() for method in line} | {method for method, _ in TABLE2}
    assert printed <= names


def test_probabilities_and_seconds_are_what_they_can_be():
    for line in TABLE1.values():
        assert all(0 < mean < 1 and 0 < std < 0.5 for mean, std in line.values())
        assert line["cme"][0] > line["none"][0]
    assert all(seconds > 0 and 0 < probability < 1 for seconds, probability in TABLE2.values())
    assert TABLE1["bermuda"]["care"] == (0.706, 0.065)


def test_tables_agree_where_they_meet():
    assert [len(line) for line in TABLE4] == [5] * 5
    # eta = 10 with both factors 1.
    assert TABLE4[2][2] == TABLE3["eta=10"] == max(TABLE3.values())
