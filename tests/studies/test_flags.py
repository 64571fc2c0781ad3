"""Flags of before version 0.2.0, as they stand in docs/results/*/run.json."""

import json
import shlex

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.studies.flags import translated
from rehearsal_torch.studies.request import read
from rehearsal_torch.studies.study import STUDIES
from rehearsal_torch.studies.study_files import study
from tests.places import ROOT


@pytest.mark.parametrize(
    ("name", "typed", "today"),
    [
        (
            "auf",
            "--stages table1 eta --seeds 0 1 --most 500 --set a.b=c trainer.max_epochs=5 --out x",
            ["stages=[table1,eta]", "seeds=[0,1]", "max_rows=500", "out=x", "a.b=c", "trainer.max_epochs=5"],
        ),
        (
            "cbo",
            "--settings 'dropwave lambda=1 sigma=0.1' --methods 'mcbo, kernel learnt'",
            ["worlds=['dropwave lambda=1 sigma=0.1']", "methods=['mcbo, kernel learnt']"],
        ),
        (
            "online",
            "--repeats 5 --taus .3 0.5 --methods qwz23 --agents ddpg",
            ["seeds=range(5)", "settings=[0.3,0.5]", "methods=[qwz23,ddpg]"],
        ),
        ("sepsis", "--limit-seconds=20 --grid-epochs 15", ["limit_seconds=20", "grid_epochs=15"]),
        ("auf", "stages=[eta] a.b=1", ["stages=[eta]", "a.b=1"]),
    ],
)
def test_flags_are_keys_of_today(name, typed, today):
    assert translated(name, shlex.split(typed)) == today


@pytest.mark.parametrize("name", STUDIES)
def test_every_command_that_made_committed_rows_can_be_typed(name):
    told = json.loads((ROOT / study(name).out / "run.json").read_text(encoding="utf-8"))
    assert told["commands"]
    for command in told["commands"]:
        _, script, *given = shlex.split(command)
        typed = [text for text in given if not text.startswith("study=")]
        assert script.startswith("scripts/reproduce")
        request = read(study(name), translated(name, typed))
        assert request.working
        assert not request.overrides
        assert ("--seeds" in typed) <= (request.seeds is not None)


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("auf", ["--stage", "eta"], "--stage: there is no such option. Did you mean stages?"),
        ("auf", ["--repeats", "3"], "--repeats: there is no such option"),
        ("cbo", ["--rounds", "--workers", "1"], "a value is missing"),
    ],
)
def test_a_flag_that_there_never_was_is_refused(name, typed, words):
    with pytest.raises(UserError) as error:
        translated(name, typed)
    assert words in str(error.value)
