from rehearsal_torch.studies.cbo.published import ROUNDS, TABLES
from rehearsal_torch.studies.cbo.study import SETTINGS
from tests.places import ROOT


def test_every_method_that_is_printed_can_be_run_in_a_setting_of_the_study():
    names = {path.stem for path in (ROOT / "conf/decision").glob("*.yaml")}
    assert {method for line in TABLES.values() for method in line} <= names
    assert {name.split()[0] for name in TABLES} <= {name.split()[0] for name in SETTINGS}


def test_there_is_a_mean_that_never_falls_and_a_deviation_for_each_round():
    for line in TABLES.values():
        for method, values in line.items():
            means = [mean for mean, _ in values]
            assert len(values) == len(ROUNDS), method
            assert means == sorted(means), "the best so far"
            assert all(std > 0 for _, std in values)
    assert TABLES["dropwave unit"]["excbo"][-1] == (0.89, 0.02)
