from html.parser import HTMLParser

from rehearsal_torch.reporting.decision_frame import LONGEST, decision_frame, decision_html
from tests.reporting.test_decision_frame import ACTED


class Read(HTMLParser):
    """The tags of a page, and its texts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_names_and_sentences_from_the_data_are_text():
    name = "<b>x</b>"
    odd = ACTED | {
        "identity": "<i>",
        "alteration": {name: 1.0},
        "findings": [{"kind": "note", "text": '<a href="x">&amp;'}],
    }
    text = decision_html(decision_frame([odd], [name]), ["<script>alert(1)</script>"])
    page = Read(text)
    assert set(page.tags) == {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name, "<i>", '<a href="x">&amp;', "<script>alert(1)</script>"} <= set(page.texts)


def test_long_tables_and_long_notes_are_cut_and_say_so():
    long = ACTED | {"findings": [{"kind": "note", "text": "word " * 100}]}
    page = Read(decision_html(decision_frame([long] * 12), []))
    assert page.tags.count("tr") == 11
    assert page.texts[-1] == "... and 2 more: to_frame() has all of them"
    notes = page.texts[-2]
    assert notes.endswith("word ...")
    assert len(notes) <= LONGEST + 4
