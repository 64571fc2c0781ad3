"""What a problem file that asks for a sequence holds, and warnings about what its author may not mean.

few units           fewer than 100 to learn from
unseen levels       a level of an action that no unit to learn from had
rare levels         a level in fewer than 20 steps, or in fewer than one of 200
short episodes      half of the units have fewer than four steps
names of persons    the units look like persons (`data.tables.identifiers`)
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.problem_file.findings import key
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.problems.episodes.own_episodes import FEW_UNITS
from rehearsal_torch.problems.episodes.roles import Action
from rehearsal_torch.problems.written.sequence_file import OwnSequence

RARE, RARE_SHARE = 20, 0.005
SHORT = 4


def counted(problem: OwnSequence) -> str:
    """How many units there are, how long they are, and what they are for; one sentence."""
    words, card = problem.roles.words, problem.card()
    least, most = card["horizons"]["min"], card["horizons"]["max"]
    steps = f"{least}" if least == most else f"{least} to {most}"
    splits = {name: len(places) for name, places in problem.splits.items()}
    return (
        f"{len(problem.all)} {words.units} of {problem.source}, of {steps} steps of {problem.step}; "
        f"{splits['train']} to learn from, {splits['validation']} to validate, "
        f"{splits['test']} to decide for{_limited(problem)}"
    )


def _limited(problem: OwnSequence) -> str:
    """At most how many actions are changed, where the file says it."""
    most = problem.problem.changes
    if most is None:
        return ""
    return f"; at most {most} action{'s' if most > 1 else ''} of a {problem.roles.words.unit} changed"


def variable_rows(problem: OwnSequence) -> list[tuple[str, ...]]:
    """A row for each variable, the header first: variable, role, unit, smallest and largest value, and what
    an action was, with shares of steps.
    """
    rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "what was done, by steps")]
    values = torch.cat([each.values for each in problem.all])
    columns = dict(zip(problem.roles.names, values.T, strict=True))
    every = {each.name: each for each in problem.roles.actions}
    for name, about in problem.problem.variables.items():
        unit = about.unit or ""
        if name in every:
            rows.append((name, about.role, unit, "", "", _done(every[name], columns[name])))
        elif name in columns:
            ends = [f"{float(end):.6g}" for end in (columns[name].min(), columns[name].max())]
            rows.append((name, about.role, unit, *ends, ""))
        elif about.role == "static":
            named = next((each.values for each in problem.roles.static if each.name == name), ())
            rows.append((name, about.role, unit, "", "", f"one of {', '.join(named)}"))
    return rows


def warned(problem: OwnSequence) -> list[str]:
    """The warnings, those of the file itself first; each with its line."""
    found, words = problem.problem.found, problem.roles.words
    learnt = len(problem.splits["train"])
    if learnt < FEW_UNITS:
        found.warn(
            "data",
            f"{learnt} {words.units} to learn from: below {FEW_UNITS}, claims are worth little",
        )
    lengths = sorted(each.horizon for each in problem.all)
    if lengths[len(lengths) // 2] < SHORT:
        found.warn("data", f"half of the {words.units} have fewer than {SHORT} steps: little can be changed")
    for name, sentence in _unseen(problem).items():
        found.warn(key("variables", name), sentence)
    table = problem.observations()
    for action in problem.roles.actions:
        column = table.columns((action.name,))[:, 0]
        for level, count in _counts(action, column).items():
            if 0 < count < max(RARE, RARE_SHARE * len(column)):
                found.warn(
                    key("variables", action.name),
                    f"{level} occurs in {count} of {len(column)} steps to learn from: little is known of it",
                )
    for reason, count in problem.counts.items():
        found.warn("missing", f"{reason}: {count}")
    told = identifier(problem.roles.unit, problem.problem.rows.frame[problem.roles.unit])
    if told is not None and told.personal:
        found.warn(
            "unit",
            f"{problem.roles.unit} looks like names of persons ({told.reason}); they stand in the files of a "
            "run and in its report: number them instead, if these may not be shared",
        )
    return found.warnings


def _unseen(problem: OwnSequence) -> Mapping[str, str]:
    """What the data card says of levels, by action."""
    card = problem.card()
    sentences = {each.name: card.get(f"caution: levels of {each.name}") for each in problem.roles.actions}
    return {name: str(each) for name, each in sentences.items() if each}


def _counts(action: Action, column: Tensor) -> dict[str, int]:
    """Level to the number of steps that had it; empty for amounts."""
    return {name: int((column == place).sum()) for place, name in enumerate(action.levels)}


def _done(action: Action, column: Tensor) -> str:
    """What was done, with shares of steps."""
    total = len(column)
    if action.levels:
        return ", ".join(f"{name} {count / total:.0%}" for name, count in _counts(action, column).items())
    given = column[column != 0]
    some: Sequence[float] = given.tolist() or [0.0]
    return f"none {1 - len(given) / total:.0%}, else {min(some):.6g} to {max(some):.6g}"
