"""Links are rewritten for the place where a page stands on the site, and links to nothing are found."""

from pathlib import PurePosixPath as P

import pytest

from website.pages import BrokenLinksError, Links, title

PLACES = {
    P("README.md"): P("index.md"),
    P("docs/search.md"): P("search.md"),
    P("docs/results/one/README.md"): P("results/one/index.md"),
}


@pytest.fixture
def links(tmp_path):
    (tmp_path / "docs/figures").mkdir(parents=True)
    (tmp_path / "docs/figures/course.png").write_bytes(b"image")
    (tmp_path / "LICENSE").write_text("licence")
    return Links(tmp_path, PLACES)


@pytest.mark.parametrize(
    ("page", "before", "after"),
    [
        ("README.md", "[how](docs/search.md)", "[how](search.md)"),
        ("README.md", "[how](docs/search.md#speed)", "[how](search.md#speed)"),
        ("README.md", "[results](docs/results/one)", "[results](results/one/index.md)"),
        ("docs/results/one/README.md", "[start](../../../README.md)", "[start](../../index.md)"),
        ("docs/search.md", "![course](figures/course.png)", "![course](figures/course.png)"),
        ("docs/search.md", "[licence](../LICENSE)", "[licence](files/LICENSE)"),
        ("docs/search.md", "[`code`](results/one/README.md)", "[`code`](results/one/index.md)"),
        (
            "docs/search.md",
            "[elsewhere](https://example.org/a.md), [here](#speed)",
            "[elsewhere](https://example.org/a.md), [here](#speed)",
        ),
        (
            "docs/search.md",
            "`[no](link.md)`\n\n```python\nx[0](gone.md)\n```\n",
            "`[no](link.md)`\n\n```python\nx[0](gone.md)\n```\n",
        ),
    ],
)
def test_links_lead_to_the_place_on_the_site(links, page, before, after):
    assert links.rewritten(before, P(page)) == after
    links.check()


def test_files_that_are_linked_are_copied(links):
    links.rewritten("![a](docs/figures/course.png) [b](LICENSE)", P("README.md"))
    assert links.copied == {
        P("docs/figures/course.png"): P("figures/course.png"),
        P("LICENSE"): P("files/LICENSE"),
    }


@pytest.mark.parametrize("target", ["docs/gone.md", "docs/figures", "../outside.md", "docs/figures/gone.png"])
def test_a_link_to_nothing_is_named_with_its_line(links, target):
    links.rewritten(f"# Title\n\n`code`\n[there]({target})\n", P("README.md"))
    message = rf"1 relative links are broken.*\n  README\.md, line 4: {target}$"
    with pytest.raises(BrokenLinksError, match=message):
        links.check()


def test_a_page_is_called_by_its_heading():
    assert title("\n# How `search` works\n\n## Part\n") == "How search works"
    with pytest.raises(ValueError, match="begins with a heading"):
        title("## Part")
