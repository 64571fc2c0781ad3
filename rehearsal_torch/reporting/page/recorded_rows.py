"""Rows of persons and experiments, for readers who asked for them: context, steps of episodes, answers.

By default a page holds no rows, only the cases decided for. What is shown here is what the run recorded for
those cases; rows of the table that the method learnt from are in no run folder.
"""

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.page.grouped import name_of
from rehearsal_torch.reporting.page.markup import Markup, joined, table, tag
from rehearsal_torch.reporting.page.material import Material, finite, listed, mapping, shown


def recorded_rows(of: Material) -> Markup:
    """The section's content; empty unless the reader asked for rows."""
    if not of.rows:
        return Markup()
    decisions = of.run.decisions[: of.cases]
    made = [_contexts(decisions), _answers(decisions), *(_steps(one, of) for one in decisions)]
    every = joined(made)
    return every or tag("p", "The run recorded no rows.")


def _contexts(decisions: list[Decided]) -> Markup:
    names = list(dict.fromkeys(name for one in decisions for name in mapping(one.get("given"))))
    rows = [[name_of(one), *_cells(mapping(one.get("given")), names)] for one in decisions] if names else []
    return table("What was known of each case", ["case", *names], rows)


def _answers(decisions: list[Decided]) -> Markup:
    """What came of the decisions that were carried out, where there was somebody to answer."""
    found = [(name_of(one), mapping(mapping(one.get("answer")).get("rows"))) for one in decisions]
    names = list(dict.fromkeys(name for _, columns in found for name in columns))
    rows = [
        [name, *(shown(listed(columns.get(each))) if each in columns else "" for each in names)]
        for name, columns in found
        if columns
    ]
    return table("What was observed after each decision", ["case", *names], rows)


def _steps(one: Decided, of: Material) -> Markup:
    """An episode step by step: rewards and doses, as observed and under the decision."""
    trajectory = mapping(one.get("trajectory"))
    observed, replayed = (listed(trajectory.get(key)) for key in ("observed_rewards", "rewards"))
    old, new = (listed(trajectory.get(key)) for key in ("observed_doses", "doses"))
    count = max((len(listed(each)) for each in (*old, *new)), default=0)
    heads = [
        of.words.one_step.lower(),
        f"{of.words.level}, observed",
        "predicted",
    ]
    heads += [
        f"{of.words.dose(place).name}{when}" for place in range(count) for when in (", observed", ", changed")
    ]
    rows = []
    for step in range(len(observed)):
        doses = [_in(each, step, place, of) for place in range(count) for each in (old, new)]
        rewards = [_reward(each, step, of) for each in (observed, replayed)]
        rows.append([str(of.words.start + step), *rewards, *doses])
    return table(f"{of.words.titled(name_of(one))}, step by step", heads, rows)


def _cells(values: dict[str, object], names: list[str]) -> list[str]:
    return [shown(values[name]) if name in values else "" for name in names]


def _reward(values: list[object], step: int, of: Material) -> str:
    value = finite(values[step]) if step < len(values) else None
    return "" if value is None else shown(of.words.sign * value + 0.0)


def _in(rows: list[object], step: int, place: int, of: Material) -> str:
    cells = listed(rows[step]) if step < len(rows) else []
    return "" if place >= len(cells) else of.words.dose(place).level(cells[place]) or shown(cells[place])
