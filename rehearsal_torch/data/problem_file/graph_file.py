"""The graph of a problem file: written there, or in a file of its own.

Source: ours; `graphs.formats` for the files.
"""

import re
from pathlib import Path
from typing import Any

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.graphs.edge_list import has_arrow
from rehearsal_torch.graphs.formats import ENDINGS, read_plain
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of

# The end of a file's name.
_ENDING = re.compile(r"[\w-]\.[A-Za-z]\w{0,9}\Z")


def graph_part(written: Any, folder: Path, found: Findings) -> Any:
    """The graph as a task holds it; that of a file as plain data, None with a fault.

    Edges of a file without a direction are in its plain data, {parents, undirected}.

    Args:
        written: The part ``graph``.
        folder: The folder that a relative file is in.
    """
    name = written.strip() if isinstance(written, str) else ""
    if not name or "\n" in name:
        return written
    if Path(name).suffix not in ENDINGS:
        if has_arrow(name) or _ENDING.search(name) is None:
            return written
        found.fault(
            "graph",
            f"{name}: expected a file with one of the endings {', '.join(ENDINGS)}: save the graph as one of "
            "these, or write its arrows here, [cause -> effect, ...]",
        )
        return None
    try:
        return read_plain(folder / name)
    except (OSError, ValueError) as error:
        found.fault("graph", str(error))
        return None


def built_graph(written: Any) -> RehearsalGraph | None:
    """The graph, if it is one; its faults are told by the reader of tasks.

    Args:
        written: The graph as a task holds it.
    """
    try:
        return None if written is None else graph_of({"graph": written})
    except ValueError:
        return None
