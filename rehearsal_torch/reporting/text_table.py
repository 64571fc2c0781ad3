"""Tables as text for a terminal, and as Markdown; cells are shown as they are, with all brackets."""

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
    """A table for a terminal, at most `width` characters wide. The columns of `texts` hold words, aligned to
    the left, the others numbers; those of `folds` may be folded, None for all.
    """
    table = Table(title=title or None, title_justify="left", title_style="")
    for column, head in enumerate(heads):
        unfolded = folds is not None and column not in folds
        justify = "left" if column in texts else "right"
        table.add_column(head, justify=justify, overflow="fold", no_wrap=unfolded)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    text = StringIO()
    out = Console(file=text, width=width, color_system=None, force_terminal=False, markup=False, emoji=False)
    out.print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Heads and cells as lines of Markdown."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return [f"| {' | '.join(line)} |" for line in (heads, rule, *rows)]
