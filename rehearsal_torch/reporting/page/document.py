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

import yaml

from rehearsal_torch.reporting.page.markup import Child, Markup, bullets, facts, joined, tag
from rehearsal_torch.reporting.page.material import Material, mapping, named, shown

CSS = """
:root { color-scheme: light; --ink: #1b1b1b; --soft: #525252; --line: #c9c9c9; --paper: #ffffff;
  --tint: #f4f6f8; --blue: #00558c; --warn: #8a3b00; --warn-tint: #fff4ea; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", Arial, sans-serif; }
header, main, footer { max-width: 58rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.4rem 0 .6rem; padding-top: .8rem;
  border-top: 2px solid var(--ink); }
h3 { font-size: 1.05rem; margin: 1.3rem 0 .3rem; overflow-wrap: anywhere; }
p, li, dd, dt, figcaption, td, th { overflow-wrap: break-word; }
p { margin: .4rem 0 .7rem; }
main p, main li, main dd { overflow-wrap: anywhere; }
ul { padding-left: 1.3rem; margin: .4rem 0 .8rem; }
li { margin: .2rem 0; }
a { color: var(--blue); }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; }
.soft, figcaption, .caption { color: var(--soft); }
.case { border: 1px solid var(--line); border-left: .35rem solid var(--blue); border-radius: .3rem;
  padding: .1rem 1rem .3rem; margin: .9rem 0; }
.case.none { border-left-color: #7a7a7a; }
.case.refused { border-left-color: var(--warn); border-left-style: double; }
.case h3 { margin-top: .7rem; }
.answer { font-weight: 600; }
.notice { background: var(--warn-tint); border: 1px solid var(--warn); border-radius: .3rem;
  padding: .5rem .9rem; margin: .9rem 0; }
.notice p { margin: .2rem 0; }
dl { margin: .5rem 0; }
dl > div { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: 0 1rem;
  border-bottom: 1px solid #e4e4e4; padding: .25rem 0; }
dt { color: var(--soft); overflow-wrap: anywhere; }
dd { margin: 0; min-width: 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .3rem; }
.scroll:focus-visible, a:focus-visible, summary:focus-visible { outline: 3px solid var(--blue);
  outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
.tabled { margin: 1rem 0; }
.caption { font-size: .92rem; margin: 0 0 .3rem; break-after: avoid; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem; border-top: 1px solid #e4e4e4;
  min-width: 4.5rem; }
tr > :first-child { min-width: 6rem; }
thead th { background: var(--tint); border-top: 0; border-bottom: 1px solid var(--line); }
tbody th { font-weight: 600; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0 1.4rem; break-inside: avoid; }
img { max-width: 100%; height: auto; display: block; }
figure .scroll { border: 0; }
.pictures { display: grid; gap: 0 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); }
.pictures .wide { grid-column: 1 / -1; }
figcaption { font-size: .92rem; margin-bottom: .35rem; }
pre { overflow-x: auto; background: var(--tint); border: 1px solid var(--line); border-radius: .3rem;
  padding: .6rem .8rem; margin: .6rem 0;
  font: .82rem/1.4 ui-monospace, Consolas, "DejaVu Sans Mono", monospace; }
pre.wrap, code { white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, Consolas, "DejaVu Sans Mono", monospace; }
.sub { display: inline-block; padding-left: 1rem; font-weight: 400; }
summary { cursor: pointer; color: var(--blue); }
.legend { list-style: none; padding: 0; }
.legend li { display: flex; gap: .6rem; }
.legend b { flex: 0 0 7rem; }
footer { margin-top: 2.5rem; padding-bottom: 2rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 40rem) {
  header, main, footer { padding-left: .9rem; padding-right: .9rem; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; }
  dl > div { grid-template-columns: 1fr; }
  dt { font-size: .9rem; }
  .case { padding: .1rem .7rem .3rem; }
  table { font-size: .86rem; }
  th, td { padding: .3rem .45rem; min-width: 3.4rem; }
  tr > :first-child { min-width: 4.2rem; }
}
@media print {
  @page { margin: 16mm; }
  body { font-size: 10pt; }
  header, main, footer { max-width: none; padding: 0; }
  nav, summary { display: none; }
  a { color: inherit; text-decoration: none; }
  .scroll, pre { overflow: visible; border: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  table { font-size: 8.5pt; }
  th, td { min-width: 0; padding: .2rem .4rem; overflow-wrap: anywhere; }
  tr > :first-child { min-width: 0; }
  figure img { min-width: 0 !important; max-height: 220mm; }
  h2, h3 { break-after: avoid; }
  .case, tr, .notice { break-inside: avoid; }
}
"""


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
