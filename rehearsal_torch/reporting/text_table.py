"""Tables as text, for a terminal and as Markdown; cells are shown as they are, with all their brackets."""

from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table

WIDTH = 110


def text_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    *,
    texts: Sequence[int] = (0,),
    folds: Sequence[int] | None = None,
    width: int = WIDTH,
) -> str:
    """A table for a terminal.

    Args:
        texts: The columns that hold words, aligned to the left; the others hold numbers.
        folds: The columns that may be folded; None for all.
        width: The characters of the widest line.
    """
    table = Table(title=title or None, title_justify="left", title_style="")
    for column, head in enumerate(heads):
        whole = folds is not None and column not in folds
        justify = "left" if column in texts else "right"
        table.add_column(head, justify=justify, overflow="fold", no_wrap=whole)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    text = StringIO()
    Console(file=text, width=width, color_system=None, force_terminal=False, markup=False, emoji=False).print(
        table
    )
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Heads and cells as lines of Markdown."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return [f"| {' | '.join(line)} |" for line in (heads, rule, *rows)]
