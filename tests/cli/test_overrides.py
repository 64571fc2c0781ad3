"""Overrides against the configuration that they are for."""

from itertools import pairwise

import pytest

from rehearsal_torch.cli.overrides import composed, deferred
from rehearsal_torch.user_error import UserError


def test_jobs_are_numbered_as_hydra_numbers_them():
    config, jobs = composed(
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
    composed([*extra, override], multirun=False)


def test_weights_that_are_typed_take_the_place_of_the_default():
    config, _ = composed(["reward=linear", "objective.reward.weights={paO2: 1, GCS: 0.5}"], multirun=False)
    assert dict(config.objective.reward.weights) == {"paO2": 1, "GCS": 0.5}


def test_options_may_be_typed_in_quotes():
    config, _ = composed(["decision='greedy'", 'trainer="gpu"'], multirun=False)
    assert config.search._target_.endswith(".GreedyChanges")
    assert config.trainer.accelerator == "gpu"


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
    composed(typed, multirun=True)
    assert deferred(typed) == [*typed[:-1], "surrogate.draws=choice(16)"]
    alone = ["+experiment=auf", "decision=micns", "seed=0,1", "surrogate.draws=16"]
    assert deferred(alone) == alone


def test_what_was_composed_once_is_copied():
    first, _ = composed(["+experiment=auf", "seed=3"], multirun=False)
    first.seed = 99
    second, _ = composed(["+experiment=auf", "seed=3"], multirun=False)
    assert (second.seed, second.name) == (3, "auf")


def test_a_folder_of_ones_own_is_read_every_time(tmp_path):
    file = tmp_path / "experiment" / "mine.yaml"
    file.parent.mkdir()
    names = []
    for name in ("one", "other"):
        file.write_text(f"# @package _global_\nname: {name}\n")
        names.append(composed(["+experiment=mine"], False, str(tmp_path))[0].name)
    assert names == ["one", "other"]


def of(*typed):
    return composed(typed, multirun=any("," in text for text in typed))[0]


@pytest.mark.slow
def test_what_something_takes_is_added():
    config = of("+dataset.limit=3", "++trainer.callbacks.mine=1", "++name=other", "+hydra.launcher.x=1")
    assert (config.dataset.limit, config.trainer.callbacks.mine, config.name) == (3, 1, "other")
    read = of(
        "+n=3", "+size.of=4", "+dataset.limit=${n}", "name=run_${size.of}", "+dask.a=1", "dask.address=${.a}"
    )
    assert (read.dataset.limit, read.name, read.dask.address) == (3, "run_4", 1)
    assert of("+surrogate._convert_=all").surrogate._convert_ == "all"
    weighed = of("+experiment=auf", "decision=micns", "+objective.weights={a: 2}", "+objective.weights.b=1")
    assert weighed.objective.weights == {"a": 2, "b": 1}
    own = of("dataset=bank", "decision=care", "++surrogate.draws=3", "++surrogate.seed=4")
    assert (own.surrogate.draws, own.surrogate.seed) == (3, 4)


@pytest.mark.slow
def test_where_modules_are_trusted_no_other_is_imported():
    typed = ["++certificate._target_=tests.cli.no_such_module.Mine", "+certificate.foo=1"]
    assert of(*typed, "trusted=[]").certificate.foo == 1
    with pytest.raises(UserError, match="CredibleBound takes no 'foo'"):
        of(
            "++certificate._target_=rehearsal_torch.certificate.CredibleBound",
            "+certificate.foo=1",
            "trusted=[]",
        )
