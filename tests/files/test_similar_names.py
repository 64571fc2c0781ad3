"""Which files may be meant by a name that is not there."""

import pytest

from rehearsal_torch.files.similar_names import FILES, LOOKED, NAMED, checkpoint_in, near_files, suggestion


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("nofile.yaml", []),
        ("prblem.yaml", ["problem.yaml", "problem.csv"]),
        ("problem.yml", ["problem.csv", "problem.yaml"]),
        ("BIGG.yaml", ["big.yaml"]),
        ("cases.csv.gz", []),
    ],
)
def test_only_names_that_are_alike_are_near(tmp_path, name, near):
    """nofile.yaml was near big.yaml, by their ending."""
    for each in ("big.yaml", "problem.yaml", "problem.csv", "table.csv"):
        (tmp_path / each).touch()
    assert near_files(tmp_path / name) == near


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A working folder with the checkpoints of two models, the runs of two experiments, and other folders."""
    monkeypatch.chdir(tmp_path)
    for each in ("checkpoints/sepsis", "checkpoints/loan", "runs/own_table/1200/checkpoint"):
        kept(tmp_path / each)
    for each in ("docs", "sepsis_notes", "checkpoints/sepsys_old", "runs/own_table/1100/figures"):
        (tmp_path / each).mkdir(parents=True)
    (tmp_path / "runs/own_table/1100/config.yaml").write_text("name: own_table")
    return tmp_path


def kept(folder):
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text("")


def test_a_run_holds_one_and_half_of_one_is_none(desk):
    assert checkpoint_in("checkpoints/loan") == checkpoint_in(desk / "checkpoints/loan").relative_to(desk)
    assert checkpoint_in("runs/own_table/1200").name == "checkpoint"
    assert checkpoint_in("runs/own_table/1200/checkpoint").name == "checkpoint"
    for none in ("runs/own_table/1100", "docs", "nowhere", "checkpoints"):
        assert checkpoint_in(none) is None
    (desk / "checkpoints/loan/weights.safetensors").unlink()
    assert checkpoint_in("checkpoints/loan") is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        # The folder with the nearest name holds none.
        ("checkpoints/sepsys", "Did you mean checkpoints/sepsis?"),
        ("sepsis", "Did you mean checkpoints/sepsis?"),
        ("nowhere/Loan", "Did you mean checkpoints/loan?"),
        ("checkpoints", "Choose from checkpoints/sepsis, checkpoints/loan"),
        ("runs/own_table", "Choose from runs/own_table/1200"),
        ("runs/own_table/1100", "Did you mean runs/own_table/1200?"),
        ("checkpoints/loan/weights.safetensors", "Did you mean checkpoints/loan?"),
        ("xyz", "Choose from checkpoints/loan, checkpoints/sepsis, runs/own_table/1200"),
        ("docs", "Choose from checkpoints/loan, checkpoints/sepsis, runs/own_table/1200"),
    ],
)
def test_only_folders_with_a_checkpoint_are_named_the_nearest_first(desk, given, said):
    assert suggestion(given) == said


def test_of_many_a_few_are_named_and_the_others_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(NAMED + 3):
        kept(tmp_path / f"checkpoints/m{number}")
    said = suggestion("x")
    assert said.startswith("Choose from checkpoints/m0, checkpoints/m1, ")
    assert said.endswith(" and 3 more")
    assert said.count("checkpoints/") == NAMED


def test_no_more_folders_are_looked_at_than_is_bearable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(LOOKED):
        (tmp_path / f"checkpoints/a{number:03d}").mkdir(parents=True)
    kept(tmp_path / "checkpoints/b")
    assert suggestion("x") == ""
