"""What the configuration's own keys allow."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.validation import CONF, check


def checked(*typed, script="train", multirun=False):
    config, jobs = composed(CONF, list(typed), multirun)
    check(config, script, jobs, list(typed))


def refused(*typed, **more):
    with pytest.raises(UserError) as as_user_error:
        checked(*typed, **more)
    return str(as_user_error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("seed=-1", "seed: expected a whole number of at least 0; got -1"),
        ("limit=0", "limit: expected a whole number of at least 1, or null; got 0"),
        ("workers=0", "workers: expected a whole number of at least 1, or null; got 0"),
        ("preview=0", "preview: expected a whole number of at least 1; got 0"),
        ("objective.changes=-1", "objective.changes: expected a whole number of at least 0; got -1"),
        ("folds=1", "folds: expected a whole number of at least 2; got 1"),
        ("shards=0", "shards: expected a whole number of at least 1; got 0"),
        ("split=tset", "split: expected train, validation or test; got tset. Did you mean test?"),
        ("parallel=dusk", "parallel: expected local or dask; got dusk. Did you mean dask?"),
        (
            "dask.address=tcp://a:1",
            "dask.address=tcp://a:1: an address is given, and no cluster is asked for",
        ),
        ("by=patients", "by: expected patient or transition; got patients. Choose by=patient"),
        ("shard=1", "shard: expected shards 0 to 0; got 1. Give shards=2, or another shard"),
    ],
)
def test_numbers_and_names_out_of_range_are_refused(typed, said):
    assert said in refused("+experiment=sepsis", typed)


@pytest.mark.slow
def test_a_cluster_needs_something_to_share_and_an_address():
    checked("+experiment=sepsis", "parallel=dask")
    checked("+experiment=sepsis", "parallel=dask", script="cross_validate")
    said = refused("+experiment=sepsis", "parallel=dask", "learn=true", script="train")
    assert said.startswith("parallel=dask: ")
    assert "so that a cluster has nothing to share. Leave it out." in said
    said = refused("+experiment=sepsis", "parallel=dask", "dask.address=head:8786")
    assert "dask.address=head:8786: expected the address of a scheduler, such as tcp://10.0.0.5:8786" in said


@pytest.mark.slow
def test_every_shard_of_a_sweep_is_looked_at():
    checked("+experiment=sepsis", "shard=range(3)", "shards=3", multirun=True)
    said = refused("+experiment=sepsis", "shard=range(4)", "shards=3", multirun=True)
    assert "shard: expected shards 0 to 2; got 3" in said


@pytest.mark.slow
def test_something_must_say_what_the_data_are():
    for typed in ("+experiment=sepsis", "dataset=bank", "dataset.patients=20"):
        checked(typed)
    said = refused("seed=1")
    assert "Type, for example, python scripts/train.py +experiment=sepsis (experiments: auf" in said
    assert "path=table.csv" not in said, "tables of one's own are decided for, not trained on"
    assert "+experiment=own_table path=table.csv" in refused("seed=1", script="decide")
    assert "or your own problem file: python scripts/decide.py path=problem.yaml" in refused(
        "seed=1", script="decide"
    )


@pytest.mark.slow
def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path):
    (tmp_path / "table.csv").write_text("")
    checked("+experiment=own_table", f"path={tmp_path}/table.csv", script="decide")
    said = refused("+experiment=own_table", f"path={tmp_path}/tabel.csv", script="decide")
    assert said.endswith("there is no such file or folder. Did you mean table.csv?")
    said = refused("+experiment=own_table", f"path={tmp_path}/nothing.csv", script="decide")
    assert said.endswith("there is no such file or folder. Choose from table.csv."), "no name is like it"
    assert "this data set is read from a file" in refused("+experiment=own_table", script="decide")


@pytest.mark.slow
def test_a_checkpoint_is_for_deciding_and_brings_its_own_surrogate(tmp_path):
    (tmp_path / "run/checkpoint").mkdir(parents=True)
    given = ["+experiment=sepsis", f"checkpoint={tmp_path / 'run'}"]
    assert "this folder holds no checkpoint" in refused(*given, script="decide")
    near = refused("+experiment=sepsis", f"checkpoint={tmp_path / 'runn'}", script="decide")
    assert "there is no such folder" in near
    assert str(tmp_path / "run") not in near.replace(str(tmp_path / "runn"), ""), "it holds none either"
    assert "Use python scripts/decide.py, or leave checkpoint= out" in refused(*given)
    assert "Train first, then give checkpoint=FOLDER" in refused(
        "+experiment=sepsis", "shards=2", script="decide"
    )
    for name in ("config.yaml", "weights.safetensors", "card.yaml"):
        (tmp_path / "run/checkpoint" / name).write_text("name: run")
    near = refused("+experiment=sepsis", f"checkpoint={tmp_path / 'runn'}", script="decide")
    assert near.endswith(f"Did you mean {tmp_path / 'run'}?")
    checked(*given, script="decide")
    said = refused(*given, "surrogate.count=3", script="decide")
    assert "a checkpoint brings its own surrogate, so surrogate.count=3 would change nothing" in said


def test_where_no_folder_holds_a_checkpoint_the_command_that_trains_one_is_that_of_the_experiment(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    said = refused("+experiment=auf", "checkpoint=bank", script="decide")
    assert said.endswith(
        "checkpoint=bank: there is no such folder. Train one: python scripts/train.py +experiment=auf."
    )


@pytest.mark.slow
def test_cross_fitted_claims_need_fits_of_their_own(tmp_path):
    decide = {"script": "decide"}
    words = refused("+experiment=auf", "claims=cross_fited", **decide)
    assert "claims: expected in_sample or cross_fitted; got cross_fited" in words
    assert "Did you mean cross_fitted" in words
    words = refused("+experiment=auf", "claims=cross_fitted", "learn=true", **decide)
    assert "claims=cross_fitted: an online run fits again after each round" in words
    (tmp_path / "config.yaml").write_text("_target_: x\n")
    (tmp_path / "weights.safetensors").write_text("")
    words = refused("+experiment=auf", "claims=cross_fitted", f"checkpoint={tmp_path}", **decide)
    assert "a checkpoint holds one fit" in words
    checked("+experiment=auf", "claims=cross_fitted", **decide)


@pytest.mark.slow
def test_auto_compares_methods_with_their_own_settings_and_rows(tmp_path):
    auto = ("dataset=bank", "decision=auto")
    checked(*auto, "choose.cases=5", script="decide")
    words = refused(*auto, "objective.indicator.caution=0", script="decide")
    assert words.startswith("decision=auto: methods are compared with their own settings, so that objective.")
    assert "decision=auto: methods are compared on the rows" in refused(*auto, "learn=true", script="decide")
    (tmp_path / "config.yaml").write_text("surrogate: {}\n")
    given = f"checkpoint={tmp_path}"
    assert "Leave checkpoint= out, or name a method" in refused(*auto, given, script="decide")
