"""From what was typed to an exit code: slips are answered in a sentence, and nothing is written."""

from pathlib import Path

import pytest

from rehearsal_torch.cli.command_words import spoken
from rehearsal_torch.cli.main import interrupted, main, train

# Composing the configuration takes a good part of a second, dozens of times.
pytestmark = pytest.mark.slow
SLIPS = [
    (["seeed=1"], "there is no key 'seeed'. Did you mean seed?"),
    (["decision=gredy"], "there is no decision called 'gredy'. Did you mean greedy?"),
    (["-m", "seed=0,one"], "seed: expected a whole number, such as 0; got one"),
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


def test_a_refused_run_leaves_no_folder_that_nobody_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.yaml").write_text("data: none.csv\n")
    arguments = ["+experiment=own_problem", "path=problem.yaml"]
    assert main(train, arguments) == 2
    assert list(tmp_path.glob("runs/*/*")) == []
    assert main(train, [*arguments, "out=mine"]) == 2
    assert (tmp_path / "mine/status.json").exists()


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
