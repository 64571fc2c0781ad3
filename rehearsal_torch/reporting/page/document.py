"""The frame of the page: head, title, contents, numbered sections and the line at the end.

The page is self-contained: its style sheet and its pictures are inside, there is no script, and a content
security policy tells browsers to load nothing and to run nothing, whatever a run folder may have smuggled in.

Source: W3C, Content Security Policy Level 3 (``default-src 'none'``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.reporting.page.markup import Markup, bullets, joined, tag
from rehearsal_torch.reporting.page.stylesheet import CSS

# How the pages that this package writes begin; other files are not overwritten.
MARK = (
    '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
    '<meta name="generator" content="rehearsal_torch">'
)
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        id: Its name in links, unique in the page.
        title: Its heading.
        content: What it shows.
    """

    id: str
    title: str
    content: Markup


def document(title: str, lead: Markup, sections: Sequence[Section], end: str) -> str:
    """The whole page.

    Args:
        title: Title and first heading.
        lead: What stands above the sections.
        sections: The sections, in order; those without content are left out.
        end: The line at the end.

    Raises:
        ValueError: if two sections have the same id.
    """
    shown = [section for section in sections if section.content]
    if len({section.id for section in shown}) < len(shown):
        raise ValueError(f"expected different ids; got {[section.id for section in shown]}")
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
