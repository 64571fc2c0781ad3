"""From what was typed to an exit code: slips are answered in a sentence, and nothing is written."""

from pathlib import Path

import pytest

from rehearsal_torch.cli.main import interrupted, main
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.cli.verbs.decide import decide
from rehearsal_torch.cli.verbs.train import train

# Composing the configuration takes a good part of a second, dozens of times.
pytestmark = pytest.mark.slow
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
    (["surrogate.member.varying=SOFA"], "surrogate.member.varying: expected a list"),
    (["seed=0,1"], "Add -m for a sweep"),
    (["seed=[1"], "cannot read 'seed=[1'"),
    (["seed"], "Write seed=VALUE"),
    (["seed=-1"], "seed: expected a whole number of at least 0; got -1"),
    (["shard=2", "shards=2"], "shard: expected shards 0 to 1; got 2"),
    (["path=nowhere.csv"], "path=nowhere.csv: there is no such file or folder"),
    (["+experiment=mimic"], "path: this data set is read from a file, which must be given. Add path=FILE"),
    (["resume=nowhere"], "expected the folder of a run; it holds none"),
    (["-m", "seed=0,one"], "seed: expected a whole number, such as 0; got one"),
    (["--config-dir", "nowhere"], "there is no such folder"),
    (
        [],
        "no data are given. Type, for example, python scripts/train.py +experiment=sepsis "
        "(experiments: auf, bermuda_online, cbo",
    ),
    (["decision=greedy", "seed=3"], "no data are given"),
    (["-m", "seed=0,1"], "no data are given"),
    (["+foo=1"], "there is no key 'foo', and nothing would read it. See --help for all keys"),
    (
        ["+experiment=sepsis", "+objective.nonsense=1"],
        "CounterfactualReturn takes no 'nonsense'. Choose from",
    ),
    (["--cfg", "job", "seeed=1"], "there is no key 'seeed'. Did you mean seed?"),
    (["--cfg", "job", "+experiment=sepsiss"], "there is no experiment called 'sepsiss'"),
    (["--help", "+foo=1"], "there is no key 'foo', and nothing would read it"),
    (["-m", "--cfg", "job", "seed=0,1"], "--multirun: a sweep has no single configuration to show"),
    (["trusted=[my-lab]"], "trusted: expected the names of modules, such as trusted=[my_lab]"),
]


@pytest.mark.parametrize(("arguments", "words"), SLIPS, ids=[" ".join(arguments) for arguments, _ in SLIPS])
def test_a_slip_is_answered_in_a_sentence(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(train, arguments) == 2
    as_user_error = capsys.readouterr()
    assert words in as_user_error.err
    assert as_user_error.out == ""
    assert len(as_user_error.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing was written"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["checkpoint=nowhere"], "there is no such folder"),
        (["shards=2"], "each shard would fit its own surrogate"),
        (
            [],
            "path=problem.yaml; or your own experiments: python scripts/decide.py +experiment=own_system",
        ),
        (
            ["seed=1"],
            "or with a trained surrogate: python scripts/decide.py +experiment=sepsis checkpoint=FOLDER",
        ),
    ],
)
def test_decide_asks_for_what_it_needs(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(decide, arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "record", "words"),
    [
        (["path=p.yaml", "seed=1"], "run.json", "to continue, type {} 'resume=runs/a b/2026-01-02'"),
        (
            ["-m", "seed=1,2", "hydra/launcher=joblib"],
            "sweep.json",
            "{} 'resume=runs/a b/2026-01-02' hydra/launcher=joblib",
        ),
        (
            ["--config-dir", "own", "trusted=mine"],
            "run.json",
            "{} --config-dir own 'resume=runs/a b/2026-01-02' trusted",
        ),
        (["path=p.yaml"], "other.json", "run the same command again."),
    ],
)
def test_the_command_that_continues_is_told(tmp_path, monkeypatch, typed, record, words):
    """It read resume=FOLDER, also where the command had chosen the folder."""
    monkeypatch.chdir(tmp_path)
    folder = Path("runs/a b/2026-01-02")
    folder.mkdir(parents=True)
    (folder / record).write_text("{}")
    assert words.format(spoken("decide")) in interrupted("decide", typed, [folder])
    assert interrupted("decide", typed, []) == "Interrupted; run the same command again."
