"""A report page as text: headings, sentences, lists, tables and pictures, a line each.

Numbers with decimals are written as #, and so are percentages and numbers of three digits and more: the
records of numbers hold them, and other machines round differently. Left out are what differs from run to run
and from machine to machine (`PASSING`), and the configuration.
"""

import re
from html.parser import HTMLParser

# A line each: what stands inside is joined.
_BLOCKS = {
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "li",
    "tr",
    "dt",
    "dd",
    "summary",
    "figcaption",
    "caption",
    "title",
    "pre",
}
_MARKS = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "li": "- ", "summary": "> "}
# The value of the fact whose name the line before holds.
_FACT = ":"
_SILENT = {"style", "script", "nav", "pre"}
# Facts of the last section whose values are no part of the answer.
PASSING = {"command", "commit", "versions", "machine", "run folder", "fingerprint", "fingerprint of the data"}
_TIME = re.compile(r"\b\d+(\.\d+)? (ms|s|seconds?|minutes?)\b")
_FRACTION = re.compile(r"-?\d[\d,]*\.\d+(e[-+]?\d+)?|-?(?<![\w.])\.\d+(e[-+]?\d+)?|\d+e[-+]?\d+")
_LONG = re.compile(r"\b\d[\d,]{2,}\b")
_SHARE = re.compile(r"\d+( ?%| per cent| percentage points)")
_RANGE = re.compile(r"\((?:-?\d+|#) to (?:-?\d+|#)\)")


def without_digits(text: str) -> str:
    """The text with # in place of what is measured or computed."""
    shares = _SHARE.sub(r"#\1", _FRACTION.sub("#", _TIME.sub(r"# \2", text)))
    return _LONG.sub("#", _RANGE.sub("(# to #)", shares))


class _Lines(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines, self._silent, self._line, self._mark = list[str](), 0, "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        if tag in _SILENT:
            self._silent += 1
        elif tag == "img" and about.get("alt"):
            self._end()
            self.lines.append(f"[picture: {about['alt']}]")
        elif tag in ("th", "td"):
            self._line += " | "
        elif tag in _BLOCKS:
            self._end()
            self._mark = _FACT if tag == "dd" else _MARKS.get(tag, "")
        elif tag == "section":
            self._end()
            self.lines += ["", f"[{about.get('id')}]"]

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent -= 1
        elif tag in _BLOCKS:
            self._end()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._line += data

    def _end(self) -> None:
        line = " ".join(self._line.split()).removeprefix("| ")
        if line and self._mark == _FACT:
            self.lines[-1] += f": {line}"
        elif line:
            self.lines.append(f"{self._mark}{line}")
        self._line, self._mark = "", ""


def page_text(page: str) -> str:
    """The lines of a page."""
    reader = _Lines()
    reader.feed(page)
    reader.close()
    kept = [line for line in reader.lines if line.partition(": ")[0] not in PASSING]
    return "\n".join(without_digits(line) for line in kept).strip() + "\n"
