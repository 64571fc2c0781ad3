"""The equations of the Bermuda reef: ``python -m reproduction.bermuda TABLE.csv [OUT.json]``.

Fits them again to the measurements (`problems.cases.bermuda`), and prints how far they are from the shipped
ones; with OUT, writes them in the form of the shipped file.

Source: Courtney et al. (2017) (measurements); Qin et al. (2023) (graph).
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.problems.cases.bermuda import PARENTS, figures

COLUMNS = {"Nut": "Nutrients_PC1"}


def refit(path: str | Path) -> dict[str, Any]:
    """The equations fitted to a CSV of measurements, a column for each variable; empty cells are missing.

    Returns:
        ``n - 1`` and ``n``, each with ``weights`` (child to parent to coefficient), ``intercepts``,
        ``residuals`` (standard deviation by maximum likelihood), ``rows`` and ``ranges`` (of the roots).
    """
    table, columns = pd.read_csv(path), [COLUMNS.get(name, name) for name in PARENTS]
    if missing := [name for name in columns if name not in table.columns]:
        raise ValueError(f"{path}: no column {missing}; it has {list(table.columns)}")
    raw = table[columns].set_axis(list(PARENTS), axis=1).astype(float)
    centred = raw - raw.mean()
    return {"n - 1": _fit(centred / raw.std(ddof=1)), "n": _fit(centred / raw.std(ddof=0))}


def _fit(table: Any) -> dict[str, Any]:
    fit: dict[str, Any] = {"weights": {}, "intercepts": {}, "residuals": {}, "rows": {}, "ranges": {}}
    for child, parents in PARENTS.items():
        rows = table[[child, *parents]].dropna().to_numpy()
        if not parents:
            fit["ranges"][child] = [float(rows.min()), float(rows.max())]
            continue
        design = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
        solution = np.linalg.lstsq(design, rows[:, 0], rcond=None)[0]
        fit["weights"][child] = dict(zip(parents, solution[1:].tolist(), strict=True))
        # Over complete columns the intercept is zero up to rounding.
        fit["intercepts"][child] = float(solution[0]) if len(rows) < len(table) else 0.0
        fit["residuals"][child] = float(np.sqrt(np.mean((rows[:, 0] - design @ solution) ** 2)))
        fit["rows"][child] = len(rows)
    return fit


def _leaves(tree: Any) -> Iterator[float]:
    """Every number in nested mappings and lists, in the order of sorted keys."""
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from _leaves(tree[key])
    elif isinstance(tree, list):
        for item in tree:
            yield from _leaves(item)
    else:
        yield float(tree)


def main(source: str, out: str | None = None) -> None:
    """Fits, compares and writes."""
    fitted, shipped = refit(source), figures()
    pairs = [
        pair for label in fitted for pair in zip(*map(_leaves, (fitted[label], shipped[label])), strict=True)
    ]
    largest = max(abs(refitted - original) for refitted, original in pairs)
    print(
        f"{len(pairs)} coefficients refitted; the largest difference from the shipped ones is {largest:.2g}"
    )
    if out is not None:
        text = json.dumps({"source": shipped["source"], **fitted}, indent=1) + "\n"
        Path(out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
