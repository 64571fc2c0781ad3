"""Bermuda's equations, fitted again: scripts/prepare.py bermuda source=CSV [out=FILE].

Says how far the refitted figures lie from those that the package ships; with `out`, writes them in the shipped form.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal_torch.commands.output import begins
from rehearsal_torch.commands.user_error import UserError, told
from rehearsal_torch.files.writing import write_text


def prepare_bermuda(options: Mapping[str, str]) -> int:
    """Refits, compares, and writes.

    Args:
        options: `source`, the measurements as CSV; `out`, where the figures go, if anywhere.

    Returns:
        The exit code, 0.

    Raises:
        UserError: for an unknown option, or a table that is missing or lacks a column.
    """
    from rehearsal_torch.datasets.bermuda import figures
    from rehearsal_torch.datasets.bermuda_regression import refit

    unknown = sorted(set(options) - {"source", "out"})
    if unknown or "source" not in options:
        raise UserError(f"expected source=CSV and perhaps out=FILE; got {unknown or 'no source'}", "bermuda")
    if "out" in options and Path(options["out"]).exists() and not begins(Path(options["out"]), '{\n "source": "'):
        raise UserError("is there already, and holds no equations that this command wrote", f"out={options['out']}", "Name another file, or move it away")
    with told("bermuda"):
        fitted = refit(options["source"])
    shipped = figures()
    differences = [abs(one - other) for label in fitted for one, other in zip(_numbers(fitted[label]), _numbers(shipped[label]), strict=True)]
    print(f"{len(differences)} figures refitted; the largest difference from the shipped ones is {max(differences):.2g}")
    if "out" in options:
        write_text(options["out"], json.dumps({"source": shipped["source"], **fitted}, indent=1) + "\n")
        print(f"written to {options['out']}")
    return 0


def _numbers(tree: Any) -> Iterator[float]:
    """Every number of nested dictionaries and lists, by sorted key."""
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from _numbers(tree[key])
    elif isinstance(tree, list):
        for each in tree:
            yield from _numbers(each)
    else:
        yield float(tree)
