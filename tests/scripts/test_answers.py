"""Slips of the fingers: answered at once, in a sentence."""

import subprocess
import sys

import pytest

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.verbs.decide import decide
from rehearsal_torch.cli.verbs.train import train
from tests.scripts.typing_in import TOY, surroundings, typed

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
    (["+experiment=mimic"], "path: this data set is read from a file, which must be named. Add path=FILE"),
    (["resume=nowhere"], "expected the folder of a run that has begun"),
    (["-m", "seed=0,one"], "seed: expected a whole number, such as 0; got one"),
    (["--config-dir", "nowhere"], "there is no such folder"),
    (
        [],
        "nothing says what data this is for. Type, for example, python scripts/train.py +experiment=sepsis "
        "(experiments: auf, bermuda_online, cbo",
    ),
    (["decision=greedy", "seed=3"], "nothing says what data this is for"),
    (["-m", "seed=0,1"], "nothing says what data this is for"),
    (["trusted=[my-lab]"], "trusted: expected the names of modules, such as trusted=[my_lab]"),
]


@pytest.mark.parametrize(("arguments", "words"), SLIPS, ids=[" ".join(arguments) for arguments, _ in SLIPS])
def test_a_slip_is_answered_in_a_sentence(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(train, arguments) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing was written"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["checkpoint=nowhere"], "this folder holds no checkpoint"),
        (["shards=2"], "each shard would fit a surrogate of its own"),
        (
            [],
            "+experiment=own_table path=table.csv dataset.task=task.yaml; or your own experiments: python "
            "scripts/decide.py +experiment=own_system",
        ),
        (
            ["seed=1"],
            "or with what a training learnt: python scripts/decide.py +experiment=sepsis checkpoint=FOLDER",
        ),
    ],
)
def test_decide_asks_for_what_it_needs(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(decide, arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["seeed=1"],
        ["+experiment=sepsiss"],
        ["trainer.max_epochs=abc"],
        ["-m", "seed=0,1", "decision=astar,gredy"],
    ],
)
def test_slips_are_answered_at_once(tmp_path, arguments):
    # Processor time: what the machine does besides must not decide the test.
    answer = typed(tmp_path, "train", *arguments)
    assert (answer.code, len(answer.err.strip().splitlines())) == (2, 1), answer.err
    assert answer.processor < 2


@pytest.mark.parametrize("script", ["train", "decide", "cross_validate", "collect"])
def test_help_is_quick(tmp_path, script):
    answer = typed(tmp_path, script, "--help")
    assert answer.code == 0, answer.err
    assert f"python scripts/{script}.py" in answer.out
    assert answer.processor < 2


def test_checking_needs_no_torch(tmp_path):
    code = (
        "import sys\nfrom rehearsal_torch.cli.main import main\nfrom rehearsal_torch.cli.verbs.train import "
        "train\n"
    )
    code += (
        "assert main(train, ['seeed=1']) == main(train, []) == 2\nprint(sorted({'torch', 'lightning', "
        "'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_wrong_value_that_only_its_class_knows_is_a_sentence_too(tmp_path):
    answer = typed(tmp_path, "train", *TOY, "dataset.broken=true", "out=run")
    assert answer.code == 2
    assert answer.err.strip() == "dataset: expected a ward that is not broken; got broken=true: repair it."
    assert '"failed"' in (tmp_path / "run/status.json").read_text()


def test_the_traceback_is_there_for_those_who_ask(tmp_path):
    answer = typed(tmp_path, "train", "seeed=1", HYDRA_FULL_ERROR="1")
    assert answer.code == 1
    assert "Traceback" in answer.err
