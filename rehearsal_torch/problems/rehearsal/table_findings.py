"""Findings about a table and a task that can be decided by, and may not mean what their author means.

    few rows                 fewer than 10 for each variable, or fewer than 50
    no context               every case gets the same answer
    repeated rows            5% of the rows repeat another one (below)
    stand-ins                a value at one end, in many rows, far from all others, such as -999
    case outside the rows    a context that no row is near
    hardly varying           one value in more than 95% of the rows of a variable that is not yes/no
    rare classes             fewer than 5 rows have a class
    like an identifier       by its name or its values (`data.tables.identifiers`); and the names of cases
    no path                  an action without a directed path to an outcome
    not identified           an action and the outcomes have a common cause that nothing known blocks
    contradicted graph       an action that is said not to matter, and does in the rows; missing arrows
    desired already          more than 80% of the rows lie in the desired region
    desired region unseen    no row, or every row, lies in it
    beyond the rows          an action may be set further than any row goes
    present value outside    an action has a value in a case that it may not be set to

Rows that were entered or joined twice count twice: estimates seem to rest on more than they do, and intervals
are too narrow. Rows of few possible values repeat each other by chance. Repeated rows are therefore told only
if

    there are many           at least 5% of the rows repeat an earlier one
    a column is not discrete more than 20 different numbers
    chance is no reason      n rows of independent columns have about n (n - 1)/2 prod_j sum_v p_j(v)^2 that
                             repeat another one, where p_j(v) is the share of the value v in column j; there
                             are at least five times as many

Source: `data.graph_check` for the test of the graph; the birthday problem for what chance gives.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from rehearsal_torch.data.codings.class_actions import offered, offered_words, whole
from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.texts import sentence_in_words
from rehearsal_torch.data.graph_check import refutations, untrue_graph
from rehearsal_torch.data.problem_file.compiled import WrittenProblem
from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.reading import numbers_of
from rehearsal_torch.data.tables.cases import assumed_usual
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.graphs.separation import adjustment, reaches

if TYPE_CHECKING:
    from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable

SHARE, DISCRETE, CHANCE, SHOWN = 0.05, 20, 5, 3


def repeated(frame: pd.DataFrame) -> str:
    """A sentence on the rows that repeat an earlier one; empty if there is nothing to tell."""
    again = frame.duplicated().to_numpy(dtype=bool)
    count, rows = int(again.sum()), len(frame)
    if not count or count < SHARE * rows or not any(_many(frame[name]) for name in frame.columns):
        return ""
    if count < CHANCE * rows * (rows - 1) / 2 * _alike(frame):
        return ""
    lines = [int(each) + 2 for each in frame.index[again][:SHOWN]]
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return (
        f"{count} of {rows} rows ({count / rows:.0%}) repeat an earlier row in all columns (line"
        f"{'s' if count > 1 else ''} {', '.join(map(str, lines))}{more}): a row that stands there twice "
        "counts twice, and makes intervals too narrow; take repeats out, unless each was observed by itself"
    )


def _many(column: pd.Series) -> bool:
    numbers = numbers_of(column)
    return len(np.unique(numbers[np.isfinite(numbers)])) > DISCRETE


def _alike(frame: pd.DataFrame) -> float:
    """The chance that two rows of independent columns agree in all of them."""
    shares = (frame[name].value_counts(normalize=True, dropna=False) for name in frame.columns)
    return float(np.prod([float((each**2).sum()) for each in shares]))


FEW, FEW_EACH = 50, 10
HARDLY, MOSTLY = 0.95, 0.8
# The fewest rows, and the least share of them, that have a value which stands for a missing cell.
MANY, SEVERAL = 3, 0.005


def note_findings(problem: "RehearsalTable", found: Findings, written: WrittenProblem | None = None) -> None:
    """Adds the findings of a table with a task; with a problem file also those of its other columns."""
    table, task = problem.every, problem.task
    rows, names = len(table), task.graph.names
    usual = max(FEW, FEW_EACH * len(names))
    if rows < usual:
        words = f"{rows} rows for {len(names)} variables: estimates will be rough; {usual} rows are usual"
        found.warn("data", "rows", words, rows=rows, usual=usual)
    if not task.context:
        words = "no variable has the role context: every case gets the same answer"
        found.warn("variables", "context", words)
    if written is not None and (sentence := repeated(written.rows.frame)):
        found.warn("data", "rows", sentence)
    _stand_ins(problem, found)
    _outside(problem, found)
    for name in names:
        column = table.columns((name,))[:, 0]
        values, counts = column.unique(return_counts=True)
        if len(values) > 2 and float(counts.max()) > HARDLY * rows:
            value = _said(problem, name, float(values[counts.argmax()]))
            rare = "it hardly varies, so that little is learnt of its effect"
            words = f"{int(counts.max())} of {rows} rows have the value {value}: {rare}"
            found.of_variable(name, "values", words)
    for name, words in problem.rare.items():
        found.of_variable(name, "values", words)
    if written is not None:
        _identifiers(problem, found, written)
    for name in task.variables(task.box.names):
        columns = task.coded[name].columns if name in task.coded else (name,)
        if not reaches((task.graph,), columns, task.outcomes):
            words = f"no directed path leads from {name} to {' or '.join(task.outcomes)}"
            found.of_variable(name, "no_path", f"{words}: it will never be set")
    for reason, altered in _unidentified(problem):
        biased = f"what setting {altered} does cannot be told from these rows, and estimates of it are biased"
        words = f"{reason}: {biased}; measure the common cause, or run an experiment"
        found.warn("graph", "adjustment", words)
    for finding in (*untrue_graph(table, task), *refutations(task, problem.refuted)):
        found.add("graph", finding)
    inside = float(task.region.contains(table.columns(task.outcomes)).double().mean())
    for sentence in problem.region_notes:
        found.warn("desired", "desired", sentence)
    if MOSTLY < inside < 1:
        words = f"{inside:.0%} of the rows lie in the desired region already: there is little left to avoid"
        found.warn("desired", "desired", words, inside=inside)
    _beyond(problem, found)
    _present(problem, found)
    if assumed := assumed_usual(task, problem.present):
        found.warn("candidates", "present", assumed)


def _stand_ins(problem: "RehearsalTable", found: Findings) -> None:
    """Values at one end of a column, in many rows, further from all others than these are from each other."""
    table, coded = problem.every, problem.task.coded
    indicators = {column for each in coded.values() for column in each.columns}
    for name in (each for each in problem.task.graph.names if each not in indicators):
        values, counts = table.columns((name,))[:, 0].unique(return_counts=True)
        for at, inner in ((0, slice(1, None)), (-1, slice(None, -1))):
            rest, many = values[inner], int(counts[at])
            if len(rest) < 3 or many < max(MANY, SEVERAL * len(table)):
                continue
            low, high = float(rest[0]), float(rest[-1])
            if abs((low if at == 0 else high) - float(values[at])) > high - low:
                far = f"{many} of {len(table)} rows have {float(values[at]):g}, far from all others"
                remedy = "if it stands for a missing cell, leave the cell empty"
                found.of_variable(name, "values", f"{far}, which go from {low:g} to {high:g}: {remedy}")


def _outside(problem: "RehearsalTable", found: Findings) -> None:
    """Context variables that lie outside of the rows in some case."""
    if problem.recorded:
        return
    table, task = problem.every, problem.task
    indicators = {column for each in task.coded.values() for column in each.columns}
    for place, name in enumerate(task.context):
        if name in indicators or name not in table.names:
            continue
        low, high = (float(each) for each in torch.aminmax(table.columns((name,))[:, 0]))
        values = problem.given[:, place]
        out = ((values < low) | (values > high)).nonzero()[:, 0].tolist()
        if out:
            first = f"case {problem.identities[out[0]]} has {float(values[out[0]]):g}"
            more = f" and {len(out) - 1} more" if len(out) > 1 else ""
            outside = f"{name} goes from {low:g} to {high:g} in the rows, and {first}{more}"
            found.warn("cases", "range", f"{outside}: what is estimated there is a guess")


def _unidentified(problem: "RehearsalTable") -> Iterator[tuple[str, str]]:
    """Why the graph does not let anybody tell the effect of some actions from observations, and of which."""
    task, reasons = problem.task, dict[str, str]()
    for altered in task.candidates:
        for reason in adjustment(task.graph, task.context, altered, task.outcomes).reasons:
            reasons.setdefault(sentence_in_words(reason, task.coded), ", ".join(task.variables(altered)))
    yield from reasons.items()


def _said(problem: "RehearsalTable", name: str, value: float) -> str:
    """A value as the file has it: its text, if it has one."""
    (text,) = problem.task.worded({name: value}).values()
    return text if isinstance(text, str) else f"{text:g}"


def _identifiers(problem: "RehearsalTable", found: Findings, written: WrittenProblem) -> None:
    """Variables that look like identifiers, and names of cases that may be private."""
    for name in problem.task.variables(problem.task.graph.names):
        if (why := identifier(name, written.rows.frame[name])) is not None:
            found.of_variable(
                name,
                "identifier",
                f"{why.reason}: is it a row number or an identifier, and no variable? Nothing can be learnt "
                f"from such a column: take it out, or let it name the cases by identity: {name}",
            )
    name = written.identity or ""
    frame = (written.rows if written.cases is None else written.cases).frame
    if name in frame.columns and (why := identifier(name, frame[name])) is not None:
        what = "a person's data" if why.personal else "an identifier"
        found.warn(
            "identity",
            "identifier",
            f"{name} names the cases, and looks like {what} ({why.reason}): its values stand in the files "
            "of a run, in tables and in the report; share these as you would share the column, or leave "
            "identity out",
        )


def _beyond(problem: "RehearsalTable", found: Findings) -> None:
    """Actions that may be set further than any row goes."""
    for name, (lower, upper) in problem.task.box.bounds().items():
        column = problem.every.columns((name,))[:, 0]
        low, high = (float(each) for each in torch.aminmax(column))
        slack = 1e-9 * (1 + abs(low) + abs(high))
        if lower < low - slack or upper > high + slack:
            wide = f"may be set from {lower:g} to {upper:g}; the rows go from {low:g} to {high:g}"
            found.of_variable(name, "range", f"{wide}: beyond them nothing was observed", "range")


def _present_class(problem: "RehearsalTable", found: Findings, coding: Coding) -> None:
    """The present class of cases, of a variable of which only some classes are offered."""
    levels = problem.task.box.levels
    some = [coding.levels[place] for place in offered(coding, levels)]
    now = [problem.task.worded(each).get(coding.name) for each in problem.present]
    outside = [
        f"case {case} has {text}"
        for case, text in zip(problem.identities, now, strict=True)
        if isinstance(text, str) and text not in some
    ]
    if outside:
        words = f"may be set to {offered_words(coding, levels)}, and {_several(outside)}"
        found.of_variable(coding.name, "present", words, "offered")


def _several(outside: Sequence[str]) -> str:
    """Which cases have a present value that is not offered, in words."""
    more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
    better = "what is offered does not hold the present value, which may be better; it is compared with it"
    return f"{outside[0]} at present{more}: {better}"


def _present(problem: "RehearsalTable", found: Findings) -> None:
    """Present values outside of what may be set: leaving the action alone may be better."""
    bounds = problem.task.box.bounds()
    classes = whole(problem.task.box.names, problem.task.codings)
    for coding in classes:
        _present_class(problem, found, coding)
    apart = {column for each in classes for column in each.columns}
    for name in dict.fromkeys(name for each in problem.present for name in each if name not in apart):
        lower, upper = bounds[name]
        outside = [
            f"case {case} has {_said(problem, name, each[name])}"
            for case, each in zip(problem.identities, problem.present, strict=True)
            if name in each and not lower <= each[name] <= upper
        ]
        if outside:
            words = f"may be set from {lower:g} to {upper:g}, and {_several(outside)}"
            found.of_variable(name, "present", words, "range")
