"""Tables of a study: rows as mappings of headings to cells, in a given order, as Markdown."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from rehearsal_torch.reporting.cross_table import as_markdown

Row = dict[str, Any]
Item = TypeVar("Item", bound=Hashable)


def table(rows: Sequence[Mapping[str, str]], headings: Sequence[str] = ()) -> list[str]:
    """Rows as lines of Markdown; a missing cell is "-".

    Args:
        rows: Heading to cell, for each row.
        headings: The columns; those of all rows, in order of first appearance, if left out.
    """
    columns = headings or distinct([heading for row in rows for heading in row])
    return as_markdown(columns, [[row.get(heading, "-") for heading in columns] for row in rows])


def distinct(items: Sequence[Item]) -> list[Item]:
    """Each item once, in order of first appearance."""
    return list(dict.fromkeys(items))


def ordered(rows: Sequence[Row], *orders: tuple[Callable[[Row], str], Sequence[str]]) -> list[Row]:
    """Rows sorted by the position of names in lists; rows that agree in all names keep their order.

    Args:
        rows: The rows.
        orders: A function from a row to a name, and the order of these names; names that are missing from
            the list follow in order of appearance.
    """
    ranks = [
        (name, {each: place for place, each in enumerate(distinct([*names, *map(name, rows)]))})
        for name, names in orders
    ]
    return sorted(rows, key=lambda row: [rank[name(row)] for name, rank in ranks])
