"""Pages from templates: Python computes typed fields, the files of ``templates`` hold HTML and sentences.

Pages are rendered with autoescape, the sentences that they share with terminals and Python
(``sentences.txt``) included; a name that no field has is an error (jinja2's StrictUndefined). Characters
that HTML does not allow (HTML Living Standard, Sec. 13.1: controls, lone surrogates) become U+FFFD.

Style sheet and pictures are inside of the page. Its content security policy names the style sheet and the
script that sorts tables by their SHA-256 (CSP Level 3, Sec. 2.3.1), and lets browsers load and run nothing
else, whatever a run folder may have smuggled in. Without the script a page lacks nothing but the sorting.
Texts keep a contrast of at least 4.5 to 1, and no meaning is carried by colour alone (WCAG 2.2, success
criteria 1.4.1, 1.4.3 and 1.4.10).

A figure is an SVG file of at most 6 MiB as this package writes it; anything else in its place is named, not
shown. It stands in an ``img``, in which browsers run no script and load nothing. Its size is read from its
first lines, so that the page does not jump while it is loaded. A wide one takes the whole width of the page,
and scrolls where texts would be too small.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rehearsal_torch.data.sensitivity import factor, share
from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.page.page_content import Material, and_list, counted

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
# Start of the pages of this package; other files are not overwritten.
MARK = (
    '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
    '<meta name="generator" content="rehearsal_torch">'
)

LARGEST, MOST = 6 * 2**20, 24
# Pixels from which on a figure takes the whole width of the page, and scrolls where texts would be too small.
WIDE = (650, 1045, 1512)
# Points of a pixel, and the bytes at the start of a file that hold its size.
POINTS, OPENING = 0.75, 4096
_ROOT, _LENGTH = re.compile(rb"<svg\b[^>]*>"), rb'\b%s="([0-9]{1,8}(?:\.[0-9]{1,12})?)pt"'


def _text_of(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


CSS, SORT = _text_of("report.css"), _text_of("sort.js")


def _source(text: str) -> str:
    """The source of a policy that allows a text, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY = (
    f"default-src 'none'; img-src data:; style-src {_source(CSS)}; script-src {_source(SORT)}; "
    "form-action 'none'; base-uri 'none'"
)


def _capital(text: str) -> str:
    text = text.lstrip()
    return text[:1].upper() + text[1:]


def _paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a text, which blank lines part, with single spaces; of markup, markup."""
    kind = Markup if isinstance(text, Markup) else str
    parts = (" ".join(part.split()) for part in _PARAGRAPH.split(str(text)))
    return [kind(part) for part in parts if part]


@cache
def _environment(escaped: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        # A macro escapes as its own file does: sentences of pages come from another copy than plain ones.
        autoescape=escaped,
        undefined=StrictUndefined,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters |= {"capital": _capital, "and_list": and_list, "counted": counted}
    environment.filters |= {"factor": factor, "share": share, "paragraphs_of": _paragraphs_of}
    # Constants of this package.
    environment.globals |= {"css": Markup(CSS), "sort": Markup(SORT), "policy": POLICY, "mark": Markup(MARK)}
    return environment


def render(name: str, **fields: Any) -> str:
    """A page by the name of its template."""
    page = _environment(True).get_template(name).render(**fields)
    return _FORBIDDEN.sub("\ufffd", page).strip() + "\n"


@cache
def _sentences() -> Any:
    return _environment(False).get_template("sentences.txt").module


def words(name: str) -> Any:
    """What ``sentences.txt`` sets under a name."""
    return getattr(_sentences(), name)


def sentence(name: str, *fields: Any) -> str:
    """A macro of ``sentences.txt`` as one text, with single spaces."""
    return " ".join(str(words(name)(*fields)).split())


def sentences(name: str, *fields: Any) -> list[str]:
    """The paragraphs of a macro of ``sentences.txt``."""
    return _paragraphs_of(str(words(name)(*fields)))


def name_of(decision: Decided) -> str:
    """The name of a decision's case: its identity, or its number where it has none."""
    return str(decision.get("identity") or decision.get("index", ""))


@dataclass(frozen=True)
class Figure:
    """A picture with its caption, its `source` and its size in pixels; or the `fault` of its file."""

    name: str
    title: str
    meaning: str
    source: str = ""
    width: int = 0
    height: int = 0
    fault: str = ""

    @property
    def steps(self) -> int:
        """How many widths of `WIDE` it exceeds; the style sheet has the least width of each."""
        return sum(self.width > width for width in WIDE)


def pictures(report: Material) -> dict[str, list[Figure]]:
    """The figures of a run folder by the section in which they stand, in the order of their captions."""
    wording, captions = report.words, words("captions")
    rank = {name: number for number, name in enumerate(captions)}
    folder = report.run.path / "figures"
    files = sorted(folder.glob("*.svg")) if folder.is_dir() else []
    files.sort(key=lambda path: rank.get(_key(path.stem, wording), len(rank)))
    placed: dict[str, list[Figure]] = {"answer": [], "cases": [], "trust": [], "internals": []}
    for path in files[:MOST]:
        title, meaning, place = captions.get(
            _key(path.stem, wording), (path.stem.replace("_", " "), "", "internals")
        )
        unit = "an episode" if wording.episode == "episode" else f"one {wording.episode}"
        nouns = wording.episodes if report.sequences else "cases"
        title, meaning = (text.format(one=unit, episodes=nouns) for text in (title, meaning))
        if path.stem.startswith("training_"):
            title = f"{title}: {path.stem.removeprefix('training_').replace('_', ' ')}"
        placed[place].append(_read(path, title, meaning))
    return placed


def embedded(content: bytes, name: str, title: str, meaning: str) -> Figure:
    """A figure of an SVG file. ValueError if it is not an SVG file with a size in points."""
    root = _ROOT.search(content[:OPENING]) if content.startswith(b"<?xml") else None
    sides = [re.search(_LENGTH % side, root[0]) if root else None for side in (b"width", b"height")]
    width, height = (0 if side is None else round(float(side[1]) / POINTS) for side in sides)
    if width < 1 or height < 1:
        raise ValueError("expected an SVG file with its size in points; its first lines are not those of one")
    source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode('ascii')}"
    return Figure(name, title, meaning, source, width, height)


def _key(name: str, wording: Wording) -> str:
    """The name of a figure's caption; the figures of training share one."""
    if name == wording.file:
        return "patient"
    return "training" if name.startswith("training_") else name


def _read(path: Path, title: str, meaning: str) -> Figure:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"expected at most {LARGEST // 2**20} MiB; it is larger")
        return embedded(content, path.name, title, meaning)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return Figure(path.name, title, meaning, fault=str(reason))
