"""Pictures inside the page."""

import base64
import struct

import pytest

from rehearsal_torch.reporting.narrow.png import SIGNATURE
from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.pictures import CAPTIONS, MOST, drawn, either, embedded, pictures
from rehearsal_torch.reporting.style import drawing, panels, save
from tests.toys import recorded_runs
from tests.toys.read_page import Page

TINY = SIGNATURE + struct.pack(">I4sII", 13, b"IHDR", 200, 50) + b"rest"


def shown(folder):
    return Page(f'<html lang="en"><h1>t</h1>{pictures(material(folder))}</html>')


@pytest.fixture
def folder(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    (run / "figures").mkdir()
    return run


def test_a_picture_is_inside_the_page_with_its_size_and_words(folder):
    (folder / "figures/overturning.png").write_bytes(TINY)
    page = shown(folder)
    assert page.faults == []
    ((_, image),) = (each for each in page.tags if each[0] == "img")
    assert base64.b64decode(image["src"].partition(",")[2]) == TINY
    assert (image["width"], image["height"], image["class"]) == ("200", "50", "wide")
    assert image["alt"] == " ".join([f"{CAPTIONS['overturning'][0]}.", CAPTIONS["overturning"][1]])
    assert CAPTIONS["overturning"][1] in page.said


def test_a_figure_of_panels_is_cut_into_them_and_its_legend_is_text(folder):
    with drawing():
        figure, [[one, other]] = panels(1, 2, width=4.0, height=2.0)
        for axes, name in ((one, "first <b>"), (other, "second")):
            axes.plot([0, 1], [0, 1], label="a & b")
            axes.set(title=name)
        figure.legend(*one.get_legend_handles_labels(), loc="outside lower center")
        figure.suptitle("both of them")
        save(figure, folder / "figures", "overturning")
    page = shown(folder)
    assert page.faults == []
    sign, *pieces = [each for name, each in page.tags if name == "img"]
    assert (sign["alt"], sign["role"]) == ("", "presentation")
    assert [each["alt"] for each in pieces] == ["first <b>", "second"]
    (group,) = [each for name, each in page.tags if each.get("class") == "panels"]
    assert group["aria-label"] == " ".join([f"{CAPTIONS['overturning'][0]}.", CAPTIONS["overturning"][1]])
    widths = [int(each["width"]) for each in pieces]
    inches = max(widths) / 150
    assert inches == pytest.approx(4.0, abs=0.1)
    assert group["style"] == f"--least: {80 * inches:.0f}px; --most: {130 * inches:.0f}px"
    assert "both of them a & b" in page.said
    assert (folder / "figures/overturning.svg").is_file()


def test_a_damaged_figure_of_panels_is_named(folder):
    with drawing():
        save(panels(1, 2)[0], folder / "figures", "overturning")
    path = folder / "figures/overturning.png"
    path.write_bytes(path.read_bytes()[:-200])
    assert "overturning.png cannot be shown: expected a whole PNG file; it is damaged." in shown(folder).said


@pytest.mark.parametrize(
    ("least", "sources", "size"),
    [(200, 0, ("200", "50")), (600, 1, ("200", "50")), (1000, 0, ("100", "25"))],
)
def test_of_two_forms_a_screen_gets_the_one_that_it_can_show(least, sources, size):
    found = Page(f'<html lang="en"><h1>t</h1>{either(TINY, TINY, "a graph", "x", least)}</html>')
    assert found.faults == []
    narrow = [each for name, each in found.tags if name == "source"]
    assert len(narrow) == sources
    assert all((each["media"], each["width"]) == ("(max-width: 640px)", "100") for each in narrow)
    ((_, image),) = (each for each in found.tags if each[0] == "img")
    assert (image["width"], image["height"]) == size


def test_known_figures_come_first_and_others_keep_their_name(folder):
    for name in ("zebra_crossing", "training_a", "overturning"):
        (folder / f"figures/{name}.png").write_bytes(TINY)
    alternatives = [found["alt"] for name, found in shown(folder).tags if name == "img"]
    assert [text.partition(".")[0] for text in alternatives] == [
        CAPTIONS["overturning"][0],
        "Training: a",
        "zebra crossing",
    ]


def test_what_is_no_picture_is_named_and_not_shown(folder):
    (folder / "figures/patient.png").write_bytes(b"<svg onload=alert(1)>")
    (folder / "figures/effort.png").mkdir()
    page = shown(folder)
    assert page.count("img") == 0
    assert "patient.png cannot be shown: expected a PNG file" in page.said
    assert "effort.png cannot be shown: Is a directory." in page.said


def test_only_so_many_figures_are_shown(folder):
    for number in range(MOST + 2):
        (folder / f"figures/x{number:02}.png").write_bytes(TINY)
    page = shown(folder)
    assert page.count("img") == MOST
    assert f"Further figures in the folder: x{MOST}.png, x{MOST + 1}.png." in page.said


@pytest.mark.slow
def test_equal_figures_are_equal_files():
    def made():
        with drawing():
            figure, [[axes]] = panels(width=2, height=1)
            axes.plot([0, 1], [0, 1])
            return drawn(figure)

    assert made() == made()
    assert embedded(made(), "a line", "x").count("<img") == 1
    with pytest.raises(ValueError, match="expected a PNG"):
        embedded(b"GIF89a", "a", "b")
