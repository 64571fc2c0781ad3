"""A paper's page, README.md: paragraphs, tables and figures from top to bottom, and where its rows come from.

The parts of a page are *blocks* (a heading, a paragraph, or the lines of a table or list), separated by empty
lines, and *sections*: several blocks with the figures below them. Empty blocks and sections are left out, so
that a section without rows returns `Section()`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from matplotlib.figure import Figure

from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.text_table import markdown_table
from rehearsal_torch.run_folder import RunFolder

Block = str | Sequence[str]
Row = dict[str, Any]
Item = TypeVar("Item", bound=Hashable)
FIGURES = "figures"
RUN = "run.json"
# The end of a commit whose checkout had uncommitted changes.
CHANGES = "+changes"


@dataclass(frozen=True)
class Section:
    """A part of a page: headings, paragraphs and tables, and figures by their file names below them."""

    blocks: Sequence[Block] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)


def write_page(out: RunFolder, parts: Iterable[Block | Section]) -> None:
    """Writes README.md, and each figure to ``figures/`` as PNG and SVG.

    Args:
        out: The folder of the results.
        parts: Blocks and sections; iterated within `drawing`, so that a generator can create figures.
    """
    blocks: list[str] = []
    with drawing():
        for part in parts:
            section = part if isinstance(part, Section) else Section([part])
            blocks += [each if isinstance(each, str) else "\n".join(each) for each in section.blocks if each]
            for name, figure in section.figures.items():
                save(figure, out.path / FIGURES, name)
                blocks.append(image(name, name.replace("_", " ")))
    out.write("README.md", "\n\n".join(blocks) + "\n")


def image(name: str, title: str) -> str:
    """A figure of the page, as Markdown; `name` is its file in ``figures/``, without ending."""
    return f"![{title}]({FIGURES}/{name}.svg)"


def table(rows: Sequence[Mapping[str, str]], headings: Sequence[str] = ()) -> list[str]:
    """Rows, heading to cell, as lines of Markdown; a missing cell is "-".

    Args:
        headings: The columns; those of all rows, in order of first appearance, if left out.
    """
    columns = headings or distinct([heading for row in rows for heading in row])
    return markdown_table(columns, [[row.get(heading, "-") for heading in columns] for row in rows])


def distinct(items: Sequence[Item]) -> list[Item]:
    """Each item once, in order of first appearance."""
    return list(dict.fromkeys(items))


def ordered(rows: Sequence[Row], *orders: tuple[Callable[[Row], str], Sequence[str]]) -> list[Row]:
    """Rows sorted by the positions of names in lists; rows that agree in all names keep their order.

    Args:
        orders: A function from a row to a name, and the order of these names; names that the list lacks
            follow in order of appearance.
    """
    ranks = [
        (name, {each: place for place, each in enumerate(distinct([*names, *map(name, rows)]))})
        for name, names in orders
    ]
    return sorted(rows, key=lambda row: [rank[name(row)] for name, rank in ranks])


def origin(paper: str, lines: Sequence[Mapping[str, str]], unit: str = "job") -> str:
    """How the rows were made; commits and versions stand in files beside the page.

    Args:
        paper: Name of the paper's module.
        lines: The lines of ``jobs.csv``.
        unit: What a line stands for.
    """
    where = "their commits in jobs.csv, versions in run.json"
    return f"Made by `python -m reproduction.{paper}`: {len(lines):,} {unit}s, {where}"


def caution(lines: Iterable[Mapping[str, str]], unit: str = "jobs") -> str:
    """A warning that some rows do not come from a clean commit; empty if all do."""
    commits = [line["commit"] for line in lines]
    unclean = sum(commit.endswith(CHANGES) for commit in commits)
    if not unclean:
        return ""
    return (
        f"> **Provenance.** {unclean} of {len(commits)} {unit} were made from trees with uncommitted changes "
        "(`+changes` in jobs.csv), so that their commit alone does not reproduce them. They stay until they "
        "are made again from a clean commit."
    )


def minutes(lines: Iterable[Mapping[str, str]]) -> str:
    """The total processor time of all jobs, from the lines of ``jobs.csv``."""
    return f"{sum(float(line['seconds']) for line in lines) / 60:.0f} minutes of one core"
