"""Overrides against the configuration that they are for."""

from itertools import pairwise

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.main import CONF
from rehearsal_torch.cli.overrides import composed, deferred


def test_jobs_are_numbered_as_hydra_numbers_them():
    config, jobs = composed(
        CONF,
        [
            "+experiment=sepsis",
            "seed=0,1",
            "decision=astar,greedy",
            "'shard=range(2)'".strip("'"),
            "shards=2",
        ],
        multirun=True,
    )
    assert config.name == "sepsis"
    assert len(jobs) == 8
    assert [job[1:4] for job in jobs[:3]] == [
        ["seed=0", "decision=astar", "shard=0"],
        ["seed=0", "decision=astar", "shard=1"],
        ["seed=0", "decision=greedy", "shard=0"],
    ]
    assert all(first != second for first, second in pairwise(jobs))


@pytest.mark.slow
@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "trainer.patience=null",
        "trainer.learning_rate=1",
        "+trainer.callbacks.mine=1",
        "++name=other",
        "~trainer.batch_size",
        "out='a folder, with commas'",
        "surrogate.member.mechanism.location_constant=null",
        "objective.reward.without_doses=false",
        "surrogate.member.logarithms=[Creatinine]",
        "hydra.launcher.n_jobs=2",
        "name=12",
    ],
)
def test_what_is_right_passes(override):
    extra = ["hydra/launcher=joblib"] if override.startswith("hydra.launcher") else []
    composed(CONF, [*extra, override], multirun=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("trainer.clip=strong,weak", "names several values"),
        ("objective.changes=true", "expected a whole number, such as 3; got true"),
        ("truth=0", "expected true or false"),
        ("objective.reward=1", "expected a mapping"),
        ("name=[a]", "expected a string"),
        ("hydra.nothing.here=1", "there is no key 'hydra.nothing.here'"),
        ("~trainr", "there is no key 'trainr'"),
        (
            "search.time_limit_s=5",
            "is called search.budget_s now. Write search.budget_s=VALUE",
        ),
        ("search=choice(astar, nothing)", "names several values"),
        (
            ["dataset=dropwave", "dataset.sigma=0.2"],
            "dataset.sigma is called dataset.noise.sigma now. Write dataset.noise.sigma=VALUE",
        ),
        (["dataset=bank", "dataset.rows=100"], "dataset.rows is called dataset.size.rows now"),
        (["dataset=bank", "dataset.noise=std"], "dataset.noise is called dataset.reading now"),
        (["dataset=dropwave", "dataset.noise.mean=[0,1]"], "there is no key 'dataset.noise.mean'"),
        (["dataset=dropwave", "dataset.noise=0.2"], "dataset.noise: expected a mapping, such as"),
        ("hydra.run.dir=elsewhere", "do not look into. Write out=FOLDER"),
        ("hydra.sweep.dir=elsewhere", "do not look into. Write out=FOLDER"),
        (["dataset=table", "dataset.size.rows=5"], "there is no key 'dataset.size.rows'"),
    ],
)
def test_what_is_wrong_is_said(override, words):
    with pytest.raises(UserError) as as_user_error:
        composed(CONF, [override] if isinstance(override, str) else override, multirun=False)
    assert words in str(as_user_error.value)


def test_weights_that_are_typed_take_the_place_of_the_default():
    config, _ = composed(
        CONF, ["reward=linear", "objective.reward.weights={paO2: 1, GCS: 0.5}"], multirun=False
    )
    assert dict(config.objective.reward.weights) == {"paO2": 1, "GCS": 0.5}


def test_options_may_be_typed_in_quotes():
    config, _ = composed(CONF, ["decision='greedy'", 'trainer="gpu"'], multirun=False)
    assert config.search._target_.endswith(".GreedyChanges")
    assert config.trainer.accelerator == "gpu"


def test_each_swept_value_is_checked():
    with pytest.raises(UserError, match=r"objective\.changes: expected a whole number, such as 3; got many"):
        composed(CONF, ["objective.changes=1,2,many"], multirun=True)
    with pytest.raises(UserError, match="no decision called 'b'"):
        composed(CONF, ["decision=astar,b"], multirun=True)
    with pytest.raises(UserError, match="cannot sweep over"):
        composed(CONF, ["seed=interval(0,3)"], multirun=True)


def test_a_key_that_one_of_the_swept_groups_lacks_is_said():
    # `chunk` belongs to the exhaustive search alone.
    words = r"no key 'search\.chunk' under decision=greedy\. Leave decision=greedy out"
    with pytest.raises(UserError, match=words):
        composed(CONF, ["decision=exhaustive,greedy", "search.chunk=4"], multirun=True)


@pytest.mark.slow
def test_keys_that_only_swept_choices_have_are_handed_over_as_sweeps_of_one_value():
    # Without the swept decision, the configuration has a transition model, which has no draws.
    typed = [
        "dataset=bank",
        "decision=none,micns",
        "limit=1",
        "+trainer.callbacks.mine=1",
        "surrogate.draws=16",
    ]
    composed(CONF, typed, multirun=True)
    assert deferred(CONF, typed) == [*typed[:-1], "surrogate.draws=choice(16)"]
    alone = ["+experiment=auf", "decision=micns", "seed=0,1", "surrogate.draws=16"]
    assert deferred(CONF, alone) == alone


def test_a_key_that_only_swept_choices_have_is_not_deleted():
    with pytest.raises(UserError, match=r"~surrogate\.draws deletes a key that exists only under swept"):
        deferred(CONF, ["dataset=bank", "decision=none,micns", "~surrogate.draws"])


def test_what_was_composed_once_is_copied():
    first, _ = composed(CONF, ["+experiment=auf", "seed=3"], multirun=False)
    first.seed = 99
    second, _ = composed(CONF, ["+experiment=auf", "seed=3"], multirun=False)
    assert (second.seed, second.name) == (3, "auf")


def test_a_folder_of_ones_own_is_read_every_time(tmp_path):
    file = tmp_path / "experiment" / "mine.yaml"
    file.parent.mkdir()
    names = []
    for name in ("one", "other"):
        file.write_text(f"# @package _global_\nname: {name}\n")
        names.append(composed(CONF, ["+experiment=mine"], False, str(tmp_path))[0].name)
    assert names == ["one", "other"]
