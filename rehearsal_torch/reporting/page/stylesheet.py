"""The style sheet of the page: for screens from 390 pixels on, and for paper.

Wide tables scroll in boxes of their own, so that the page itself never does. Pictures stand in two
columns where there is room for them, and shrink with the page. Texts keep a contrast of at least
4.5 to 1, and no meaning is carried by colour alone. On paper, boxes show their whole content and links lose
their colour.

Source: WCAG 2.2, success criteria 1.4.1, 1.4.3 and 1.4.10 (use of colour, contrast, reflow).
"""

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
