import matplotlib
import pytest

from rehearsal_torch.files import atomic_write
from rehearsal_torch.reporting.figure_style import COLOURS, MARKERS, drawing, panels, save


def test_settings_hold_within_the_block_alone():
    before = matplotlib.rcParams["svg.fonttype"], matplotlib.rcParams["legend.frameon"]
    with drawing():
        assert (matplotlib.rcParams["svg.fonttype"], matplotlib.rcParams["legend.frameon"]) == ("none", False)
    assert (matplotlib.rcParams["svg.fonttype"], matplotlib.rcParams["legend.frameon"]) == before


def test_a_figure_is_saved_to_the_same_bytes_every_time(tmp_path):
    def saved(name):
        with drawing():
            figure, [[axes]] = panels(width=2, height=2)
            axes.plot([0, 1], [1, 0])
            return [path.read_bytes() for path in save(figure, tmp_path / name, "figure")]

    assert saved("one") == saved("two")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["figure.png", "figure.svg"]


def test_fifty_lines_have_different_colours_or_markers():
    pairs = {(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]) for index in range(50)}
    assert len(pairs) == 50


def test_a_figure_that_finds_no_space_leaves_the_old_one(tmp_path, monkeypatch):
    with drawing():
        files = save(panels(1, 1)[0], tmp_path, "one")
        before = [file.read_bytes() for file in files]

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(atomic_write.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            save(panels(2, 1)[0], tmp_path, "one")
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == sorted(files)
