"""Reading what is asked of a study."""

from pathlib import Path

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.studies.request import FIGURES, help_of, read
from rehearsal_torch.studies.study import STUDIES
from rehearsal_torch.studies.study_files import study


def test_what_is_left_out_is_usual():
    found = read(study("auf"), [])
    assert found.stages == (*study("auf").stages, FIGURES)
    assert found.working == tuple(study("auf").stages)
    assert (found.names, found.seeds, found.overrides) == ({}, None, ())
    assert (found.workers, found.budget_minutes, found.out) == (2, None, Path("docs/results/auf"))
    assert found.shared() == {"contexts": 20}


def test_names_come_in_the_order_of_the_study_and_other_keys_are_overrides():
    typed = ["stages=[figures,eta,table1]", "methods=[care,none]", "worlds=bank", "seeds=[3,0]", "workers=1"]
    typed += ["budget_minutes=0", "out=a b/c", "trainer.max_epochs=5", "+surrogate.x=1", "trainer=gpu"]
    found = read(study("auf"), typed)
    assert found.stages == ("table1", "eta", "figures")
    assert found.names == {"methods": ("none", "care"), "worlds": ("bank",)}
    assert (found.seeds, found.workers, found.budget_minutes) == ((3, 0), 1, 0)
    assert found.out == Path("a b/c")
    assert found.overrides == ("trainer.max_epochs=5", "+surrogate.x=1", "trainer=gpu")


def test_seeds_may_be_a_range_and_numbers_name_settings():
    found = read(study("online"), ["seeds=range(3)", "settings=[.3,0.90]", "rounds=5"])
    assert found.seeds == (0, 1, 2)
    assert found.names["settings"] == ("0.3", "0.9")
    assert found.shared() == {"rounds": 5, "scenarios": 4000}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("auf", "stages=a,b", "several values need brackets. Write stages=[a,b]"),
        ("auf", "stagess=[eta]", "stagess: there is no such option. Did you mean stages?"),
        ("auf", "seed=1", "seed: there is no such option. Did you mean seeds?"),
        ("auf", "nonsense.a=1", "An override of every job looks like trainer.max_epochs=5"),
        ("auf", "methods=[]", "methods: expected some of none, cme"),
        ("auf", "settings=[1]", "settings: there is no such option"),
        ("auf", "contexts=0", "contexts: expected a whole number of at least 1; got 0"),
        ("auf", "contexts=many", "contexts: expected a whole number"),
        ("auf", "out=null", "out=null: expected a folder"),
        ("auf", "budget_minutes=-1", "budget_minutes: expected a number above 0"),
        ("auf", "seeds=[0.5]", "expected whole numbers of at least 0. Write seeds=[0,1]"),
        ("auf", "trainer.max_epochs=1,2", "names several values"),
        ("auf", "workers", "cannot read 'workers'"),
        ("sepsis", "limit_seconds=0", "limit_seconds: expected a number above 0; got 0"),
        ("sepsis", "worlds=[a]", "worlds: there is no such option"),
    ],
)
def test_a_slip_is_a_sentence(name, text, words):
    with pytest.raises(UserError) as error:
        read(study(name), [text])
    assert words in str(error.value)


def test_an_option_stands_once():
    with pytest.raises(UserError, match="workers: was given twice"):
        read(study("cbo"), ["workers=1", "workers=2"])


@pytest.mark.parametrize("name", STUDIES)
def test_the_help_shows_every_option(name):
    text = help_of(study(name))
    for key in ("stages=[...]", "workers=...", "out=...", *study(name).options, *study(name).stages):
        assert key in text
    assert str(study(name).out) in text
    assert study(name).example in text
