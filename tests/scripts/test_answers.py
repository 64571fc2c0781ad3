"""Slips of the fingers: answered at once, in a sentence."""

import pytest

from tests.scripts.typing_in import TOY, typed

SLIPS = [
    (["seeed=1"], "there is no key 'seeed'. Did you mean seed?"),
    (["trainer.max_epoch=1"], "Did you mean trainer.max_epochs"),
    (["max_epochs=1"], "Did you mean trainer.max_epochs?"),
    (["decision=gredy"], "there is no decision called 'gredy'. Did you mean greedy?"),
    (["+experiment=sepsiss"], "there is no experiment called 'sepsiss'. Did you mean sepsis?"),
    (["experiment=sepsis"], "Write +experiment=sepsis"),
    (["+decision=greedy"], "Leave the plus out: decision=greedy"),
    (["hydra/launcher=jobli"], "Did you mean joblib?"),
    (["trainer.max_epochs=abc"], "trainer.max_epochs: expected a whole number, such as 100; got abc"),
    (["trainer.max_epochs=1.5"], "expected a whole number"),
    (["trainer.learning_rate=fast"], "trainer.learning_rate: expected a number"),
    (["truth=perhaps"], "truth: expected true or false"),
    (["surrogate.varying=SOFA"], "surrogate.varying: expected a list"),
    (["seed=0,1"], "Add -m for a sweep"),
    (["seed=[1"], "cannot read 'seed=[1'"),
    (["seed"], "Write seed=VALUE"),
    (["seed=-1"], "seed: expected a whole number of at least 0; got -1"),
    (["shard=2", "shards=2"], "shard: expected shards 0 to 1; got 2"),
    (["path=nowhere.csv"], "path=nowhere.csv: there is no such file or folder"),
    (["+experiment=mimic"], "path must be given. Add path=..."),
    (["resume=nowhere"], "expected the folder of a run that has begun"),
    (["-m", "seed=0,one"], "seed: expected a whole number, such as 0; got one"),
    (["--config-dir", "nowhere"], "there is no such folder"),
]


@pytest.mark.parametrize(("arguments", "words"), SLIPS, ids=[" ".join(arguments) for arguments, _ in SLIPS])
def test_a_slip_is_answered_in_a_sentence(tmp_path, arguments, words):
    answer = typed(tmp_path, "train", *arguments)
    assert words in answer.err
    assert answer.code == 2
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert answer.seconds < 2
    assert list(tmp_path.iterdir()) == [], "nothing was written"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["checkpoint=nowhere"], "this folder holds no checkpoint"),
        (["shards=2"], "each shard would fit a surrogate of its own"),
    ],
)
def test_decide_asks_for_what_it_needs(tmp_path, arguments, words):
    answer = typed(tmp_path, "decide", *arguments)
    assert (answer.code, words in answer.err, answer.seconds < 2) == (2, True, True), answer.err


@pytest.mark.parametrize("script", ["train", "decide", "collect"])
def test_help_is_quick(tmp_path, script):
    answer = typed(tmp_path, script, "--help")
    assert answer.code == 0, answer.err
    assert f"python scripts/{script}.py" in answer.out
    assert answer.seconds < 2


def test_a_wrong_value_that_only_its_class_knows_is_a_sentence_too(tmp_path):
    answer = typed(tmp_path, "train", *TOY, "dataset.broken=true", "out=run")
    assert answer.code == 2
    assert answer.err.strip() == "dataset: expected a ward that is not broken; got broken=true: repair it."
    assert '"failed"' in (tmp_path / "run/status.json").read_text()


def test_the_traceback_is_there_for_those_who_ask(tmp_path):
    answer = typed(tmp_path, "train", "seeed=1", HYDRA_FULL_ERROR="1")
    assert answer.code == 1
    assert "Traceback" in answer.err
