"""The frame of the page: head, title, contents, numbered sections, where it comes from, and the style sheet.

The page is self-contained: its style sheet and its pictures are inside, there is no script, and a content
security policy tells browsers to load nothing and to run nothing, whatever a run folder may have smuggled in.

Source: W3C, Content Security Policy Level 3 (``default-src 'none'``).

The style sheet is for screens from 390 pixels on, and for paper. Wide tables scroll in boxes of their own, so
that the page itself never does. Pictures stand in two columns where there is room for them, and shrink with
the page. Texts keep a contrast of at least 4.5 to 1, and no meaning is carried by colour alone. On paper,
boxes show their whole content and links lose their colour.

Source: WCAG 2.2, success criteria 1.4.1, 1.4.3 and 1.4.10 (use of colour, contrast, reflow).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import yaml

from rehearsal_torch.reporting.page.markup import Child, Markup, bullets, facts, joined, tag
from rehearsal_torch.reporting.page.material import Material, mapping, named, shown

CSS = files(__package__).joinpath("report.css").read_text(encoding="utf-8")


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
    """

    id: str
    title: str
    content: Markup


def document(title: str, lead: Markup, sections: Sequence[Section], end: str) -> str:
    """The whole page: title and first heading, what stands above the sections, those that have content, the
    end.

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


LONGEST = 60_000


def provenance(of: Material) -> Markup:
    """The section's content: what ``run.json`` and ``config.yaml`` say."""
    return joined([facts(origin(of)), _configuration(of)])


def origin(of: Material) -> list[tuple[str, Child]]:
    """Name to value of everything that ``run.json`` says of where the run comes from."""
    record = of.record
    known: list[tuple[str, Child]] = []
    if record.get("command"):
        known.append(("command", tag("code", str(record["command"]))))
    known += [(name, tag("code", str(record[name]))) for name in ("commit",) if record.get(name)]
    if "commit" in record and not record["commit"]:
        known.append(("commit", "not known: the package was installed without its history"))
    known += [("seed", shown(record["seed"]))] if "seed" in record else []
    known += [
        (title, named(mapping(record[key])))
        for title, key in (("versions", "versions"), ("machine", "machine"))
        if mapping(record.get(key))
    ]
    if of.run.choices:
        known.append(("chosen", ", ".join(f"{group} {name}" for group, name in of.run.choices.items())))
    if record.get("data_fingerprint"):
        known.append(("fingerprint of the data", tag("code", str(record["data_fingerprint"]))))
    known.append(("run folder", tag("code", str(of.run.path))))
    return known


def _configuration(of: Material) -> Markup | None:
    if not of.run.config:
        return tag("p", "The run recorded no configuration.")
    text = yaml.safe_dump(of.run.config, sort_keys=False, allow_unicode=True)
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... (the rest is in config.yaml)"
    return tag(
        "details",
        tag("summary", "The whole configuration (config.yaml)"),
        tag("pre", cut, tabindex="0", aria_label="config.yaml"),
    )
