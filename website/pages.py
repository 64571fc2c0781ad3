"""Rewriting of the links of pages, from places in the repository to places on the site.

A page has one place in the repository and another on the site, so every relative link is resolved against the
repository and rewritten. A link to a page becomes a link to its place on the site; a link to a folder, to the
folder's README; any other existing file is copied to the site. A broken link is an error, so that no page is
staged with one.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# A fenced block or a span of code: links are not rewritten there.
_CODE = re.compile(
    r"^(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=fence)[ \t]*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^()\s]+)(?P<after>(?:\s+\"[^\"]*\")?\))")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//")


class BrokenLinksError(ValueError):
    """Broken relative links; the message lists all of them, each with its page and line."""


@dataclass
class Links:
    """Rewrites the links of pages.

    Attributes:
        root: The repository.
        places: Page, relative to the repository, to its place on the site.
        copied: Other files that pages link to, relative to the repository, to their places on the site;
            extended by every page.
        broken: One line for each broken link; extended by every page.
    """

    root: Path
    places: Mapping[PurePosixPath, PurePosixPath]
    copied: dict[PurePosixPath, PurePosixPath] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def rewritten(self, text: str, page: PurePosixPath) -> str:
        """The text of a page with its relative links rewritten for the site.

        Args:
            text: Markdown.
            page: Path of the page, relative to the repository.
        """
        pieces, end = list[str](), 0
        for start, stop in (*_code(text), (len(text), len(text))):
            done = 0
            prose = text[end:start]
            for found in _LINK.finditer(prose):
                line = text.count("\n", 0, end + found.start()) + 1
                pieces += [prose[done : found.start()], self._link(found, page, line)]
                done = found.end()
            pieces += [prose[done:], text[start:stop]]
            end = stop
        return "".join(pieces)

    def check(self) -> None:
        """Checks that no link is broken.

        Raises:
            BrokenLinksError: if one is.
        """
        if self.broken:
            message = f"{len(self.broken)} relative links are broken; correct them:"
            raise BrokenLinksError("\n".join([message, *self.broken]))

    def _link(self, found: re.Match[str], page: PurePosixPath, line: int) -> str:
        path, mark, anchor = found["target"].partition("#")
        if _ELSEWHERE.match(found["target"]):
            return found[0]
        place = self._place(PurePosixPath(os.path.normpath(page.parent / path)))
        if place is None:
            self.broken.append(f"  {page}, line {line}: {found['target']}")
            return found[0]
        near = os.path.relpath(place, self.places[page].parent)
        return f"{found['before']}{PurePosixPath(near)}{mark}{anchor}{found['after']}"

    def _place(self, target: PurePosixPath) -> PurePosixPath | None:
        """Place of a file or folder of the repository on the site; None if it does not exist."""
        for page in (target, target / "README.md"):
            if page in self.places:
                return self.places[page]
        if ".." in target.parts or not (self.root / target).is_file():
            return None
        inner = target.relative_to("docs") if target.parts[0] == "docs" else PurePosixPath("files") / target
        return self.copied.setdefault(target, inner)


def title(text: str) -> str:
    """The first heading of a page, without code marks.

    Raises:
        ValueError: if there is none.
    """
    found = re.search(r"^# +(.+?) *$", text, re.MULTILINE)
    if found is None:
        raise ValueError("expected a page that begins with a heading: # Title")
    return found[1].replace("`", "")


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Positions of code in Markdown: (start, end) of each block and span."""
    return ((found.start(), found.end()) for found in _CODE.finditer(text))
