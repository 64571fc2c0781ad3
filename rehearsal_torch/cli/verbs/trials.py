"""The verbs suggest, tell, recommend and status: a campaign of experiments by commands (`api.campaign`).

Each is one call of the optimiser on the campaign's file, which takes effect at once or, after an error, not
at all; what is printed is read from its trials.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from rehearsal_torch.api.campaign import list_file, open_campaign, read_list, write_list
from rehearsal_torch.api.fit_and_decide import undisturbed
from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.cli.command_words import is_table, of_table, spoken
from rehearsal_torch.data.tables.in_memory import SET
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.data.trials.trial import Recommended, Settings, Trial
from rehearsal_torch.files.schema import is_number
from rehearsal_torch.problems.trials.numbered_rows import TRIAL
from rehearsal_torch.problems.trials.user_experiments import REASON, STATE
from rehearsal_torch.reporting.page.page_content import and_list, counted
from rehearsal_torch.reporting.text_table import text_table
from rehearsal_torch.reporting.trial_view import front_in_words, front_table
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.user_error import UserError, as_user_error, did_you_mean


def suggest(paths: Sequence[Path], given: Mapping[str, str]) -> int:
    """Proposes experiments, and adds them to the list to be filled in."""
    with _campaign(paths[0], given) as optimiser:
        suggestions = optimiser.ask(int(given["count"]), *_held(optimiser, given))
        file = write_list(optimiser, paths[0])
    print(f"{counted(len(suggestions), 'experiment')} to run:")
    rows = [(str(suggestion.trial), suggestion) for suggestion in suggestions]
    print(_settings_table(optimiser, rows))
    print(f"Fill in {and_list(optimiser.task.nodes)} in {file}, and type")
    print(f"  {_typed('tell', paths[0], str(file))}")
    return 0


def tell(paths: Sequence[Path], given: Mapping[str, str]) -> int:
    """Records results: of a table, or of one experiment."""
    values = {name: value for name, value in given.items() if name not in ("method", "rest")}
    if (len(paths) == 2) == bool(values):
        table, one = (_typed("tell", paths[0], each) for each in (str(list_file(paths[0])), "trial=7 ..."))
        fault = "expected either a table of results, or one result as key=value"
        raise UserError(fault, "", f"For example: {table}, or {one}")
    rest = _number("rest", given["rest"]) if "rest" in given else None
    with _campaign(paths[0], given) as optimiser:
        own = len(paths) == 2 and paths[1].resolve() == list_file(paths[0]).resolve()
        changed = optimiser.read(_one_row(optimiser, values) if values else paths[1])
        write_list(optimiser, paths[0], own, () if own else [trial.id for trial in changed])
        meant = {values.get(TRIAL), *(str(trial.id) for trial in changed)}
        running = [trial for trial in optimiser.trials if trial.state == "pending" and trial.nodes]
        running = [trial for trial in running if str(trial.id) in meant or (own and rest is not None)]
        try:
            advice = [] if rest is None else [str(optimiser.finishing(trial, rest)) for trial in running]
        except ValueError as error:
            # The result is recorded all the same.
            advice = [str(error)]
    pending = [suggestion.trial for suggestion in optimiser.pending]
    lines = {} if values or own else optimiser.lines
    for trial in changed:
        print(_recorded(optimiser, trial, lines.get(trial.id)))
    if not any(trial.state != "pending" or trial.nodes for trial in changed):
        print("Nothing new is recorded.")
    print("".join(f"{finishing}.\n" for finishing in advice), end="")
    task = optimiser.task
    if running and rest is None and not (task.constraints or task.settable or task.reward.labels):
        print("Whether to finish it: the same with rest=SHARE, of an experiment's cost that is to come.")
    if pending:
        print(f"Waiting for a result: trial{'s' * (len(pending) > 1)} {and_list([*map(str, pending)])}.")
    print(f"Next: {_typed('suggest', paths[0])}, or {_typed('recommend', paths[0])}")
    return 0


def recommend(paths: Sequence[Path], given: Mapping[str, str]) -> int:
    """Prints the settings to keep."""
    with _campaign(paths[0], given) as optimiser:
        recommended = optimiser.recommend(*_held(optimiser, given))
    if isinstance(recommended, list):
        print(_front_table(optimiser, recommended))
        return 0
    print(_settings_table(optimiser, [("keep", recommended.action)]))
    print(f"{recommended}.")
    print("".join(f"{bound}.\n" for bound in optimiser.at_bounds), end="")
    return 0


def status(paths: Sequence[Path], given: Mapping[str, str]) -> int:
    """Prints how far a campaign is."""
    with _campaign(paths[0], given) as optimiser:
        pending, past = optimiser.pending, optimiser.recommendations
        file = write_list(optimiser, paths[0])
        worth = _number("worth", given["worth"]) if "worth" in given else None
        two = bool(optimiser.task.reward.labels)
        if two and worth is not None:
            raise UserError("of two rewards it is not known what is left to gain", "worth", "Leave it out")
        lacking = optimiser.task.lacking(optimiser.table.records())
        typed = any("context." in key for key in given)
        unsaid = [name for name in optimiser.task.context if not typed and name not in optimiser.context]
        context = None if lacking or unsaid else _held(optimiser, given)[1]
        best = optimiser.recommend(None, context) if two and not lacking and not unsaid else None
        advice = f"What is best depends on {and_list(unsaid)}: type context.{unsaid[0]}=..." if unsaid else ""
        if lacking or not unsaid:
            advice = "" if two else f"{optimiser.stopping(worth, context)}."
        if "figure" in given:
            with as_user_error(f"figure={given['figure']}"):
                drawn = optimiser.plot() if two else optimiser.plot_left_out()
                figure = drawn.get_figure(root=True)
                assert figure is not None
                figure.savefig(given["figure"])
    print(optimiser.summary())
    if optimiser.task.costs is not None:
        waiting = sum(map(optimiser.cost, pending))
        more = f", and what waits for a result costs {setting_text(waiting)} more" if pending else ""
        print(f"The experiments so far cost {setting_text(optimiser.spent)}{more}.")
    if pending:
        print(f"\nWaiting for a result, to be filled in in {file}:")
        print(_settings_table(optimiser, [(str(suggestion.trial), suggestion) for suggestion in pending]))
    if past:
        print("\nWhat became of each recommendation:")
        print("\n".join(f"- {entry}." for entry in past))
    if isinstance(best, list):
        print(f"\n{_front_table(optimiser, best)}")
    elif advice:
        print(f"\n{advice}")
    print("".join(f"{bound}.\n" for bound in optimiser.at_bounds), end="")
    return 0


@contextmanager
def _campaign(path: Path, given: Mapping[str, str]) -> Iterator[CausalOptimiser]:
    """The optimiser of a campaign whose list can be read; warnings are printed, errors are the user's."""
    if is_table(str(path)):
        then = _typed("suggest", Path("problem.yaml"))
        raise UserError(
            "this is a table, and a campaign has a problem file", str(path), of_table(str(path), then)
        )
    with as_user_error(""), undisturbed(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimiser = open_campaign(path, given.get("method"))
        read_list(path)
        yield optimiser
    for note in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"Note: {note}.")


def _held(optimiser: CausalOptimiser, given: Mapping[str, str]) -> list[Settings | None]:
    """Actions that are held, and the context, besides those of the problem file; None where none is typed. A
    UserError without a value of the context.
    """
    held, task = list[Settings | None](), optimiser.task
    for part, known in (("fixed.", optimiser.fixed), ("context.", optimiser.context)):
        typed = {
            name: text if name in task.coded else _number(key, text)
            for key, text in given.items()
            if (name := key.removeprefix(part)) != key
        }
        held.append({**known, **typed} if typed else None)
    for name in task.context:
        if name not in (held[1] or optimiser.context):
            remedy = f"Type context.{name}=..., or write it under context in the problem file"
            raise UserError("expected the value for which to decide", f"context.{name}", remedy)
    return held


def _number(key: str, text: str) -> float:
    if is_number(text):
        return float(text)
    with_point = text.replace(",", ".")
    remedy = f"Write {key}={with_point}, with a decimal point" if is_number(with_point) else ""
    raise UserError("expected a number", f"{key}={text}", remedy)


def _one_row(optimiser: CausalOptimiser, values: Mapping[str, str]) -> ReadTable:
    """A table of one result: settings, measurements, and any of trial, state and reason."""
    task = optimiser.task
    names = (*task.columns, *(f"{SET}{name}" for name in task.settable))
    texts = [name for name in (STATE, REASON) if name not in task.graph.names]
    for name in values:
        if name not in (keys := (*names, *texts, TRIAL)):
            raise UserError("is no setting and no measurement", name, did_you_mean(name, keys))
    cells: dict[str, Any] = {**dict.fromkeys(names), **values}
    cells |= {name: _number(name, values[name]) for name in values if name not in (*texts, *task.coded)}
    numbers = [trial.id for trial in optimiser.trials]
    if TRIAL in values and TRIAL not in names and cells[TRIAL] not in numbers:
        raise UserError(f"expected the number of one of {len(numbers)} trials", f"trial={values[TRIAL]}")
    missing = [name for name in task.required if name not in values]
    if TRIAL not in values and missing:
        raise UserError(f"expected trial=NUMBER, or all settings; {and_list(missing)} missing")
    recorded = next((trial.nodes for trial in optimiser.trials if trial.id == cells.get(TRIAL)), {})
    measured = {*task.reward.names} <= {*recorded}
    ends = STATE in texts and STATE in values and (values[STATE] != "completed" or measured)
    if not ends and not any(name in values for name in task.nodes):
        raise UserError(f"expected a measurement, such as {task.nodes[-1]}=1.2, or state=failed")
    return ReadTable(pd.DataFrame([cells]).infer_objects(), "what was typed")


def _recorded(optimiser: CausalOptimiser, trial: Trial, line_number: int | None) -> str:
    """What is recorded of a trial, in which line of a table it was, and what is not learnt from it."""
    settings = ", ".join(f"{name} {setting_text(value)}" for name, value in trial.settings.items())
    nodes = ", ".join(f"{name} {value:.6g}" for name, value in trial.nodes.items())
    because = f" ({trial.reason})" if trial.reason else ""
    row = "" if line_number is None else f", line {line_number},"
    line = f"Trial {trial.id}{row} is {trial.state}{because}, at {settings}{f': {nodes}' if nodes else ''}."
    missing = [name for name in optimiser.task.nodes if name not in {**trial.nodes, **trial.settings}]
    if trial.state == "completed" and missing:
        what = "it acts on" if len(missing) == 1 else "they act on"
        line += f" Nothing is learnt of {and_list(missing)}, and of what {what} with more doubt."
    return line


def _settings_table(optimiser: CausalOptimiser, rows: Sequence[tuple[str, Settings]]) -> str:
    names, costs = optimiser.task.actions, optimiser.task.costs is not None
    heads = ["trial", *map(optimiser.with_unit, names), *(["cost"] if costs else [])]
    values = [[*map(row.get, names), *([optimiser.cost(row)] if costs else [])] for _, row in rows]
    texts = [["" if number is None else setting_text(number) for number in numbers] for numbers in values]
    return text_table(heads, [[label, *cells] for (label, _), cells in zip(rows, texts, strict=True)])


def _front_table(optimiser: CausalOptimiser, front: Sequence[Recommended]) -> str:
    """A front, and what it is."""
    settings = [(best.action, best.rewards) for best in front]
    return f"{front_in_words(front)}:\n{text_table(*front_table(settings, optimiser.with_unit))}"


def _typed(verb: str, path: Path, *further: str) -> str:
    """A command on a campaign, as it is typed."""
    return " ".join([spoken(verb), str(path), *further])
