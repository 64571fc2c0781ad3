"""User-supplied table: observations of the past, and cases to decide on.

The observations show what happened without rehearsal. The cases are rows of a second file, of which only the
context is needed, or held-out rows of the table. What another action would have brought is unknown, so a
decision cannot be scored. For a held-out row one comparison is possible: whether the predicted probability of
a desired outcome under no action, which methods report as well, agrees with the recorded outcome.

Rows that belong together (``unit`` of the task: a patient, a store) are held out together, so that a held-out
row has no relative among the rows to learn from.

If no observation lies in the desired region, or every one does, the outcome to be predicted is a constant,
and every action gets the same probability. The region often has other units, or a bound on the wrong side.

Source: Du et al. (2026), Sec. 2.1 (what is given); the score is ours, after Brier (1950).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import coded, lost_classes, of_numbers, rare_classes, uncoded
from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.finding import recorded
from rehearsal_torch.data.graph_check import Refuted, refuted_claims
from rehearsal_torch.data.problem_file.diagnostics import Findings, TaskError
from rehearsal_torch.data.problem_file.task_file import REHEARSAL_PARTS, task_content
from rehearsal_torch.data.records import Records, content_order
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask, task_of
from rehearsal_torch.data.tables.decision_cases import (
    assumed_usual,
    cases_in_codes,
    costs_in,
    parted,
    present_in,
    with_usual,
)
from rehearsal_torch.data.tables.in_memory import SET, data_frame
from rehearsal_torch.data.tables.parquet import Needed
from rehearsal_torch.data.tables.reader import (
    ReadTable,
    TableError,
    number_columns,
    number_faults,
    numbers_of,
    read_table,
)
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.schema import listed, meant
from rehearsal_torch.problems.cases.task_warnings import note_findings
from rehearsal_torch.problems.problem import Facts, OwnData, RehearsalProblem, as_table, ranges_of
from rehearsal_torch.spaces.box import as_tensor
from rehearsal_torch.spaces.polytope import Polytope

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from torch import Tensor

    from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
    from rehearsal_torch.data.table import Table


def set_faults(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The faults of variables with values that a decision set, by the columns that mark these."""
    marked = [name for name in names if f"{SET}{name}" in frame.columns]
    counts = {name: int((frame[f"{SET}{name}"].fillna(1) != 0).sum()) for name in marked}
    return [
        f"{SET}{name}: expected observations; {count} rows have a value of {name} that was set by a "
        "decision: leave those rows out"
        for name, count in counts.items()
        if count
    ]


def unit_faults(frame: pd.DataFrame, unit: str | None) -> list[str]:
    """The faults of the column that says which rows belong together."""
    if unit is None:
        return []
    if unit not in frame.columns:
        return [f"unit: no column {unit!r}; {meant(unit, [str(name) for name in frame.columns])}"]
    column = frame[unit]
    if empty := column.index[column.isna()].tolist():
        return [f"unit: {unit!r} is missing in line {empty[0] + 2}: name the unit of every row"]
    if (count := column.nunique()) < 2:
        return [f"unit: {unit!r} is the same in all rows; expected at least 2 units, got {count}"]
    return []


# Sides of the region that no row is on, of which a sentence names at most these.
MOST = 3
REMEDY = "check its bounds and their units"


def one_sided(table: Records, region: Polytope) -> str:
    """One sentence if none of the observations, or every one, lies in the region; empty otherwise."""
    slack, rows = region.slacks(table.columns(region.names)), f"the {len(table)} rows"
    inside = (slack >= 0).all(-1)
    if bool(inside.all()):
        unknown = "the rows do not show what would leave it"
        return f"every one of {rows} lies in the desired region: {unknown}; {REMEDY}"
    if bool(inside.any()):
        return ""
    faces = np.flatnonzero(~(slack >= 0).any(0)).tolist()
    sides = [_face_text(region, face, table.columns(region.names)) for face in faces[:MOST]]
    rest = [f"{len(faces) - MOST} more bounds are met by no row"] if len(faces) > MOST else []
    reasons = "; ".join([*sides, *rest]) or "each of its bounds is met by some row, all of them by none"
    unknown = "the rows do not show what leads there"
    return f"none of {rows} lies in the desired region: {reasons}: {unknown}; {REMEDY}"


def _face_text(region: Polytope, face: int, values: np.ndarray) -> str:
    """A face of the region that no row meets, and how close the rows (n, |Y|) come, in words."""
    normal, offset = region.rows[face], float(region.limits[face])
    active = np.flatnonzero(normal).tolist()
    if len(active) == 1:
        (k,), slope = active, float(normal[active[0]])
        name, column, bound = region.names[k], values[:, k], f"{offset / slope + 0.0:.6g}"
        if slope < 0:
            return f"{name} is at most {float(column.max()):.6g}, and the region asks for at least {bound}"
        return f"{name} is at least {float(column.min()):.6g}, and the region asks for at most {bound}"
    total = " + ".join(f"{float(normal[k]):.6g} {region.names[k]}" for k in active)
    smallest = float((values @ normal).min())
    text = f"{total} is at least {smallest:.6g}, and the region asks for at most {offset:.6g}"
    return text.replace("+ -", "- ")


def written_task(
    task: str | Path | Mapping[str, Any] | RehearsalTask | None,
    columns: Sequence[str] | None = None,
    rows: pd.DataFrame | None = None,
    notes: list[str] | None = None,
) -> RehearsalTask:
    """Reads a rehearsal task; TaskError lists all faults. By `rows`, codings without levels or reference are
    completed; `notes` collects a sentence on each of these.
    """
    if isinstance(task, RehearsalTask):
        return task
    source, plain = task_content(task, REHEARSAL_PARTS)
    parsed = task_of(plain, source, columns, rows)
    if rows is not None and notes is not None and parsed.codings:
        by_rows = [name for name, coding in plain["codings"].items() if isinstance(coding, str)]
        notes += [f"{name} is coded {parsed.coded[name].words}" for name in by_rows]
    return parsed


CAUTION = (
    "observational data: recommendations rest on the given graph, and on no hidden common cause beyond it"
)
RULES = ("random", "last")
# Rows from a file, or in memory: a table, or a data frame of pandas, polars or pyarrow.
Rows: TypeAlias = "str | Path | Table | ReadTable | IntoDataFrame"


class RehearsalTable(OwnData, RehearsalProblem):
    """A table and a task. Rows of a table in memory are numbered like lines of a file: the header is line 1.

    Args:
        path: The observations: a file (see `data.tables.reader`), a data frame, or a table; columns may be
            ignored.
        task: Roles of variables: a YAML file, or its content, with its `unit` of rows and `codings` of texts.
        contexts: The cases, in the same forms, with the context's columns; None decides on the held-out rows.
        identity: A column of the cases' file with their names; None takes the row's line in the file.
        validation: Share of rows held out, in [0, 1); None for a fifth, at least ten (0 with `contexts`).
        kept: Which rows are held out: "random", or the "last" of the file.
        seed: Seed of the random choice, and of imputations.
        imputations: m, how often missing cells are imputed (`data.imputation`); None or 0 refuses them.
        present: Whether cases have present values of actions, kept if nothing is done; empty if unknown.

    TableError and TaskError list all faults; ValueError if there are no cases, or an argument is out of
    range.
    """

    def __init__(
        self,
        path: Rows | None,
        task: str | Path | Mapping[str, Any] | RehearsalTask | None,
        contexts: Rows | None = None,
        identity: str | None = None,
        validation: float | None = None,
        kept: str = "random",
        seed: int = 0,
        imputations: int | None = None,
        present: bool = True,
    ) -> None:
        if kept not in RULES:
            raise ValueError(f"kept: expected {' or '.join(RULES)}; got {kept!r}")
        if validation is not None and not 0 <= validation < 1:
            raise ValueError(f"validation: expected a share in [0, 1); got {validation}")
        faults: list[str] = []
        table = rows_in(path, "path", "the table", faults, lambda names: _columns_of(task, identity, names))
        # The rows as they were read, with their texts.
        self.frame, frame, where = table.frame, table.frame, table.where
        notes: list[str] = []
        self.rare: dict[str, str] = {}
        try:
            self.task = written_task(task, rows=frame, notes=notes)
        except TaskError as error:
            # Faults in the columns that the task does name are reported together with the task's.
            numeric = [name for name in error.named or () if of_numbers(frame, name)]
            faults += number_faults(frame, numeric, MIN_ROWS, varying=True) if numeric else []
            if not faults or not error.faults:
                raise
            raise TaskError(f"{error.source} and {where}", [*error.faults, *faults], error.named) from error
        self.source, names = Path(where).name, self.task.graph.names
        # A table in memory of numbers alone holds codes.
        texts = {} if _is_table(path) else self.task.coded
        if texts:
            self.rare = rare_classes(frame, texts)
            coding = coded(frame, texts, texts)
            faults += coding.faults
            frame, names = coding.frame, tuple(name for name in names if name not in coding.broken)
        faults += [*unit_faults(frame, self.task.unit), *set_faults(frame, names)]
        if imputations:
            for name in names:
                observed = frame.dropna(subset=frame.columns.intersection([name]))
                faults += number_faults(observed, [name], MIN_ROWS, varying=True)
        else:
            faults += number_faults(frame, names, MIN_ROWS, varying=True)
        faults = [uncoded(fault) for fault in faults]
        if faults:
            raise TableError(listed(where, faults))
        names = self.task.graph.names
        units = None if self.task.unit is None else [str(value) for value in frame[self.task.unit]]
        complete = frame[list(names)].notna().all(axis=1).to_numpy()
        order = content_order([numbers_of(frame[name]) for name in names])
        train, held_out = parted(complete, validation, kept, seed, contexts is not None, units, order)
        self._places, ranks = held_out, np.argsort(order)
        self._order = np.argsort(ranks[[*train, *held_out]])
        train_name = f"{where}, rows to learn from"
        if lost_levels := lost_classes(frame.iloc[train], self.task.codings):
            raise TableError(listed(train_name, lost_levels))
        self.past_units = None if units is None else tuple(units[row] for row in train)
        self.aside_units = None if units is None else tuple(units[row] for row in held_out)
        self._imputed = (imputations or 0, seed)
        if imputations:
            values = np.stack([numbers_of(frame[name].iloc[train]) for name in names], -1)
        else:
            values = number_columns(frame, names, train_name, MIN_ROWS, varying=True, keep=train)
        # Tests of the graph know that rows may be a time series.
        self._past = Records(names, values, np.array(train))
        self._aside: Records | None = None
        if held_out:
            held_values = number_columns(frame, names, f"{where}, held-out rows", MIN_ROWS, keep=held_out)
            self._aside = Records(names, held_values)
        _check_levels(self.task, self.rows)
        self.task = with_usual(self.task, self.rows)
        self.share = float(self.task.region.holds(self.rows.columns(self.task.outcomes)).mean())
        second = None if contexts is None else rows_in(contexts, "dataset.contexts", "the cases")
        cases, origin = (frame.iloc[held_out], where) if second is None else (second.frame, second.where)
        self.read_notes = (*table.notes, *notes, *(() if second is None else second.notes))
        if not len(cases):
            remedy = "name a file with dataset.contexts=FILE, or hold rows out with dataset.validation=0.2"
            raise ValueError(f"{origin}: no cases to decide on: {remedy}")
        self.recorded = contexts is None
        self.case_file = "" if second is None or second.listed else Path(origin).name
        if not self.recorded and not _is_table(contexts):
            cases = cases_in_codes(cases, origin, self.task)
        self.contexts, self.identities = cases_in(cases, origin, self.task.context, identity)
        has_present = present and contexts is not None
        self.present = present_in(cases, origin, self.task.box.names) if has_present else [{}] * len(cases)
        self._hold_present(cases_stated=present)
        # Rows of the past need no costs of their own, until one of them is decided for.
        costs = self.task.costs.items()
        costs_needed = {name: cost for name, cost in costs if present or cost.column in cases.columns}
        self.unit_costs = costs_in(cases, origin, costs_needed)

    def _hold_present(self, cases_stated: bool = True) -> None:
        """Adds to the task what is learnt so that cases keep the present values of what is not set; all of
        them where the cases are not stated yet.
        """
        stated = {name for values in self.present for name in values}
        self.task = self.task.holding_present(stated if cases_stated else self.task.box.names)

    @cached_property
    def past(self) -> Table:
        """The rows to learn from, in which missing cells are imputed."""
        from rehearsal_torch.data.imputation import ImputedTable

        (count, seed), rows = self._imputed, self._past
        table = ImputedTable.of(rows.names, as_tensor(rows.values), count, seed) if count else as_table(rows)
        if self.past_units is not None:
            table = replace(table, units=_int_tensor(np.unique(self.past_units, return_inverse=True)[1]))
        return replace(table, places=_int_tensor(self._past.places))

    @cached_property
    def rows(self) -> Records:
        """The rows to learn from as NumPy's numbers."""
        return self.past.records() if self._imputed[0] else self._past

    @cached_property
    def aside(self) -> Table | None:
        """The held-out rows, if there are some."""
        return None if self._aside is None else as_table(replace(self._aside, places=None))

    @cached_property
    def given(self) -> Tensor:
        """The contexts of the cases, (B, |X|)."""
        return as_tensor(self.contexts)

    def observations(self) -> Table:
        """The rows to learn from, in an order that does not depend on the file's (`content_order`)."""
        return self.past

    def facts(self) -> Facts:
        """Notes on files, desired region and present values; units, and how often cells are imputed."""
        assumed = assumed_usual(self.task, self.present)
        rare = (f"{name}: {text}" for name, text in self.rare.items())
        return replace(
            super().facts(),
            notes=(*self.read_notes, *rare, *self.region_notes, *([assumed] if assumed else [])),
            units=self.past_units,
            seen_by=self.seen_by,
            imputations=self._imputed[0],
        )

    def _note(self, findings: Findings) -> None:
        note_findings(self, findings)

    def held_out(self) -> Table:
        """The held-out rows; if there are none, the rows to learn from: early stopping is then not valid."""
        return self.past if self.aside is None else self.aside

    @cached_property
    def refuted(self) -> tuple[Refuted, ...]:
        """The missing arrows of the graph that the rows to learn from contradict."""
        return refuted_claims(self.rows, self.task, self.past_units)

    @cached_property
    def region_notes(self) -> Sequence[str]:
        """That none of the rows to learn from, or every one, lies in the desired region."""
        note = one_sided(self.rows, self.task.region)
        return (note,) if note else ()

    def seen_by(self, fingerprint: str | None) -> bool | None:
        """Whether a model has seen the held-out rows: no if fitted to the others, yes to all, else None."""
        if self.aside is None or not self.recorded:
            return False
        if fingerprint is None:
            return None
        if self.past.fingerprint() == fingerprint:
            return False
        return True if as_table(self.every).fingerprint() == fingerprint else None

    @property
    def every(self) -> Records:
        """All rows, in the order of `observations`: those to learn from, and those held out."""
        if self._aside is None:
            return self.rows
        return Records(self.rows.names, np.concatenate([self.rows.values, self._aside.values])[self._order])

    def count(self) -> int:
        """The number of cases."""
        return len(self.contexts)

    def case(self, index: int) -> RehearsalCase:
        """Case number `index`."""
        if not 0 <= index < self.count():
            raise IndexError(f"expected a case in 0 ... {self.count() - 1}; got {index}")
        from rehearsal_torch.data.decision import RehearsalCase

        return RehearsalCase(
            self.identities[index],
            dict(zip(self.task.context, self.given[index], strict=True)),
            self.task.box.bounds(),
            self.aside_units[index] if self.recorded and self.aside_units is not None else None,
            self.task.box.levels,
            self.present[index],
            codings=self.task.codings,
            costs=CaseCosts.of(self.task.costs, self.task.worth, self.present[index], self.unit_costs[index]),
        )

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """For a held-out row under no action: whether its outcome was desired, the predicted probability, the
        squared difference (``brier_no_action``), and the share of desired rows to learn from
        (``constant_no_action``). The alteration itself is never scored: its outcome is unknown.
        """
        if not self.recorded or self.aside is None or decision.baseline is None:
            return {}
        predicted = decision.baseline.point
        row = self.aside.columns(self.task.outcomes)[self.identities.index(case.identity)]
        desired = float(self.task.region.contains(row))
        return {
            "desired_no_action": desired,
            "predicted_no_action": predicted,
            "constant_no_action": self.share,
            "brier_no_action": (predicted - desired) ** 2,
        }

    def card(self) -> Mapping[str, Any]:
        """Sizes, roles, ranges, the share of desired outcomes, findings and the fingerprint."""
        return {
            "source": self.source,
            "rows": len(self.rows),
            "kept_aside": 0 if self._aside is None else len(self._aside),
            **({} if self.past_units is None else {"units": len(set(self.past_units))}),
            "cases": self.count(),
            **({"case file": self.case_file} if self.case_file else {}),
            "desired": round(self.share, 4),
            **replace(self.task, candidates=self.task.offered, holding=()).to_plain(),
            "ranges": ranges_of(self.rows),
            "caution": CAUTION,
            **recorded(self.findings()),
            "fingerprint": self.past.fingerprint(),
        }


def cases_in(
    frame: pd.DataFrame, origin: str, context: Sequence[str], identity: str | None = None
) -> tuple[np.ndarray, list[str]]:
    """The contexts of cases, (B, |X|), and their names: those of a column, or their lines in the file."""
    values = number_columns(frame, context, origin)
    if identity is not None and identity not in frame.columns:
        columns = ", ".join(map(str, frame.columns[:30]))
        raise ValueError(f"identity: {origin} has no column {identity!r}; it has {columns}")
    identities = list(map(str, frame.index + 2 if identity is None else frame[identity]))
    if repeats := repeated(identities):
        where = f"is in column {identity!r} of {origin} more than once"
        raise ValueError(f"identity: {repeats[0]!r} {where}: number the cases, or leave identity out")
    return values, identities


def rows_in(
    given: Rows | None, role: str, called: str, faults: list[str] | None = None, needed: Needed | None = None
) -> ReadTable:
    """Rows as a data frame, numbered from 0 if in memory, with their name in messages."""
    if isinstance(given, ReadTable):
        return given
    if given is None or isinstance(given, str | Path):
        return read_table(given, role, faults, needed=needed)
    if _is_table(given):
        if count := int(given.altered.any(-1).sum()):
            raise TableError(
                f"{called}: expected observations; {count} rows have a value that was set by a decision: "
                "leave those rows out, such as by table.unaltered(names)"
            )
        rows = pd.DataFrame(given.values.detach().cpu().numpy(), columns=list(given.names))
        return ReadTable(rows, called)
    return ReadTable(data_frame(given, called, faults), called)


def _is_table(rows: Any) -> TypeGuard[Table]:
    # Whoever has a table of tensors has loaded its module.
    module = sys.modules.get("rehearsal_torch.data.table")
    return module is not None and isinstance(rows, module.Table)


def _columns_of(
    task: str | Path | Mapping[str, Any] | RehearsalTask | None, identity: str | None, names: Sequence[str]
) -> Sequence[str]:
    """The columns that a task needs; all of them where there are faults, as messages say what there is."""
    try:
        parsed = written_task(task, columns=names)
    except TaskError:
        return names
    required = {*parsed.graph.names, *(name for name in (parsed.unit, identity) if name is not None)}
    costs = {cost.column for cost in parsed.costs.values()}
    complete = required <= set(names)
    return [name for name in names if name.removeprefix(SET) in required | costs] if complete else names


def _int_tensor(numbers: np.ndarray | None) -> Tensor:
    return as_tensor(numbers).long()


def _check_levels(task: RehearsalTask, rows: Records) -> None:
    """Refuses levels that no row has: nothing is known of their effect."""
    for name, levels in task.box.levels.items():
        observed = np.unique(rows.columns((name,)))
        tolerance = 1e-9 * (1 + np.abs(observed).max())
        unseen = [level for level in levels if not (np.abs(observed - level) <= tolerance).any()]
        if unseen:
            missing = ", ".join(f"{level:g}" for level in unseen)
            present = ", ".join(f"{level:g}" for level in observed[:10])
            fault = f"no row has the value {missing}, so that nothing is known of it; the rows have {present}"
            raise TaskError("the task", [f"box.{name}: {fault}: offer values that occur, or bounds"])
