"""Pages of the repository, and what becomes of their links on the site.

A page stands at one place in the repository and at another on the site, so every relative link is resolved
against the repository and rewritten. A link to a page leads to its place on the site; a link to a folder, to
the folder's README; any other file that exists is copied beside the pages. A link to nothing is an error, so
that no page is staged with one.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# A fenced block, an indented block's line, or a span of code: no link stands in one.
_CODE = re.compile(
    r"^(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=fence)[ \t]*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^()\s]+)(?P<after>(?:\s+\"[^\"]*\")?\))")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//")


class BrokenLinksError(ValueError):
    """Relative links that lead to nothing; the message lists all of them, each with its page and line."""


@dataclass
class Links:
    """Rewrites the links of pages.

    Attributes:
        root: The repository.
        places: Page, relative to the repository, to its place on the site.
        copied: Other files that pages link to, relative to the repository, to their places on the site; grows
            with every page.
        broken: A sentence for each link to nothing; grows with every page.
    """

    root: Path
    places: Mapping[PurePosixPath, PurePosixPath]
    copied: dict[PurePosixPath, PurePosixPath] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def rewritten(self, text: str, page: PurePosixPath) -> str:
        """A page's text with every relative link as it has to read on the site.

        Args:
            text: Markdown.
            page: Where the page stands, relative to the repository.
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
        """Refuses to go on with links to nothing.

        Raises:
            BrokenLinksError: if there is one.
        """
        if self.broken:
            told = f"{len(self.broken)} relative links lead to nothing; mend them:"
            raise BrokenLinksError("\n".join([told, *self.broken]))

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
        """Where a file or folder of the repository stands on the site; None where there is none."""
        for page in (target, target / "README.md"):
            if page in self.places:
                return self.places[page]
        if ".." in target.parts or not (self.root / target).is_file():
            return None
        inner = target.relative_to("docs") if target.parts[0] == "docs" else PurePosixPath("files") / target
        return self.copied.setdefault(target, inner)


def title(text: str) -> str:
    """A page's first heading, without code marks.

    Raises:
        ValueError: if it has none.
    """
    found = re.search(r"^# +(.+?) *$", text, re.MULTILINE)
    if found is None:
        raise ValueError("expected a page that begins with a heading: # Title")
    return found[1].replace("`", "")


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Where code stands in Markdown: (start, end) of each block and span."""
    return ((found.start(), found.end()) for found in _CODE.finditer(text))
