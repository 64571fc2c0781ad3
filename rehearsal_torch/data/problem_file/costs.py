"""Costs of actions in a problem file, as a task holds them.

variables:
bmi: {role: action, range: [20, 35], cost: {up: 4, down: 2, fixed: 10}}
costs: {bmi: cost_of_bmi}        # of each case its own cost per unit: a column of the cases
worth: 1000                      # what a desired outcome is worth, in the unit of the costs
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.costs.action_cost import ActionCost
from rehearsal_torch.data.costs.of_cases import column_faults
from rehearsal_torch.data.problem_file.findings import Findings, key
from rehearsal_torch.data.problem_file.form import VariableForm
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.files.schema import meant


def cost_parts(
    form: Mapping[str, Any],
    variables: Mapping[str, VariableForm],
    found: Findings,
    codings: Mapping[str, Coding],
    box: Mapping[str, Any],
) -> dict[str, Any]:
    """The parts ``costs`` and ``worth`` of a task, as plain data; none where nothing costs anything.

    Args:
        box: What the actions may be set to, with texts, for those without a fault.
    """
    costs = dict[str, ActionCost]()
    for name, about in variables.items():
        # Faults of other roles, and of what an action may be set to, are told.
        if about.cost is None or about.role != "action" or box.get(name) is None:
            continue
        try:
            costs[name] = about.cost.built(name, codings.get(name), _levels(name, codings, box))
        except ValueError as error:
            found.fault(f"{key('variables', name)}.cost", str(error))
    actions = [name for name, about in variables.items() if about.role == "action"]
    for name, column in form.get("costs", {}).items():
        path = key("costs", name)
        if not actions:
            # Their own faults are told.
            continue
        if name not in actions:
            found.fault(path, f"is no action; {meant(name, actions)}")
            continue
        own, coding = costs.get(name, ActionCost()), codings.get(name)
        if coding is not None and coding.of_classes:
            found.fault(
                path,
                "a change from one class to another has no size that a cost per unit could count; write what "
                f"a change to each costs under variables, {name}: {{..., cost: {{{coding.levels[0]}: NUMBER, "
                "...}}",
            )
            continue
        if own.up or own.down or own.column or own.levels:
            what = "cost of each level" if own.levels else "cost per unit"
            found.fault(path, f"{name} has a {what} under variables as well: leave one of the two out")
            continue
        costs[name] = ActionCost(fixed=own.fixed, column=column, usual=own.usual)
    worth = form.get("worth")
    made = {name: each.to_plain() for name, each in costs.items() if name in actions}
    return {
        **({"costs": made} if made else {}),
        **({} if worth is None else {"worth": worth}),
    }


def _levels(
    name: str, codings: Mapping[str, Coding], box: Mapping[str, Any]
) -> Mapping[str, Sequence[float]] | None:
    """Coded column to the values that an action may be set to; None for any of a range."""
    written = box.get(name)
    if not isinstance(written, dict):
        return None
    coding, values = codings.get(name), written["values"]
    if coding is None:
        return {name: values}
    rows = coding.rows[[coding.levels.index(each) for each in values]]
    return {column: rows[:, place].tolist() for place, column in enumerate(coding.columns)}


def cost_faults(form: Mapping[str, Any], cases: ReadTable, found: Findings) -> None:
    """Faults of the columns that have the costs of each case.

    Args:
        cases: The cases, or the rows of which some are held out.
    """
    named = {name: (key("costs", name), column) for name, column in form.get("costs", {}).items()}
    for name, about in form.get("variables", {}).items():
        if about.cost is not None and about.cost.column is not None:
            named[name] = (f"{key('variables', name)}.cost", about.cost.column)
    for name, (path, column) in named.items():
        for fault in column_faults(cases.frame, cases.where, name, column, cases.at):
            found.fault(path, fault)


def untold_worth(form: Mapping[str, Any], costs: Mapping[str, Any], found: Findings) -> None:
    """Warns of costs that do not count, and of a worth that nothing is weighed against."""
    if costs.get("costs") and costs.get("worth") is None:
        named = ", ".join(costs["costs"])
        path = "costs" if form.get("costs") else f"{key('variables', next(iter(costs['costs'])))}.cost"
        found.warn(
            path,
            "unused",
            f"the cost of {named} is told with each decision, and does not count: to weigh it, add the line "
            "worth: NUMBER, what a desired outcome is worth in the unit of the costs",
        )
    if costs.get("worth") is not None and not costs.get("costs"):
        found.warn(
            "worth",
            "unused",
            "no action has a cost, so that nothing is weighed against it: add cost: to actions",
        )
