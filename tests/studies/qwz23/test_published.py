from rehearsal_torch.studies.qwz23.published import LONG, RECOMMENDED, TABLE1, TAU
from tests.places import ROOT


def test_worlds_that_are_printed_exist():
    assert set(TABLE1) <= {path.stem for path in (ROOT / "conf/dataset").glob("*.yaml")}
    assert {world for world, _ in LONG} <= set(TABLE1)


def test_rehearsal_keeps_its_promise_to_within_its_noise_and_agents_do_not():
    for line in TABLE1.values():
        agents = [value for name, value in line.items() if name != "qwz23"]
        assert line["qwz23"] > float(TAU) - 0.05
        assert max(agents) < line["qwz23"] / 2
    assert LONG["bermuda", "ddpg"] > TABLE1["bermuda"]["ddpg"]
    assert 0 < RECOMMENDED < 1
