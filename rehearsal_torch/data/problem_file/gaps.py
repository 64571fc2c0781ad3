"""Missing cells of the rows of a problem file, by its part `missing`.

    complete        rows with a missing cell in a used column are left out, and counted; the default
    refuse          a missing cell is a fault
    {impute: m}     missing cells are imputed m times, by our own imputation (`data.missing.imputation`) or
                    another, {impute: m, by: statsmodels} (`data.missing.chained`); here they are only counted

A column is used if its variable is in the graph. Cases to decide for need every variable of the context.

Source: `data.missing.cells` (what is counted and tested).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.missing.cells import MissingCells, doubts, left_out, missing_cells
from rehearsal_torch.data.missing.chained import installed, lacking, loosened
from rehearsal_torch.data.missing.imputation import IMPUTERS, Imputing
from rehearsal_torch.data.problem_file.findings import Findings, key
from rehearsal_torch.data.problem_file.form import VariableForm
from rehearsal_torch.data.reading import ReadTable, number_faults, numbers_of
from rehearsal_torch.data.rehearsal_task import MIN_ROWS

_DRAWN = dict(
    zip(
        IMPUTERS,
        ("from the joint distribution of all used columns", "by statsmodels' chained equations"),
        strict=True,
    )
)


@dataclass(frozen=True)
class Gaps:
    """What became of missing cells.

    Attributes:
        cells: Those of the used columns, of all rows.
        rule: complete, refuse, or how missing cells are imputed.
        doubts: Why complete rows, or chained equations, may mislead, one sentence each.
    """

    cells: MissingCells
    rule: str | Imputing
    doubts: tuple[str, ...] = ()

    @property
    def imputing(self) -> Imputing | None:
        """How missing cells are imputed; None where nothing is."""
        return self.rule if isinstance(self.rule, Imputing) and self.cells.incomplete else None

    @property
    def imputations(self) -> int:
        """m; 0 where nothing is imputed."""
        return 0 if self.imputing is None else self.imputing.count

    def card(self) -> dict[str, str]:
        """The entries of a data card; empty without missing cells."""
        if not self.cells.incomplete:
            return {}
        cautions = {f"caution: missing cells {place}": each for place, each in enumerate(self.doubts, 1)}
        how = self.imputing
        done = "left out" if how is None else f"imputed {how.count} times (by: {_called(how)})"
        found = (
            f"{self.cells.incomplete} of {self.cells.rows} rows, {done}; by column: {self.cells.by_column()}"
        )
        return {"missing cells": found, **cautions}


def without_gaps(
    rows: ReadTable,
    variables: Mapping[str, VariableForm],
    used: Sequence[str],
    rule: str | Imputing,
    found: Findings,
    codings: Mapping[str, Coding] = MappingProxyType({}),
) -> tuple[ReadTable, Gaps]:
    """The rows that are used, with faults of their columns, and what became of missing cells.

    Args:
        rows: The rows, with the index of the level in place of texts.
        variables: What the file says of each variable.
        used: The columns that are used.
        rule: complete, refuse, or how missing cells are imputed.
        found: Collects faults and warnings.
        codings: What texts are as numbers.
    """
    cells = missing_cells(rows.frame, used)
    there = [name for name in variables if name in rows.frame.columns]
    if rule == "refuse":
        _told(rows.frame, there, rows.where, variables, found, MIN_ROWS)
        return rows, Gaps(cells, rule)
    if isinstance(rule, Imputing) and rule.by != IMPUTERS[0] and (words := lacking()):
        found.fault("missing", words)
    told = len(found.faults)
    _told(rows.frame, (), rows.where, variables, found, MIN_ROWS)
    # Each column by its own cells: what is no number is a fault, whether or not its row is complete.
    for name in there:
        _told(rows.frame[[name]].dropna(), (name,), rows.where, variables, found)
    for name in used:
        known = cells.rows - cells.columns.get(name, 0)
        if known < MIN_ROWS <= cells.rows:
            found.fault(
                key("variables", name),
                f"column {name!r} of {rows.where}: {cells.columns[name]} of {cells.rows} cells are missing; "
                f"expected at least {MIN_ROWS} values: take the variable out",
            )
    classes = {name for name, each in codings.items() if each.reference is not None}
    for name in sorted(classes & set(cells.columns)) if isinstance(rule, Imputing) else ():
        found.fault(
            "missing",
            f"{name} has {cells.columns[name]} missing cells, and is one of {len(codings[name].levels)} "
            "classes, which are not drawn since they have no order: write missing: complete, or fill the "
            "cells, for instance by a class of their own",
        )
    if rule != "complete" or not cells.incomplete:
        chained = isinstance(rule, Imputing) and rule.by != IMPUTERS[0] and not found.faults
        close = (
            loosened(used, np.stack([numbers_of(rows.frame[name]) for name in used], -1)) if chained else []
        )
        for sentence in close:
            found.warn("missing", sentence)
        gaps = Gaps(cells, rule, tuple(close))
        return replace(rows, notes=(*rows.notes, _sentence(gaps))) if gaps.imputations else rows, gaps
    unsure = [] if found.faults else doubts(cells, rows.frame, [name for name in used if name not in classes])
    for sentence in unsure:
        found.warn("missing", sentence)
    gaps = Gaps(cells, rule, tuple(unsure))
    kept = rows.frame[cells.complete]
    if len(kept) < MIN_ROWS <= cells.rows:
        found.fault(
            "missing",
            f"{len(kept)} of {cells.rows} rows of {rows.where} are complete (missing cells by column: "
            f"{cells.by_column()}); expected at least {MIN_ROWS}: write missing: {{impute: 20}}, or take "
            "variables with many missing cells out",
        )
    elif len(found.faults) == told:
        _told(kept, used, rows.where, variables, found)
    return replace(rows, frame=kept, notes=(*rows.notes, _sentence(gaps))), gaps


def case_faults(cases: ReadTable, context: Sequence[str], found: Findings) -> None:
    """Faults of the context of cases; a missing cell has a remedy of its own.

    Args:
        context: The variables of the context.
        found: Collects faults.
    """
    for name in context:
        column = cases.frame[name] if name in cases.frame.columns else pd.Series(dtype=float)
        empty = column.isna().to_numpy(dtype=bool)
        if empty.any():
            first = cases.at(int(column.index[int(empty.argmax())]))
            found.fault(
                "cases",
                f"{cases.where}: {name} is missing in {int(empty.sum())} of {len(empty)} cases, first in "
                f"{first}: a case needs every variable of its context; measure it, leave the case out, "
                f"or write {name}: other",
            )
        rest = cases.frame[~empty] if len(column) else cases.frame
        for each in number_faults(rest, [name], at=cases.at):
            found.fault("cases", f"{cases.where}: {each}")


def _sentence(gaps: Gaps) -> str:
    """What became of missing cells, without a full stop."""
    if gaps.imputing is None:
        return left_out(gaps.cells)
    return (
        f"{gaps.cells.incomplete} of {gaps.cells.rows} rows have a missing cell; missing cells are imputed "
        f"{gaps.imputations} times, {_DRAWN[gaps.imputing.by]} (missing cells by column: "
        f"{gaps.cells.by_column()})"
    )


def _called(how: Imputing) -> str:
    """What draws the cells, with the version of a library, on which draws may depend."""
    return how.by if how.by == IMPUTERS[0] else f"{how.by} {installed()}"


def _told(
    frame: pd.DataFrame,
    names: Sequence[str],
    where: str,
    variables: Mapping[str, VariableForm],
    found: Findings,
    least: int = 0,
) -> None:
    """The faults of columns of numbers, at their variables."""
    for each in number_faults(frame, names, least, varying=True):
        column = next((name for name in variables if each.startswith(f"{name}: ")), None)
        if column is None:
            found.fault("data", f"{where}: {each}")
        else:
            words = each.removeprefix(f"{column}: ").replace(": write 0 and 1", ": write kind: binary")
            found.fault(key("variables", column), f"column {column!r} of {where}: {words}")
