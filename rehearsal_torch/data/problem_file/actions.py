"""Kinds of variables, and the values to which actions may be set.

    continuous     any number; an action needs range: [lower, upper]
    integer        whole numbers; of the range, those that occur in the rows
    binary         two numbers, such as 0 and 1, or two texts
    ordinal        whole numbers whose order means something; of the range, those that occur; or texts, all
                   of which are offered
    categorical    two values, numbers or texts; or more, all of which are offered (`problem_file.kinds`)

Of texts and classes, `offered` names those that may be set, where these are not all.

A value that no row has cannot be learnt from, and so is not offered.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import Coding, listed
from rehearsal_torch.data.problem_file.findings import Findings, key
from rehearsal_torch.data.problem_file.form import VariableForm
from rehearsal_torch.data.problem_file.kinds import has_texts, offered_of
from rehearsal_torch.data.reading import numbers_of
from rehearsal_torch.spaces.box import levels_text

SETTINGS = ("range", "levels", "offered", "step", "cost")
TOLERANCE = 1e-9


def kind_faults(name: str, about: VariableForm, column: pd.Series, found: Findings) -> None:
    """Faults of a column of numbers that is not of its kind."""
    numbers = numbers_of(column)
    values = np.unique(numbers[np.isfinite(numbers)])
    path = key("variables", name, "kind")
    if about.kind in ("integer", "ordinal"):
        odd = np.isfinite(numbers) & (numbers != np.round(numbers))
        if odd.any():
            place = int(odd.argmax())
            found.fault(
                path,
                f"expected whole numbers in the column; got {numbers[place]:g} in line "
                f"{int(column.index[place]) + 2}: correct it, or write kind: continuous",
            )
    if about.kind == "binary" and len(values) > 2:
        found.fault(
            path,
            f"expected two values in the column; got {len(values)}, {levels_text(values.tolist())}: correct "
            "the column, or write another kind",
        )


def setting_faults(name: str, about: VariableForm, found: Findings) -> None:
    """Faults of settings that do not go together."""
    path = key("variables", name)
    texts = has_texts(about.levels) or (about.kind == "categorical" and about.levels is not None)
    given = [setting for setting in SETTINGS if getattr(about, setting) is not None]
    if about.reference is not None and about.kind != "categorical":
        found.fault(f"{path}.reference", f"is for classes; the kind is {about.kind}: leave it out")
    elif about.reference is not None and about.role == "outcome":
        words = "an outcome has none, desired says which of its classes are wished: leave it out"
        found.fault(f"{path}.reference", words)
    if texts:
        given.remove("levels")
    if about.role != "action":
        for setting in given:
            found.fault(
                f"{path}.{setting}", f"is for actions; {name} is of the role {about.role}: leave it out"
            )
        return
    if about.levels is not None and not texts and (about.range is not None or about.step is not None):
        found.fault(f"{path}.levels", "levels are all values that may be set: leave range and step out")
    if about.levels == []:
        found.fault(f"{path}.levels", "expected a list of the values that it may be set to; got none")
    if about.step is not None and about.range is None:
        found.fault(f"{path}.step", "a step needs range: [lower, upper], from whose lower end it counts")


def settable(
    name: str,
    about: VariableForm,
    column: pd.Series,
    found: Findings,
    coding: Coding | None = None,
) -> Any:
    """What an action may be set to, as a task writes it: [lower, upper] or {values}; None with a fault."""
    path = key("variables", name)
    if coding is not None:
        if about.range is not None or about.step is not None:
            found.fault(
                f"{path}.{'range' if about.range is not None else 'step'}",
                f"it has {'classes' if coding.of_classes else 'texts'}, all of which are offered "
                f"({listed(coding.levels)}): leave it out, or name some by offered: [...]",
            )
            return None
        return {"values": offered_of(about, coding.levels)}
    if about.offered is not None:
        found.fault(
            f"{path}.offered",
            "is for texts and classes; the column has numbers: name those that may be set by levels: [...]",
        )
        return None
    numbers = numbers_of(column)
    values = np.unique(numbers[np.isfinite(numbers)])
    if about.levels is not None:
        offered = [float(each) for each in about.levels]
        near = 1e-9 * (1 + np.abs(values).max(initial=0.0))
        if unseen := [each for each in offered if not (np.abs(values - each) <= near).any()]:
            found.fault(
                f"{path}.levels",
                f"no row has the value {levels_text(unseen)}, so that nothing is known of it; the rows have "
                f"{levels_text(values.tolist())}: offer values that occur, or range",
            )
        return {"values": offered}
    if about.range is None:
        if about.kind in ("binary", "categorical") and len(values):
            return {"values": values.tolist()}
        seen = f", for instance the observed [{values[0]:g}, {values[-1]:g}]" if len(values) else ""
        found.fault(path, f"an action needs range: [lower, upper]{seen}, or levels: [...]")
        return None
    lower, upper = about.range
    if about.kind == "continuous" and about.step is None:
        return [lower, upper]
    step = about.step or 1.0
    start = lower if about.step is not None else float(np.ceil(lower))
    count = int(np.floor((upper - start) / step + TOLERANCE)) + 1
    inside = values[(values >= lower - TOLERANCE) & (values <= upper + TOLERANCE)]
    turns = np.round((inside - start) / step)
    known = inside[
        (np.abs(start + turns * step - inside) <= TOLERANCE * (1 + np.abs(inside)))
        & (turns >= 0)
        & (turns < max(count, 0))
    ]
    if not len(known):
        found.fault(
            path,
            f"no row has one of the values {start:g}, {start + step:g}, ... up to {upper:g}: "
            "nothing is known of their effect; offer values that occur, or leave step out",
        )
        return None
    if len(known) < count:
        found.of_variable(
            name,
            "values",
            f"{count - len(known)} of the {count} values that it could be set to occur in no row and are not "
            f"offered; offered are {levels_text(known.tolist())}",
        )
    return {"values": known.tolist()}


def costs(variables: Mapping[str, VariableForm]) -> dict[str, float]:
    """The costs of actions as weights of squared changes, which `micns` can be given; empty if one of them is
    more than a number above 0.
    """
    given = {name: about.cost for name, about in variables.items() if about.cost is not None}
    if not all(each.up and each.up == each.down and not each.fixed for each in given.values()):
        return {}
    return {name: each.up or 0.0 for name, each in given.items()}


def of_role(variables: Mapping[str, VariableForm], *roles: str) -> list[str]:
    """The variables of some roles, in the file's order."""
    return [name for name, about in variables.items() if about.role in roles]


def units_of(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The units of variables as words for reports; empty if there are none."""
    units = {name: about.unit for name, about in variables.items() if about.unit}
    return {"units_of": units} if units else {}
