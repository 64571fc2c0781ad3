"""Findings about a table and a task that can be decided by, and may not mean what their author means.

    few rows                 fewer than 10 for each variable, or fewer than 50
    no context               every case gets the same answer
    repeated rows            5% of the rows repeat another one
    totals                   a row between the others that is called a total
    stand-ins                a value in many rows, such as -999 or -9, where nothing else is like it
    alike classes            female and Female
    rows that count          a column says how many rows each stands for
    one-hot columns          classes of one variable as columns of their own
    case outside the rows    a context that no row is near
    actions outside them     what no row like a case has had (`data.positivity`)
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

Source: `data.graph_check` for the test of the graph; `data.tables.table_warnings` for rows, values and names.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import sentence_in_words
from rehearsal_torch.data.codings.one_hot_actions import combinations, offered, offered_words, whole
from rehearsal_torch.data.graph_check import refutations, untrue_graph
from rehearsal_torch.data.positivity import CASES, MOST_BEYOND, Numbers, beyond
from rehearsal_torch.data.problem_file.cases_builder import WrittenProblem
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.tables.decision_cases import assumed_usual
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.data.tables.table_warnings import (
    alike_classes,
    one_hot,
    repeated,
    row_counts,
    stand_ins,
    totals,
)
from rehearsal_torch.graphs.separation import adjustment, reaches

if TYPE_CHECKING:
    from rehearsal_torch.problems.cases.user_table import RehearsalTable

FEW, FEW_EACH = 50, 10
HARDLY, MOSTLY = 0.95, 0.8
# Columns of a group that a sentence names.
MOST_NAMED = 4
# Settings of a candidate set that are compared with the rows, and sets; for which share of the settings in
# all cases rows speak where nothing is said.
SETTINGS, SETS, NEARLY = 25, 6, 0.9


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
    note_doubts(problem, found)
    _outside(problem, found)
    _unsupported(problem, found)
    for name in names:
        column = table.columns((name,))[:, 0]
        values, counts = np.unique(column, return_counts=True)
        if len(values) > 2 and counts.max() > HARDLY * rows:
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
        hidden = (
            f"what setting {altered} does cannot be told from these rows, by adjustment or the front door"
        )
        words = f"{reason}: {hidden}; measure the common cause, or run an experiment"
        found.warn("graph", "adjustment", words)
    for sentence in _assumed(problem):
        found.warn("graph", "assumption", sentence)
    for finding in (*untrue_graph(table, task), *refutations(task, problem.refuted)):
        found.add("graph", finding)
    inside = float(task.region.holds(table.columns(task.outcomes)).mean())
    for sentence in problem.region_notes:
        found.warn("desired", "desired", sentence)
    if MOSTLY < inside < 1:
        words = f"{inside:.0%} of the rows lie in the desired region already: there is little left to avoid"
        found.warn("desired", "desired", words, inside=inside)
    _beyond(problem, found)
    _present(problem, found)
    if assumed := assumed_usual(task, problem.present):
        found.warn("candidates", "present", assumed)


def note_doubts(problem: "RehearsalTable", found: Findings) -> None:
    """What is doubtful in the table whatever is asked of it (`data.tables.table_warnings`)."""
    table, task, frame = problem.every, problem.task, problem.frame
    if sentence := repeated(frame):
        found.warn("data", "rows", sentence, repeated=int(frame.duplicated().sum()), rows=len(frame))
    if sentence := totals(frame):
        found.warn("data", "rows", sentence)
    of_texts = {column for each in task.coded.values() for column in each.columns}
    numbers = {name: table.columns((name,))[:, 0] for name in table.names if name not in of_texts}
    bounds = task.box.bounds()
    for name, column in numbers.items():
        for sentence, figures in stand_ins(column, bounds.get(name)):
            found.of_variable(name, "values", sentence, "", **figures)
    for name, coding in task.coded.items():
        for group in alike_classes(coding.levels):
            words = (
                f"{' and '.join(map(repr, group))} are read as different classes, and differ in case, blanks"
            )
            remedy = "or hyphens alone: if they are one, write them alike"
            found.of_variable(name, "values", f"{words} {remedy}", classes=len(group))
    variables = [name for name in task.variables(table.names) if name in frame.columns]
    fixed = {*task.outcomes, *task.box.names}
    for name, total in row_counts(frame, variables):
        if name not in fixed:
            words = f"each row may stand for as many as its {name} says ({total} in all), and is counted once"
            remedy = "if it does, repeat each row as often; otherwise rename the column"
            found.warn("data", "rows", f"{words}: {remedy}", rows=len(frame), total=total)
    for group in one_hot(numbers):
        some = ", ".join(group[:MOST_NAMED]) + (f", ... ({len(group)})" if len(group) > MOST_NAMED else "")
        words = f"{some} are 0 or 1, and no two of them are 1 in the same row, as the classes of one variable"
        remedy = "give one column of kind categorical in their place, of which one class is the reference"
        found.warn("data", "values", f"{words}: {remedy}", columns=len(group))


def _outside(problem: "RehearsalTable", found: Findings) -> None:
    """Context variables that lie outside of the rows in some case."""
    if problem.recorded:
        return
    table, task = problem.every, problem.task
    indicators = {column for each in task.coded.values() for column in each.columns}
    for place, name in enumerate(task.context):
        if name in indicators or name not in table.names:
            continue
        column, values = table.columns((name,)), problem.contexts[:, place]
        low, high = float(column.min()), float(column.max())
        out = np.flatnonzero((values < low) | (values > high)).tolist()
        if out:
            first = f"case {problem.identities[out[0]]} has {float(values[out[0]]):g}"
            more = f" and {len(out) - 1} more" if len(out) > 1 else ""
            outside = f"{name} goes from {low:g} to {high:g} in the rows, and {first}{more}"
            found.warn("cases", "range", f"{outside}: what is estimated there is a guess")


def _unsupported(problem: "RehearsalTable", found: Findings) -> None:
    """Actions for which the rows cannot speak in some cases, as no row like them has had any."""
    task, table = problem.task, problem.rows
    sets = []
    for altered in task.candidates[:SETS]:
        sides = adjustment(task.graph, task.context, altered, task.outcomes)
        if not sides.reasons and reaches((task.graph,), altered, task.outcomes):
            sets.append((altered, sides.before))
    kept = np.linspace(0, problem.count() - 1, min(problem.count(), CASES)).round().astype(int)
    for altered, before in sets if len(table) >= FEW else ():
        settings = _settings(problem, altered)
        context, covariates, actions = (table.columns(names) for names in (task.context, before, altered))
        cases = problem.contexts[kept]
        levels = [place for place, name in enumerate(altered) if name in task.box.levels]
        share = beyond(context, covariates, actions, cases, settings, len(sets), levels)
        speaks = share <= MOST_BEYOND
        complete, never = speaks.mean(1) >= NEARLY, ~speaks.any(1)
        if speaks.mean() >= NEARLY and never.mean() <= 1 - NEARLY:
            continue
        numbers = {"cases": len(kept), "complete": float(complete.mean()), "none": float(never.mean())}
        dose = len(altered) == 1 and altered[0] not in task.box.levels
        some, most = speaks[~never], len(settings)
        median = int(np.median(some.sum(1))) if len(some) else 0
        words = f"{median} of {most} settings"
        if dose:
            (lower, upper), cells = task.box.bounds()[altered[0]], np.arange(most + 1) / most
            if len(some):
                low = lower + (upper - lower) * np.median(cells[some.argmax(1)])
                high = lower + (upper - lower) * np.median(cells[most - some[:, ::-1].argmax(1)])
                numbers |= {"low": float(low), "high": float(high)}
                words = f"{low:.3g} to {high:.3g} of {lower:g} to {upper:g}"
        elif most <= MOST_NAMED:
            said = [_setting(problem, dict(zip(altered, row, strict=True))) for row in settings.tolist()]
            words = ", ".join(
                f"{each} in {count} of {len(kept)} cases"
                for each, count in zip(said, speaks.sum(0).tolist(), strict=True)
            )
        listed = not dose and most <= MOST_NAMED
        spoken = [f"the rows speak for {words}{'' if listed else ' in the median case'}"] if len(some) else []
        if len(some) < len(kept):
            none = "no value" if len(altered) == 1 else "no setting"
            several = f"for {none} at all in {len(kept) - len(some)} of {len(kept)} cases"
            spoken.append(several if spoken else f"the rows speak {several}")
        rest = "elsewhere hardly a row that is like the case has had it, and what it does is a guess"
        sentence = f"{', and '.join(spoken)}: {rest}"
        variables = task.variables(altered)
        if len(variables) == 1:
            found.of_variable(variables[0], "support", sentence, "", **numbers)
        else:
            found.warn("candidates", "support", f"{' with '.join(variables)}: {sentence}", "", **numbers)


def _setting(problem: "RehearsalTable", values: dict[str, float]) -> str:
    """Values of one or several variables as the file has them."""
    texts = problem.task.worded(values)
    alone = len(texts) == 1
    return " and ".join(
        (f"{value}" if isinstance(value, str) else f"{value:g}") if alone else f"{name} {value}"
        for name, value in texts.items()
    )


def _settings(problem: "RehearsalTable", altered: Sequence[str]) -> Numbers:
    """At most `SETTINGS` settings of some variables, spread over what they may be set to, (G, k)."""
    box = problem.task.box
    levels = {name: box.levels[name] for name in altered if name in box.levels}
    combined = combinations(levels, problem.task.codings) if levels else [()]
    doses = [name for name in altered if name not in levels]
    if not doses:
        kept = np.linspace(0, len(combined) - 1, min(len(combined), SETTINGS)).round().astype(int)
        return np.array([combined[place] for place in kept], dtype=float)
    settings, index = np.empty((SETTINGS, len(altered))), np.arange(SETTINGS)
    for place, name in enumerate(altered):
        if name in levels:
            column = list(levels).index(name)
            settings[:, place] = [combined[each % len(combined)][column] for each in index]
        else:
            # The midpoints of equal parts, of several doses in an order of their own.
            lower, upper = box.bounds()[name]
            turn = index if name == doses[0] else np.argsort((index + 1) * (0.6180339887 + place) ** 2 % 1)
            settings[:, place] = lower + (upper - lower) * (turn + 0.5) / SETTINGS
    return settings


def _unidentified(problem: "RehearsalTable") -> Iterator[tuple[str, str]]:
    """Why the graph does not let anybody tell the effect of some actions from observations, and of which."""
    task, reasons = problem.task, dict[str, str]()
    for altered in task.candidates:
        for reason in adjustment(task.graph, task.context, altered, task.outcomes).reasons:
            reasons.setdefault(sentence_in_words(reason, task.coded), ", ".join(task.variables(altered)))
    yield from reasons.items()


def _assumed(problem: "RehearsalTable") -> Iterator[str]:
    """What the effects of actions rest on beside the graph, and through what a front door tells them."""
    task = problem.task
    sentences = dict[str, None]()
    for altered in task.candidates:
        sets = adjustment(task.graph, task.context, altered, task.outcomes)
        sentences |= dict.fromkeys(sentence_in_words(each, task.coded) for each in sets.assumed)
        if sets.front_door:
            own, through = (", ".join(task.variables(names)) for names in (altered, sets.between))
            sentences[
                f"a hidden cause joins {own} and {', '.join(task.outcomes)}: what setting {own} does is told "
                f"through {through} (the front door), which takes it that nothing hidden moves {through} "
                f"beside {own} or {', '.join(task.outcomes)}"
            ] = None
    yield from sentences


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
    name = written.form.identity or ""
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
        low, high = float(column.min()), float(column.max())
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
