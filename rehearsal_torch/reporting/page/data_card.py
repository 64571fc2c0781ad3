"""The data card of a run: sizes, ranges, units and the fingerprint of the data, as they were recorded."""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.reporting.card_lines import in_words, label
from rehearsal_torch.reporting.page.assumptions import limits
from rehearsal_torch.reporting.page.markup import Child, Markup, facts, joined, table, tag
from rehearsal_torch.reporting.page.material import Material, finite, listed, mapping, shown

# What other sections show.
_ELSEWHERE = frozenset(
    {"graph", "box", "actions", "region", "caution", "ranges", "features", "desired", "reward"}
)
LONGEST, VARIABLES = 300, 400


def data_card(of: Material) -> Markup:
    """The section's content; says so where a run recorded no card."""
    if not of.card:
        return tag("p", "The run recorded no data card.")
    simple, tables = list[tuple[str, Child]](), list[Markup]()
    for key, value in of.card.items():
        if key in _ELSEWHERE or key.startswith("caution"):
            continue
        if isinstance(value, Mapping) and value and all(isinstance(each, Mapping) for each in value.values()):
            tables.append(_nested(key, mapping(value)))
        else:
            simple.append((label(key), _cell(key, in_words(key, value, of.card))))
    return joined(
        [
            facts([*simple, *limits(of)]),
            _ranges(mapping(of.card.get("ranges"))),
            _features(mapping(of.card.get("features"))),
            *tables,
        ]
    )


def _cell(key: str, words: str) -> Child:
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
    return tag("code", cut) if key == "fingerprint" else cut


def _ranges(found: Mapping[str, Any]) -> Markup:
    rows = [
        [name, shown(ends[0]), shown(ends[1])]
        for name, ends in ((name, listed(value)) for name, value in found.items())
        if len(ends) == 2
    ]
    return table("Observed ranges", ["variable", "smallest", "largest"], rows[:VARIABLES])


def _features(found: Mapping[str, Any]) -> Markup:
    rows = [
        [name, *(shown(each.get(key)) for key in ("min", "median", "max")), str(each.get("unit", ""))]
        for name, each in ((name, mapping(value)) for name, value in found.items())
    ]
    heads = ["variable", "smallest", "median", "largest", "unit"]
    return table("Observed variables", heads, rows[:VARIABLES], texts=(0, 4))


def _nested(key: str, found: Mapping[str, Any]) -> Markup:
    """A mapping of mappings as a table with a column for each key."""
    lines = {name: mapping(value) for name, value in found.items()}
    heads = list(dict.fromkeys(head for line in lines.values() for head in line))
    rows = [[name, *(_short(line.get(head, "")) for head in heads)] for name, line in lines.items()]
    words = [
        place
        for place, head in enumerate(heads, 1)
        if any(finite(line.get(head)) is None for line in lines.values())
    ]
    return table(key.replace("_", " "), ["", *heads], rows[:VARIABLES], texts=(0, *words))


def _short(value: Any) -> str:
    words = value if isinstance(value, str) else shown(value)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
