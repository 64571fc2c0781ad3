"""Folders of saved models are written as a whole, and replace nothing else."""

import pytest

from rehearsal_torch.checkpoint import FILES, CheckpointError, written


def files(*names):
    def write(beside):
        beside.mkdir()
        for name in names:
            (beside / name).write_text(name)

    return write


def test_an_earlier_model_is_replaced_as_a_whole(tmp_path):
    place = written(tmp_path / "model", files(*FILES))
    assert {each.name for each in written(place, files("card.yaml")).iterdir()} == {"card.yaml"}
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("names", [["notes.txt"], ["card.yaml", "notes.txt"], ["README.md"]])
def test_what_is_no_model_stays(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(
        CheckpointError, match=r"is not part of a saved model, and saving replaces the folder"
    ):
        written(tmp_path, files("card.yaml"))
    assert {each.name for each in tmp_path.iterdir()} == set(names)


def test_a_failure_leaves_the_earlier_model(tmp_path):
    place = written(tmp_path / "model", files("card.yaml"))

    def failing(beside):
        files("card.yaml", "config.yaml")(beside)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        written(place, failing)
    assert [each.name for each in place.iterdir()] == ["card.yaml"]
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
