"""A study's README.md: headings, paragraphs, tables and figures, from top to bottom.

The parts of a README are *blocks* (a heading, a paragraph, or the lines of a table or list), separated by
empty lines, and *sections*: several blocks with the figures below them. Empty blocks and empty sections are
left out, so a section without rows returns `Section()`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.run_folder import RunFolder

Block = str | Sequence[str]
FIGURES = "figures"


@dataclass(frozen=True)
class Section:
    """A part of a README.

    Attributes:
        blocks: Headings, paragraphs and tables, in order.
        figures: File name (without ending) to figure, shown below the blocks.
    """

    blocks: Sequence[Block] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)


def write_readme(out: RunFolder, parts: Iterable[Block | Section]) -> None:
    """Writes README.md, and each figure to ``figures/`` as PNG and SVG.

    Args:
        out: The study's folder.
        parts: Blocks and sections from top to bottom; iterated within `drawing`, so that a generator can
            create figures.
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
    """A figure of the study, as Markdown.

    Args:
        name: File name in ``figures/``, without ending.
        title: Alternative text.
    """
    return f"![{title}]({FIGURES}/{name}.svg)"
