"""The style sheet: contrast, paper, phones, and nothing from elsewhere."""

import re

import pytest

from rehearsal_torch.reporting.page.stylesheet import CSS

COLOURS = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", CSS))


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("ink", "paper"),
    [("ink", "paper"), ("soft", "paper"), ("blue", "paper"), ("ink", "warn-tint"), ("blue", "warn-tint"),
     ("ink", "tint"), ("soft", "tint"), ("warn", "paper")],
)  # fmt: skip
def test_texts_have_enough_contrast(ink, paper):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(COLOURS[ink], COLOURS[paper]) >= 4.5


def test_there_are_rules_for_paper_and_phones_and_boxes_scroll_by_themselves():
    assert CSS.count("{") == CSS.count("}")
    assert "@media print" in CSS
    assert "@media (max-width: 40rem)" in CSS
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", CSS)
    assert not re.search(r"url\(|@import|https?:|<", CSS)
