"""Missing cells of the rows of a problem file, by its part `missing`.

    complete        rows with a missing cell in a used column are left out, and counted; the default
    refuse          a missing cell is a fault
    {impute: m}     missing cells are imputed m times (`data.imputation`); here they are only counted

A column is used if its variable is in the graph. Cases to decide for need every variable of the context.

A row is complete if no column that is used has a missing cell in it. Leaving the others out is harmless
where completeness is chance, and keeps regressions of the outcomes right where it depends on their inputs
alone; where it depends on the outcomes, or on variables that no regression is given, estimates from complete
rows are biased. Only dependence on an observed variable can be tested: each used column is compared between
complete and incomplete rows, among the rows that have a value in it, by the rank test of Mann and Whitney,
and the p-values are adjusted for the number of columns by Holm's method.

Source: Little and Rubin (2019), Ch. 3 (complete cases); White and Carlin (2010) (when complete cases are
unbiased); Mann and Whitney (1947); Holm (1979).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pandas as pd
from scipy.special import ndtr

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.problem_file.cases_schema import VariableForm
from rehearsal_torch.data.problem_file.diagnostics import Findings, key, missing_words
from rehearsal_torch.data.rehearsal_task import MIN_ROWS
from rehearsal_torch.data.tables.reader import ReadTable, number_faults, numbers_of

# The shares of rows left out, and of cells missing in a column, above which a warning is due.
_MANY_ROWS, _MANY_CELLS = 0.05, 0.2
# The level of the tests, and the fewest rows of a group that is compared.
_SIGNIFICANCE, _FEWEST = 0.05, 5


@dataclass(frozen=True)
class MissingCells:
    """The missing cells of some columns.

    Attributes:
        rows: The number of rows.
        complete: Which of them have no missing cell, (rows,) bool.
        columns: Column to its number of missing cells, if it has some.
    """

    rows: int
    complete: np.ndarray
    columns: Mapping[str, int]

    @property
    def incomplete(self) -> int:
        """The number of rows with a missing cell."""
        return self.rows - int(self.complete.sum())

    def by_column(self) -> str:
        """The counts of the columns as text, the largest first, such as "bmi: 12, age: 3"."""
        ordered = sorted(self.columns.items(), key=lambda item: -item[1])
        return ", ".join(f"{name}: {count}" for name, count in ordered)


def missing_cells(frame: pd.DataFrame, names: Sequence[str]) -> MissingCells:
    """Counts missing cells; texts and infinite numbers are not missing."""
    empty = frame[list(names)].isna()
    counts = {name: count for name in names if (count := int(empty[name].sum()))}
    return MissingCells(len(frame), ~empty.any(axis=1).to_numpy(), counts)


def dependence(frame: pd.DataFrame, names: Sequence[str], complete: np.ndarray) -> dict[str, float]:
    """The adjusted p-values of "completeness does not depend on this column", smallest first; without
    constant columns, and those in which fewer than five complete or incomplete rows have a value.
    """
    p_values = {}
    for name in names:
        values = numbers_of(frame[name])
        known = np.isfinite(values)
        x, y = values[known & complete], values[known & ~complete]
        if min(len(x), len(y)) >= _FEWEST and np.ptp(values[known]) > 0:
            p_values[name] = _rank_test(x, y)
    return holm(p_values)


def _rank_test(x: np.ndarray, y: np.ndarray) -> float:
    """The p-value of equal distributions by Mann and Whitney's test: two-sided, by the normal approximation
    with corrections for ties and for continuity.
    """
    n, m = len(x), len(y)
    _, inverse, counts = np.unique(np.concatenate([x, y]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    u = ranks[:n].sum() - n * (n + 1) / 2
    ties = ((counts**3 - counts) / ((n + m) * (n + m - 1))).sum()
    deviation = np.sqrt(n * m / 12 * (n + m + 1 - ties))
    return float(min(1.0, 2 * ndtr(-(max(u, n * m - u) - n * m / 2 - 0.5) / deviation)))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted by Holm's method, smallest first."""
    names = sorted(p_values, key=p_values.__getitem__)
    scaled = [min(1.0, p_values[name] * (len(names) - place)) for place, name in enumerate(names)]
    return dict(zip(names, accumulate(scaled, max), strict=True))


def doubts(cells: MissingCells, frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Why complete rows may mislead: many are left out, or completeness depends on an observed column."""
    if not cells.incomplete:
        return []
    sentences = []
    share = cells.incomplete / cells.rows
    if share > _MANY_ROWS:
        why = f"{share:.1%} of the rows are left out because a cell is missing ({cells.by_column()})"
        remedy = "estimates are those of the complete rows; missing: {impute: 20} uses the others as well"
        sentences.append(f"{why}: {remedy}")
    p_values = dependence(frame, names, cells.complete).items()
    if columns := ", ".join(f"{name} (p = {p:.1g})" for name, p in p_values if p < _SIGNIFICANCE):
        sentences.append(
            f"whether a row is complete depends on {columns}, by Mann-Whitney tests adjusted by Holm's "
            "method: complete rows are no random sample; missing: {impute: 20} is right where missing cells "
            "depend on observed ones alone"
        )
    return sentences


@dataclass(frozen=True)
class Gaps:
    """What was done about missing cells.

    Attributes:
        cells: The missing cells of the used columns, of all rows.
        rule: complete, refuse, or how often missing cells are imputed.
        doubts: Why complete rows may mislead, one sentence each.
    """

    cells: MissingCells
    rule: str | int
    doubts: tuple[str, ...] = ()

    @property
    def imputations(self) -> int:
        """How often missing cells are imputed; 0 where none are."""
        return self.rule if isinstance(self.rule, int) and self.cells.incomplete else 0

    def card(self) -> dict[str, str]:
        """The entries of a data card; empty without missing cells."""
        cells = self.cells
        if not cells.incomplete:
            return {}
        done = f"imputed {self.imputations} times" if self.imputations else "left out"
        counts = f"{cells.incomplete} of {cells.rows} rows, {done}; by column: {cells.by_column()}"
        return {"missing cells": counts}

    def sentence(self) -> str:
        """What was done, with counts, without a full stop."""
        cells, done = self.cells, " and are left out"
        if self.imputations:
            times = f"{self.imputations} times, from the joint distribution of all used columns"
            done = f"; missing cells are imputed {times}"
        rows = f"{cells.incomplete} of {cells.rows} rows have a missing cell"
        return f"{rows}{done} (missing cells by column: {cells.by_column()})"


def without_gaps(
    rows: ReadTable,
    variables: Mapping[str, VariableForm],
    used: Sequence[str],
    rule: str | int,
    found: Findings,
    codings: Mapping[str, Coding],
) -> tuple[ReadTable, Gaps]:
    """The rows that are used, and what was done about missing cells; collects the faults of their columns.

    Args:
        rows: With the index of the level in place of each text.
        used: The columns whose missing cells count.
        rule: complete, refuse, or the number of imputations.
    """
    cells = missing_cells(rows.frame, used)
    columns = [name for name in variables if name in rows.frame.columns]

    def check(frame: pd.DataFrame, names: Sequence[str], least: int = 0) -> None:
        for fault in number_faults(frame, names, least, varying=True, two_texts="write kind: binary"):
            if fault.path in variables:
                words = f"column {fault.path!r} of {rows.where}: {fault.words}"
                found.fault(key("variables", fault.path), words)
            else:
                found.fault("data", f"{rows.where}: {fault}")

    if rule == "refuse":
        check(rows.frame, columns, MIN_ROWS)
        return rows, Gaps(cells, rule)
    earlier = len(found.faults)
    check(rows.frame, (), MIN_ROWS)
    # A cell that is no number is a fault in incomplete rows as well.
    for name in columns:
        check(rows.frame[[name]].dropna(), (name,))
    for name in used:
        known = cells.rows - cells.columns.get(name, 0)
        if known < MIN_ROWS <= cells.rows:
            lost = f"{cells.columns[name]} of {cells.rows} cells are missing"
            remedy = f"expected at least {MIN_ROWS} values: take the variable out"
            found.fault(key("variables", name), f"column {name!r} of {rows.where}: {lost}; {remedy}")
    classes = {name for name, coding in codings.items() if coding.reference is not None}
    for name in sorted(classes & set(cells.columns)) if isinstance(rule, int) else ():
        found.fault(
            "missing",
            f"{name} has {cells.columns[name]} missing cells, and is one of {len(codings[name].levels)} "
            "classes, which are not drawn since they have no order: write missing: complete, or fill the "
            "cells, for instance by a class of their own",
        )
    leave_out, reasons = rule == "complete" and cells.incomplete > 0, list[str]()
    if not found.faults:
        if leave_out:
            reasons = doubts(cells, rows.frame, [name for name in used if name not in classes])
        for sentence in reasons:
            found.warn("missing", "rows", sentence, rows=cells.rows, incomplete=cells.incomplete)
        _sparse_columns(cells, rows.frame, leave_out, found)
    gaps = Gaps(cells, rule, tuple(reasons))
    frame = rows.frame[cells.complete] if leave_out else rows.frame
    if len(frame) < MIN_ROWS <= cells.rows:
        found.fault(
            "missing",
            f"{len(frame)} of {cells.rows} rows of {rows.where} are complete (missing cells by column: "
            f"{cells.by_column()}); expected at least {MIN_ROWS}: write missing: {{impute: 20}}, or take "
            "variables with many missing cells out",
        )
    elif leave_out and len(found.faults) == earlier:
        check(frame, used)
    notes = (*rows.notes, gaps.sentence()) if leave_out or gaps.imputations else rows.notes
    return replace(rows, frame=frame, notes=notes), gaps


def _sparse_columns(cells: MissingCells, frame: pd.DataFrame, leave_out: bool, found: Findings) -> None:
    """Collects findings of columns of which many cells are missing, with the rows lost by them alone."""
    empty = frame[list(cells.columns)].isna()
    for name, count in cells.columns.items():
        share = count / cells.rows
        alone = int((empty[name] & (empty.sum(axis=1) == 1)).sum())
        consequence = "what is filled in for them rests on the others alone"
        if leave_out:
            remedy = "take the variable out, or write missing: {impute: 20}"
            consequence = f"{alone} rows are left out for this column alone: {remedy}"
        if share > _MANY_CELLS:
            words = f"{count} of {cells.rows} cells ({share:.0%}) are missing; {consequence}"
            found.of_variable(name, "values", words, share=share, missing=count, alone=alone)


def context_faults(cases: ReadTable, context: Sequence[str], found: Findings) -> None:
    """Collects faults of the context of cases; a missing cell has a remedy of its own."""
    for name in context:
        if words := missing_words(cases, name, "case"):
            needed = "a case needs every variable of its context; measure it"
            found.fault("cases", f"{cases.where}: {words}: {needed}, or write {name}: other")
        rows = cases.frame.dropna(subset=[name]) if name in cases.frame.columns else cases.frame
        for fault in number_faults(rows, [name], at=cases.at):
            found.fault("cases", f"{cases.where}: {fault}")
