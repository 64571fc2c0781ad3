"""Staging of the site's source: pages at their places, links rewritten, navigation, and Zensical's
configuration.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from website.notebook import markdown
from website.pages import Links, title
from website.reference import pages

PACKAGE = "rehearsal_torch"
TEMPLATE = Path(__file__).with_name("zensical.toml")
# Pages of docs/ by section, in their order; those that are named in none stand under Guides.
SECTIONS = {
    "Theory": ("rehearsal", "search", "optimise", "influence", "own_weights", "decisions", "episodes"),
    "Sharp bits": ("sharp_bits",),
    "Notation": ("notation",),
    "Architecture": ("architecture",),
}
ORDER = (
    "Guides",
    "Tutorials",
    "Theory",
    "Sharp bits",
    "API reference",
    "Results",
    "Notation",
    "Architecture",
)
# Pages of the repository's root.
ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
ENTRY = list[tuple[str, PurePosixPath]]


def places(root: Path) -> dict[PurePosixPath, PurePosixPath]:
    """Every page, as path relative to the repository, with its place on the site.

    Args:
        root: The repository.
    """
    there = {name: place for name, place in ROOT_PAGES.items() if (root / name).is_file()}
    found = {PurePosixPath(name): PurePosixPath(place) for name, place in there.items()}
    for path in sorted((root / "docs").rglob("*.md")):
        inner = PurePosixPath(path.relative_to(root / "docs").as_posix())
        place = inner.with_name("index.md") if inner.name == "README.md" else inner
        found[PurePosixPath("docs") / inner] = place
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        found[PurePosixPath("notebooks") / path.name] = PurePosixPath("tutorials") / f"{path.stem}.md"
    return found


def staged(root: Path, out: Path) -> Path:
    """Writes the source of the site into a folder, which is emptied first.

    Args:
        root: The repository.
        out: The folder.

    Returns:
        The configuration for Zensical; the site is rendered next to it, in the folder site.

    Raises:
        BrokenLinksError: if a page has a broken link.
    """
    links, made = Links(root, places(root)), dict[PurePosixPath, str]()
    images: dict[PurePosixPath, bytes] = {}
    for page, place in links.places.items():
        text = (root / page).read_text(encoding="utf-8") if page.suffix == ".md" else ""
        if page.suffix == ".ipynb":
            text, shown = markdown(root / page)
            images |= {place.with_name(name): content for name, content in shown.items()}
            # The images of a notebook's output are in the folder of its page already.
            made[place] = _beside(links, text, page, set(shown))
        else:
            made[place] = links.rewritten(text, page)
    links.check()
    made |= {PurePosixPath("api") / name: text for name, text in pages(root / PACKAGE).items()}
    shutil.rmtree(out, ignore_errors=True)
    for place, text in made.items():
        _file(out / "pages" / place).write_text(text, encoding="utf-8")
    for place, content in images.items():
        _file(out / "pages" / place).write_bytes(content)
    for source, place in links.copied.items():
        shutil.copyfile(root / source, _file(out / "pages" / place))
    config = out / "zensical.toml"
    config.write_text(
        TEMPLATE.read_text(encoding="utf-8").replace("nav = []", f"nav = {_toml(navigation(made))}"),
        encoding="utf-8",
    )
    return config


def navigation(made: Mapping[PurePosixPath, str]) -> dict[str, object]:
    """The navigation: title to page, or section to titles and pages; every page occurs once.

    Args:
        made: Place on the site to text.
    """
    named = {name for names in SECTIONS.values() for name in names}
    top = {place for place in made if len(place.parts) == 1 and str(place) not in ROOT_PAGES.values()}
    sections: dict[str, ENTRY] = {
        "Guides": _titled(made, sorted(place for place in top if place.stem not in named)),
        "Tutorials": _titled(made, _below(made, "tutorials")),
        "API reference": _titled(made, _below(made, "api")),
        "Results": _titled(made, _below(made, "results")),
    }
    for section, names in SECTIONS.items():
        listed = [PurePosixPath(f"{name}.md") for name in names]
        sections[section] = _titled(made, [place for place in listed if place in made])
    found: dict[str, object] = {"Start": "index.md"}
    for section in ORDER:
        if len(sections[section]) == 1:
            found[section] = str(sections[section][0][1])
        elif sections[section]:
            found[section] = {name: str(place) for name, place in sections[section]}
    last = [PurePosixPath(name) for name in ROOT_PAGES.values() if name != "index.md"]
    return found | {place.stem.capitalize(): str(place) for place in last if place in made}


def _below(made: Mapping[PurePosixPath, str], folder: str) -> list[PurePosixPath]:
    """The pages of a folder, its index first."""
    return sorted(
        (place for place in made if place.parts[0] == folder),
        key=lambda place: (place.parent, place.name != "index.md", place.name),
    )


def _titled(made: Mapping[PurePosixPath, str], listed: list[PurePosixPath]) -> ENTRY:
    return [(title(made[place]), place) for place in listed]


def _beside(links: Links, text: str, page: PurePosixPath, shown: set[str]) -> str:
    """The page of a notebook with its links rewritten, except for those to its own images."""
    before = len(links.broken)
    text = links.rewritten(text, page)
    links.broken[before:] = [line for line in links.broken[before:] if line.rpartition(" ")[2] not in shown]
    return text


def _toml(nav: Mapping[str, object]) -> str:
    """A navigation as TOML: lists of tables with one key each. JSON strings are valid TOML strings."""
    written = {name: _toml(to) if isinstance(to, Mapping) else json.dumps(to) for name, to in nav.items()}
    return "[" + ", ".join(f"{{ {json.dumps(name)} = {to} }}" for name, to in written.items()) + "]"


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
