"""Reads a page as a browser does, and says what is not well formed."""

import re
from html.parser import HTMLParser
from itertools import pairwise

from rehearsal_torch.reporting.page.html import SORT

VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source"}
# Attributes from which a browser loads something, or runs it.
LOADING = {"src", "href", "srcset", "action", "data", "poster", "background", "formaction"}


class Page(HTMLParser):
    """A page that was read.

    Attributes:
        faults: What is not well formed, or not self-contained; empty for a good page.
        texts: The texts, in order.
        tags: The name and the attributes of every element, in order.
    """

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.faults, self.texts, self.tags, self._open = [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{name}> is not closed" for name in self._open]
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        self.faults += [f"id {one} occurs twice" for one in set(ids) if ids.count(one) > 1]
        links = [attributes["href"] for _, attributes in self.tags if "href" in attributes]
        self.faults += [f"{link} leads nowhere" for link in links if link.removeprefix("#") not in ids]
        levels = [int(name[1]) for name, _ in self.tags if re.fullmatch("h[1-6]", name)]
        if levels[:1] != [1] or levels.count(1) != 1:
            self.faults.append(f"expected one h1, first; got the levels {levels}")
        steps = pairwise(levels)
        self.faults += [f"h{after} follows h{before}" for before, after in steps if after > before + 1]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if len(attributes) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self._open.append(tag)
        if any(name.startswith("on") for name in attributes):
            self.faults.append(f"<{tag}> runs something")
        for name in LOADING & set(attributes):
            if not attributes[name].startswith(("data:image/svg+xml;base64,", "#")):
                self.faults.append(f"<{tag} {name}> loads {attributes[name][:60]}")
        # What stands beside its own words needs none.
        decoration = attributes.get("role") == "presentation" and attributes.get("alt") == ""
        if tag == "img" and not attributes.get("alt") and not decoration:
            self.faults.append("a picture has no alternative text")
        if tag == "html" and not attributes.get("lang"):
            self.faults.append("the page names no language")

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if self._open[-1:] == ["script"] and data != SORT:
            self.faults.append("a script is not that of this package")
        if self._open[-1:] == ["style"] and re.search(r"url\(|@import|https?:", data):
            self.faults.append("the style sheet loads something")
        if self._open and self._open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def said(self):
        """All texts as one, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def count(self, tag):
        """How many elements of a name there are."""
        return sum(name == tag for name, _ in self.tags)
