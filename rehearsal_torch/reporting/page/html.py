"""Elements of HTML whose texts are escaped, and the frame of a self-contained page.

`tag` is the only place where markup is made. A child that is a plain `str` is text and is escaped, whatever
it contains; only the result of `tag`, `joined` or `table` is markup. Characters that HTML does not allow
(HTML Living Standard, Sec. 13.1: controls, lone surrogates) become U+FFFD, so that it can be read.

Style sheet and pictures are inside of the page, there is no script, and a content security policy
(``default-src 'none'``) tells browsers to load and run nothing, whatever a run folder may have smuggled in.
The style sheet is for screens from 390 pixels on, and for paper. Wide tables scroll in boxes of their own, so
that the page itself never does; pictures stand in two columns where there is room for them, and shrink with
the page. Texts keep a contrast of at least 4.5 to 1, and no meaning is carried by colour alone (WCAG 2.2,
success criteria 1.4.1, 1.4.3 and 1.4.10).
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from rehearsal_torch.evaluation.run_record import Decided

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
CSS = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
# Start of the pages of this package; other files are not overwritten.
MARK = (
    '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
    '<meta name="generator" content="rehearsal_torch">'
)
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
# Cases that are named one by one.
NAMED = 8
VOID = frozenset({"br", "col", "hr", "img", "meta", "source"})


class Markup(str):
    """A text that is HTML already; only this module makes it."""

    __slots__ = ()


Child = str | Markup | None


def text(content: object) -> Markup:
    """Escaped text; markup stays as it is."""
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(content)), quote=True))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. Children are texts, which are escaped, and markup; None is left out, also of attributes
    (True writes no value). Underscores in their names stand for hyphens, and one at the end is dropped.
    """
    attribute_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{attribute_text}>")
    return Markup(f"<{name}{attribute_text}>{joined(children)}</{name}>")


def joined(children: Iterable[Child], between: str = "") -> Markup:
    """Texts and markup one after the other, with a text between them."""
    return Markup(text(between).join(text(child) for child in children if child is not None))


def paragraphs(sentences: Iterable[str]) -> Markup:
    """One paragraph for each text."""
    return joined(tag("p", sentence) for sentence in sentences)


def bullets(items: Iterable[Child], class_: str | None = None) -> Markup:
    """A list; empty without items."""
    elements = [tag("li", item) for item in items if item is not None]
    return tag("ul", *elements, class_=class_) if elements else Markup()


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names with their values; empty without any."""
    elements = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs]
    return tag("dl", *elements) if elements else Markup()


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[Child]], texts: Sequence[int] = (0,)
) -> Markup:
    """A table that scrolls in a box of its own where it is wider than the page; empty without rows. The first
    cell of a row is its head; the columns of `texts` hold words, aligned to the left, the others numbers.
    """
    if not rows:
        return Markup()

    def cell_class(column: int) -> str | None:
        return None if column in texts else "n"

    head_row = tag(
        "tr", *(tag("th", head, scope="col", class_=cell_class(column)) for column, head in enumerate(heads))
    )
    cells = [
        [
            tag("td" if column else "th", cell, scope=None if column else "row", class_=cell_class(column))
            for column, cell in enumerate(row)
        ]
        for row in rows
    ]
    body = [tag("tr", *row) for row in cells]
    content = tag("table", tag("thead", head_row), tag("tbody", *body), aria_label=caption)
    box = tag("div", content, class_="scroll", role="region", aria_label=caption, tabindex="0")
    # A caption inside of the table would scroll out of sight with it.
    return tag("div", tag("p", caption, class_="caption"), box, class_="tabled")


def name_of(decision: Decided) -> str:
    """The name of a decision's case: its identity, or its number where it has none."""
    return str(decision.get("identity") or decision.get("index", ""))


def grouped(
    sentences: Iterable[tuple[str, str]], everybody: int, noun: str = "case", nouns: str = ""
) -> Markup:
    """Each sentence of (name of a case, sentence) once, with its cases; `everybody` is the number of all
    cases, `nouns` the plural, empty for the noun with an s.
    """
    names_of: dict[str, list[str]] = {}
    for name, sentence in sentences:
        names_of.setdefault(sentence, []).append(name)
    return bullets(
        joined(
            [sentence, tag("span", f" ({whom(names, everybody, noun, nouns or f'{noun}s')})", class_="soft")]
        )
        for sentence, names in names_of.items()
    )


def whom(names: Sequence[str], everybody: int, noun: str, nouns: str) -> str:
    """The cases of a sentence: all of them, or their names, the first ones if there are many."""
    if len(names) == everybody and everybody > 1:
        return f"all {everybody} {nouns}"
    more = len(names) - NAMED
    listed = ", ".join(names[:NAMED] if more > 1 else names)
    return f"{noun if len(names) == 1 else nouns} {listed}" + (f" and {more} more" if more > 1 else "")


@dataclass(frozen=True)
class Section:
    """A section of the page; its `id` is its anchor."""

    id: str
    title: str
    content: Markup


def document(title: str, lead: Markup, sections: Sequence[Section], end: str) -> str:
    """The whole page: title, lead, the sections that have content, and a footer."""
    shown = [section for section in sections if section.content]
    links = [tag("a", section.title, href=f"#{section.id}") for section in shown]
    body = [
        tag("section", tag("h2", section.title), section.content, id=section.id, aria_label=section.title)
        for section in shown
    ]
    head = joined(
        [
            tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", title),
            # The text is a constant of this package, without any "<".
            tag("style", Markup(CSS)),
        ]
    )
    page = tag(
        "body",
        tag("header", tag("h1", title), lead, tag("nav", bullets(links), aria_label="Contents")),
        Markup("\n"),
        tag("main", joined(body, "\n")),
        Markup("\n"),
        tag("footer", tag("p", end)),
    )
    return f"{MARK}{head}</head>\n{page}\n</html>\n"
