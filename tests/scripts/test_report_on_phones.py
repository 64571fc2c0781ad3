"""The reports of the three questions in a browser, at the width of a phone and of a desktop.

The runs are those of docs/start.md, the episodes fewer. Texts of pictures have at least ten points; how large
they are on the screen follows from the width at which a picture is shown, since its own is 96 dots per inch.
A wide picture scrolls in a box of its own.
"""

import shutil
from contextlib import chdir
from functools import cache

import pytest

from rehearsal_torch.console_command import main, run
from tests.places import ROOT
from tests.scripts.browsing import WIDTHS, chromium, needs_browser, opened_page

# Pixels of ten points, at the least.
LEAST = 7.0
QUICK = ["trainer.progress=false", "limit=3"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Makes the page of the run for a question, once."""
    folder = tmp_path_factory.mktemp("reports")

    @cache
    def made(name):
        if name == "machines":
            with chdir(folder):
                assert run("prepare", ["machines", "out=machines", "machines=120", "seed=1"]) == 0
        else:
            shutil.copytree(ROOT / "examples" / name, folder / name)
        with chdir(folder / name):
            quick = QUICK if name == "machines" else []
            assert main(["decide", "problem.yaml", "workers=1", "out=run", *quick]) == 0
        return (folder / name / "run/report.html").as_uri()

    return made


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def pictures(page, section):
    """The pictures of a section, without signs of legends: what they show, and how they are shown."""
    return page.evaluate(
        """(section) => [...document.querySelectorAll(`#${section} img:not([role])`)].map((image) => {
            const own = image.getBoundingClientRect();
            const box = (image.closest(".scroll") ?? image).getBoundingClientRect();
            return {alt: image.alt, left: box.left, right: box.right, wide: own.width,
                    dots: image.naturalWidth};
        })""",
        section,
    )


def letters(picture):
    """The height of ten points of a picture, in pixels of the screen."""
    return 10 / 72 * 96 * picture["wide"] / picture["dots"]


@pytest.mark.bench
@needs_browser
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("name", ["patients", "plant", "machines"])
def test_a_report_can_be_read_without_zooming_and_without_scrolling_sideways(report, browser, name, width):
    with opened_page(browser, report(name), width) as page:
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        shown = pictures(page, "answer") + pictures(page, "cases")
        graphs = [] if name == "machines" else pictures(page, "assumptions")
        beyond = page.evaluate(
            """(width) => [...document.querySelectorAll('body *')].filter((one) =>
                !one.closest('.scroll, pre') && one.getBoundingClientRect().right > width + 1
            ).map((one) => one.outerHTML.slice(0, 80))""",
            width,
        )
    assert beyond == []
    assert shown
    assert all(each["alt"] and each["dots"] for each in shown + graphs)
    assert all(0 <= each["left"] < each["right"] <= width for each in shown + graphs)
    assert len(graphs) == (name != "machines")
    small = {each["alt"]: letters(each) for each in shown + graphs if letters(each) < LEAST}
    assert small == {}


@needs_browser
def test_on_paper_nothing_is_cut_off(report, browser):
    # A4 with margins of 16 mm, at 96 dots per inch.
    with opened_page(browser, report("plant"), 672) as page:
        page.emulate_media(media="print")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 672
        shown = pictures(page, "answer") + pictures(page, "cases")
    assert all(each["right"] <= 672 for each in shown)
    # Five points on paper.
    assert min(letters(each) for each in shown) >= 96 / 72 * 5
