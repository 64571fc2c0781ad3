"""Warnings about a table and its task: what rows can decide, and what may not mean what their author means.

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
    rare classes             fewer than 5 rows have a class, or fewer than advice needs one that may be set
    unequal steps            the levels of an ordinal action move the chance otherwise than its codes do
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
from scipy.special import fdtrc

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import sentence_in_words
from rehearsal_torch.data.codings.one_hot_actions import (
    classes_in,
    combinations,
    offered_places,
    offered_words,
)
from rehearsal_torch.data.estimate import points
from rehearsal_torch.data.graph_check import refutations, untrue_graph
from rehearsal_torch.data.positivity import CASES, LEVELS, MOST_BEYOND, Numbers, beyond, least_rows
from rehearsal_torch.data.problem_file.cases_builder import WrittenProblem
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.tables.decision_cases import assumed_usual
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.data.tables.table_warnings import (
    alike_classes,
    one_hot,
    rare_codes,
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
# The p-value below which the steps of an ordinal are unequal, and the rows that a level has at least there.
UNEQUAL, RARE = 0.01, 10


def note_findings(problem: "RehearsalTable", found: Findings, written: WrittenProblem | None = None) -> None:
    """Adds the findings of a table with a task; with a problem file also those of its other columns."""
    table, task = problem.every, problem.task
    rows, names = len(table), task.graph.names
    expected = max(FEW, FEW_EACH * len(names))
    if rows < expected:
        text = f"{rows} rows for {len(names)} variables: estimates will be rough; {expected} rows are usual"
        found.warn("data", "rows", text, rows=rows, usual=expected)
    if not task.context:
        text = "no variable has the role context: every case gets the same answer"
        found.warn("variables", "context", text)
    note_doubts(problem, found)
    _warn_outside(problem, found)
    _warn_support(problem, found)
    for name in names:
        column = table.columns((name,))[:, 0]
        values, counts = np.unique(column, return_counts=True)
        if len(values) > 2 and counts.max() > HARDLY * rows:
            value = _value_text(problem, name, float(values[counts.argmax()]))
            effect = "it hardly varies, so that little is learnt of its effect"
            text = f"{int(counts.max())} of {rows} rows have the value {value}: {effect}"
            found.of_variable(name, "values", text)
    rare_levels = _rare_levels(problem)
    for name, text in (problem.rare | rare_levels).items():
        found.of_variable(name, "values", text)
    _warn_steps(problem, found)
    if written is not None:
        _warn_identifiers(problem, found, written)
    for name in task.variables(task.box.names):
        columns = task.coded[name].columns if name in task.coded else (name,)
        if not reaches((task.graph,), columns, task.outcomes):
            text = f"no directed path leads from {name} to {' or '.join(task.outcomes)}"
            found.of_variable(name, "no_path", f"{text}: it will never be set")
    for reason, altered in _unidentified_effects(problem):
        doubt = f"what setting {altered} does cannot be told from these rows, by adjustment or the front door"
        text = f"{reason}: {doubt}; measure the common cause, or run an experiment"
        found.warn("graph", "adjustment", text)
    for sentence in _assumptions(problem):
        found.warn("graph", "assumption", sentence)
    for finding in (*untrue_graph(table, task), *refutations(task, problem.refuted)):
        found.add("graph", finding)
    share = float(task.region.holds(table.columns(task.outcomes)).mean())
    for sentence in problem.region_notes:
        found.warn("desired", "desired", sentence)
    if MOSTLY < share < 1:
        text = f"{share:.0%} of the rows lie in the desired region already: there is little left to avoid"
        found.warn("desired", "desired", text, inside=share)
    _warn_bounds(problem, found)
    _warn_present(problem, found)
    if assumed := assumed_usual(task, problem.present):
        found.warn("candidates", "present", assumed)


def note_doubts(problem: "RehearsalTable", found: Findings) -> None:
    """What is doubtful in the table whatever is asked of it (`data.tables.table_warnings`)."""
    table, task, frame = problem.every, problem.task, problem.frame
    if sentence := repeated(frame):
        found.warn("data", "rows", sentence, repeated=int(frame.duplicated().sum()), rows=len(frame))
    if sentence := totals(frame):
        found.warn("data", "rows", sentence)
    coded_columns = {column for coding in task.coded.values() for column in coding.columns}
    numbers = {name: table.columns((name,))[:, 0] for name in table.names if name not in coded_columns}
    bounds = task.box.bounds()
    for name, column in numbers.items():
        for sentence, figures in stand_ins(column, bounds.get(name)):
            found.of_variable(name, "values", sentence, "", **figures)
        for sentence, code in rare_codes(frame[name], bounds.get(name)):
            found.of_variable(name, "values", sentence, "", value=code)
    for name, coding in task.coded.items():
        for group in alike_classes(coding.levels):
            classes = " and ".join(map(repr, group))
            text = f"{classes} are read as different classes, and differ in case, blanks or hyphens alone"
            remedy = "if they are one, write them alike"
            found.of_variable(name, "values", f"{text}: {remedy}", classes=len(group))
    variables = [name for name in task.variables(table.names) if name in frame.columns]
    fixed = {*task.outcomes, *task.box.names}
    for name, total in row_counts(frame, variables):
        if name not in fixed:
            text = f"each row may stand for as many as its {name} says ({total} in all), and is counted once"
            remedy = "if it does, repeat each row as often; otherwise rename the column"
            found.warn("data", "rows", f"{text}: {remedy}", rows=len(frame), total=total)
    for group in one_hot(numbers):
        some = ", ".join(group[:MOST_NAMED]) + (f", ... ({len(group)})" if len(group) > MOST_NAMED else "")
        text = f"{some} are 0 or 1, and no two of them are 1 in the same row, as the classes of one variable"
        remedy = "give one column of kind categorical in their place, of which one class is the reference"
        found.warn("data", "values", f"{text}: {remedy}", columns=len(group))


def _warn_outside(problem: "RehearsalTable", findings: Findings) -> None:
    """Warns of context variables that lie outside of the rows in some case."""
    if problem.recorded:
        return
    table, task = problem.every, problem.task
    indicators = {column for coding in task.coded.values() for column in coding.columns}
    for k, name in enumerate(task.context):
        if name in indicators or name not in table.names:
            continue
        column, values = table.columns((name,)), problem.contexts[:, k]
        low, high = float(column.min()), float(column.max())
        rows = np.flatnonzero((values < low) | (values > high)).tolist()
        if rows:
            first = f"case {problem.identities[rows[0]]} has {float(values[rows[0]]):g}"
            rest = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            text = f"{name} goes from {low:g} to {high:g} in the rows, and {first}{rest}"
            findings.warn("cases", "range", f"{text}: what is estimated there is a guess")


def _warn_support(problem: "RehearsalTable", findings: Findings) -> None:
    """Warns of actions without support in some cases: no row like the case has had any."""
    task, table = problem.task, problem.rows
    sets = []
    for altered in task.offered[:SETS]:
        sides = adjustment(task.graph, task.context, altered, task.outcomes)
        if not sides.reasons and reaches((task.graph,), altered, task.outcomes):
            sets.append((altered, sides.before))
    sampled = np.linspace(0, problem.count() - 1, min(problem.count(), CASES)).round().astype(int)
    for altered, before in sets if len(table) >= FEW else ():
        settings = _settings(problem, altered)
        context, covariates, actions = (table.columns(names) for names in (task.context, before, altered))
        cases = problem.contexts[sampled]
        levels = [index for index, name in enumerate(altered) if name in task.box.levels]
        share = beyond(context, covariates, actions, cases, settings, len(sets), levels)
        supported = share <= MOST_BEYOND
        complete, silent = supported.mean(1) >= NEARLY, ~supported.any(1)
        if supported.mean() >= NEARLY and silent.mean() <= 1 - NEARLY:
            continue
        numbers = {"cases": len(sampled), "complete": float(complete.mean()), "none": float(silent.mean())}
        dose = len(altered) == 1 and altered[0] not in task.box.levels
        mixed, total = supported[~silent], len(settings)
        median = int(np.median(mixed.sum(1))) if len(mixed) else 0
        spans = f"{median} of {total} settings"
        if dose:
            (lower, upper), cells = task.box.bounds()[altered[0]], np.arange(total + 1) / total
            if len(mixed):
                low = lower + (upper - lower) * np.median(cells[mixed.argmax(1)])
                high = lower + (upper - lower) * np.median(cells[total - mixed[:, ::-1].argmax(1)])
                numbers |= {"low": float(low), "high": float(high)}
                spans = f"{low:.3g} to {high:.3g} of {lower:g} to {upper:g}"
        elif total <= MOST_NAMED:
            texts = [_worded(problem, dict(zip(altered, row, strict=True))) for row in settings.tolist()]
            spans = ", ".join(
                f"{text} in {count} of {len(sampled)} cases"
                for text, count in zip(texts, supported.sum(0).tolist(), strict=True)
            )
        listed = not dose and total <= MOST_NAMED
        parts = [f"the rows speak for {spans}{'' if listed else ' in the median case'}"] if len(mixed) else []
        if len(mixed) < len(sampled):
            nothing = "no value" if len(altered) == 1 else "no setting"
            unsupported = f"for {nothing} at all in {len(sampled) - len(mixed)} of {len(sampled)} cases"
            parts.append(unsupported if parts else f"the rows speak {unsupported}")
        caution = "elsewhere hardly a row that is like the case has had it, and what it does is a guess"
        sentence = f"{', and '.join(parts)}: {caution}"
        variables = task.variables(altered)
        if len(variables) == 1:
            findings.of_variable(variables[0], "support", sentence, "", **numbers)
        else:
            findings.warn("candidates", "support", f"{' with '.join(variables)}: {sentence}", **numbers)


def _worded(problem: "RehearsalTable", values: dict[str, float]) -> str:
    """Values of variables as the file has them."""
    texts = problem.task.worded(values)
    alone = len(texts) == 1
    return " and ".join(
        (f"{value}" if isinstance(value, str) else f"{value:g}") if alone else f"{name} {value}"
        for name, value in texts.items()
    )


def _rare_levels(problem: "RehearsalTable") -> dict[str, str]:
    """Action to a sentence, for those of which a level on offer has fewer rows than advice needs."""
    box, table, sentences = problem.task.box, problem.every, {}
    fewest = least_rows(len(table))
    for name in problem.task.variables(tuple(box.levels)):
        coding = problem.task.coded.get(name)
        columns = (name,) if coding is None else coding.columns
        values = table.columns(columns)
        if len(np.unique(values, axis=0)) > LEVELS:
            continue
        offered = combinations({column: box.levels[column] for column in columns}, problem.task.codings)
        counts = {setting: int((np.abs(values - setting) <= 1e-9).all(-1).sum()) for setting in offered}
        if few := {setting: count for setting, count in counts.items() if count < fewest}:
            levels = ", ".join(
                f"{_worded(problem, dict(zip(columns, setting, strict=True)))} in {count}"
                for setting, count in list(few.items())[:MOST_NAMED]
            ) + ", ..." * (len(few) > MOST_NAMED)
            sentences[name] = (
                f"few rows have a level that may be set ({levels} of {len(table)} rows): what one of fewer "
                f"than {fewest} does cannot be told, and it is not recommended; join it with another, or do "
                "not offer it"
            )
    return sentences


def _warn_steps(problem: "RehearsalTable", findings: Findings) -> None:
    """Warns of ordinal actions whose levels do not move the chance of a desired outcome in equal steps: an
    F test of indicators of the levels, beside context and adjustment set, against their codes.
    """
    task, table = problem.task, problem.every
    desired = task.region.holds(table.columns(task.outcomes)).astype(float)
    ordinals = [
        coding
        for coding in task.codings
        if coding.reference is None and len(coding.levels) > 2 and coding.name in task.box.levels
    ]
    for coding in ordinals:
        before = adjustment(task.graph, task.context, (coding.name,), task.outcomes).before
        codes = table.columns((coding.name,))[:, 0]
        values, counts = np.unique(codes, return_counts=True)
        values = values[counts >= RARE]
        used = np.isin(codes, values)
        covariates = np.column_stack((np.ones(len(table)), table.columns((*task.context, *before))))[used]
        indicators = codes[used, None] == values[1:]
        designs = [np.column_stack((covariates, part)) for part in (codes[used], indicators)]
        fits = [np.linalg.lstsq(design, desired[used], rcond=None) for design in designs]
        line, steps = (
            np.square(desired[used] - design @ fit[0]).sum()
            for design, fit in zip(designs, fits, strict=True)
        )
        extra, left = int(fits[1][2] - fits[0][2]), int(used.sum() - fits[1][2])
        if extra < 1 or left < 1 or not steps:
            continue
        p = min(1.0, len(ordinals) * float(fdtrc(extra, left, (line - steps) / extra / (steps / left))))
        if p < UNEQUAL:
            first, *others = (coding.levels[int(value)] for value in values)
            differences = points(fits[1][0][-len(others) :].tolist())
            named = ", ".join(f"{level} {text}" for level, text in zip(others, differences, strict=True))
            text = (
                f"its levels do not go in equal steps, as an ordinal's do (p = {p:.1g}): among comparable "
                f"rows the share of desired outcomes differs from that at {first} by {named} percentage "
                "points; kind: categorical estimates each level by itself"
            )
            findings.of_variable(coding.name, "values", text, "kind", p=p)


def _settings(problem: "RehearsalTable", altered: Sequence[str]) -> Numbers:
    """At most `SETTINGS` settings of some variables, spread over their bounds and levels, (G, k)."""
    box = problem.task.box
    levels = {name: box.levels[name] for name in altered if name in box.levels}
    combined = combinations(levels, problem.task.codings) if levels else [()]
    doses = [name for name in altered if name not in levels]
    if not doses:
        chosen = np.linspace(0, len(combined) - 1, min(len(combined), SETTINGS)).round().astype(int)
        return np.array([combined[k] for k in chosen], dtype=float)
    settings, index = np.empty((SETTINGS, len(altered))), np.arange(SETTINGS)
    for k, name in enumerate(altered):
        if name in levels:
            column = list(levels).index(name)
            settings[:, k] = [combined[i % len(combined)][column] for i in index]
        else:
            # The midpoints of equal parts, of several doses in an order of their own.
            lower, upper = box.bounds()[name]
            order = index if name == doses[0] else np.argsort((index + 1) * (0.6180339887 + k) ** 2 % 1)
            settings[:, k] = lower + (upper - lower) * (order + 0.5) / SETTINGS
    return settings


def _unidentified_effects(problem: "RehearsalTable") -> Iterator[tuple[str, str]]:
    """Reasons why the graph does not identify the effect of actions from observations, and the actions."""
    task, reasons = problem.task, dict[str, str]()
    for altered in task.offered:
        for reason in adjustment(task.graph, task.context, altered, task.outcomes).reasons:
            reasons.setdefault(sentence_in_words(reason, task.coded), ", ".join(task.variables(altered)))
    yield from reasons.items()


def _assumptions(problem: "RehearsalTable") -> Iterator[str]:
    """Assumptions of the identified effects beside the graph, and front doors."""
    task = problem.task
    sentences = dict[str, None]()
    for altered in task.offered:
        sets = adjustment(task.graph, task.context, altered, task.outcomes)
        sentences |= dict.fromkeys(sentence_in_words(assumption, task.coded) for assumption in sets.assumed)
        if sets.front_door:
            own, through = (", ".join(task.variables(names)) for names in (altered, sets.between))
            sentences[
                f"a hidden cause joins {own} and {', '.join(task.outcomes)}: what setting {own} does is told "
                f"through {through} (the front door), which takes it that nothing hidden moves {through} "
                f"beside {own} or {', '.join(task.outcomes)}"
            ] = None
    yield from sentences


def _value_text(problem: "RehearsalTable", name: str, value: float) -> str:
    """A value as the file has it."""
    (text,) = problem.task.worded({name: value}).values()
    return text if isinstance(text, str) else f"{text:g}"


def _warn_identifiers(problem: "RehearsalTable", findings: Findings, written: WrittenProblem) -> None:
    """Warns of variables that look like identifiers, and of names of cases that may be private."""
    for name in problem.task.variables(problem.task.graph.names):
        if (hint := identifier(name, written.rows.frame[name])) is not None:
            text = (
                f"{hint.reason}: is it a row number or an identifier, and no variable? Nothing can be learnt "
                f"from such a column: take it out, or let it name the cases by identity: {name}"
            )
            findings.of_variable(name, "identifier", text)
    name = written.form.identity or ""
    frame = (written.rows if written.cases is None else written.cases).frame
    if name in frame.columns and (hint := identifier(name, frame[name])) is not None:
        kind = "a person's data" if hint.personal else "an identifier"
        text = (
            f"{name} names the cases, and looks like {kind} ({hint.reason}): its values stand in the files "
            "of a run, in tables and in the report; share these as you would share the column, or leave "
            "identity out"
        )
        findings.warn("identity", "identifier", text)


def _warn_bounds(problem: "RehearsalTable", findings: Findings) -> None:
    """Warns of actions that may be set further than any row goes."""
    for name, (lower, upper) in problem.task.box.bounds().items():
        column = problem.every.columns((name,))[:, 0]
        low, high = float(column.min()), float(column.max())
        slack = 1e-9 * (1 + abs(low) + abs(high))
        if lower < low - slack or upper > high + slack:
            text = f"may be set from {lower:g} to {upper:g}; the rows go from {low:g} to {high:g}"
            findings.of_variable(name, "range", f"{text}: beyond them nothing was observed", "range")


def _warn_present_class(problem: "RehearsalTable", findings: Findings, coding: Coding) -> None:
    """Warns of cases whose present class is not offered."""
    levels = problem.task.box.levels
    offered_levels = [coding.levels[level] for level in offered_places(coding, levels)]
    classes = [problem.task.worded(values).get(coding.name) for values in problem.present]
    outside = [
        f"case {case} has {text}"
        for case, text in zip(problem.identities, classes, strict=True)
        if isinstance(text, str) and text not in offered_levels
    ]
    if outside:
        words = f"may be set to {offered_words(coding, levels)}, and {_present_text(outside)}"
        findings.of_variable(coding.name, "present", words, "offered")


def _present_text(outside: Sequence[str]) -> str:
    """The cases whose present value is not offered, in words."""
    rest = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
    remark = "what is offered does not hold the present value, which may be better; it is compared with it"
    return f"{outside[0]} at present{rest}: {remark}"


def _warn_present(problem: "RehearsalTable", findings: Findings) -> None:
    """Warns of present values outside of what may be set: leaving the action alone may be better."""
    bounds = problem.task.box.bounds()
    codings = classes_in(problem.task.box.names, problem.task.codings)
    for coding in codings:
        _warn_present_class(problem, findings, coding)
    coded = {column for coding in codings for column in coding.columns}
    for name in dict.fromkeys(name for values in problem.present for name in values if name not in coded):
        lower, upper = bounds[name]
        offered = problem.task.box.levels.get(name)
        may_be = f"from {lower:g} to {upper:g}"
        if offered is not None:
            may_be = f"to {', '.join(_value_text(problem, name, value) for value in offered)}"
        outside = [
            f"case {case} has {_value_text(problem, name, values[name])}"
            for case, values in zip(problem.identities, problem.present, strict=True)
            if name in values and not lower <= values[name] <= upper
        ]
        if outside:
            text = f"may be set {may_be}, and {_present_text(outside)}"
            findings.of_variable(name, "present", text, "range" if offered is None else "")
