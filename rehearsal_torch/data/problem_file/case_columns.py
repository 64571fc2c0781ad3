"""What the columns of the cases are for, and whether their values can occur.

A column of the cases is a variable, their name (`identity`), a cost, or part of a bound. Another one does
nothing: a name that is nearly that of a variable is a slip, which would otherwise leave a present value or a
context unread. A `binary` variable has two values, those of the rows.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from rehearsal_torch.data.problem_file.findings import Findings, key
from rehearsal_torch.data.problem_file.form import VariableForm
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.files.schema import suggested

# The least similarity of a slip, and the fewest letters of one.
ALIKE, SHORT = 0.8, 3
_WORD = re.compile(r"[^\W\d]\w*|`[^`]*`")


def unused_columns(cases: ReadTable, form: Mapping[str, Any], found: Findings) -> None:
    """Faults of keys of listed cases that are nearly a variable, and warnings of columns that do nothing: of
    a list each, of a file those that are nearly a variable.

    Args:
        form: The parts of the problem file.
        found: Collects them.
    """
    variables = list(form.get("variables", {}))
    used = {*variables, str(form.get("identity")), *map(str, (form.get("costs") or {}).values())}
    used |= {
        word.strip("`")
        for limits in (form.get("bounds") or {}).values()
        for limit in limits
        for word in _WORD.findall(str(limit))
    }
    listed = isinstance(form.get("cases"), list)
    there = set(map(str, cases.frame.columns))
    for name in (str(each) for each in cases.frame.columns if str(each) not in used):
        near = _near(name, [each for each in variables if each not in there])
        if near and listed:
            found.fault("cases", f"{name!r} is no variable; did you mean {near!r}?")
        elif near:
            found.warn("cases", f"column {name!r} of {cases.where} is not used; did you mean {near!r}?")
        elif listed:
            found.warn("cases", f"{name!r} is no variable, and not used")


def _near(name: str, choices: Iterable[str]) -> str | None:
    """The choice of which a name is a slip; of short names only upper and lower case may differ."""
    near = suggested(name, choices, ALIKE)
    short = near is not None and min(len(name), len(near)) < SHORT
    return None if near is None or (short and near.casefold() != name.casefold()) else near


def impossible_values(
    cases: ReadTable, rows: pd.DataFrame, variables: Mapping[str, VariableForm], found: Findings
) -> None:
    """Faults of values of binary variables that no row has.

    Args:
        cases: The cases, with the codes of texts.
        rows: The observations, likewise.
        variables: The binary variables among these are looked at.
        found: Collects faults.
    """
    for name, about in variables.items():
        if about.kind != "binary" or name not in cases.frame.columns or name not in rows.columns:
            continue
        known = {float(each) for each in _numbers(rows[name]).dropna().unique()}
        values = " and ".join(f"{each:g}" for each in sorted(known))
        for line, value in _numbers(cases.frame[name]).dropna().items():
            if float(value) not in known:
                found.fault(
                    key("cases"),
                    f"{cases.at(int(str(line)))} of {cases.where}: {name} is {float(value):g}; expected one "
                    f"of its two values, {values}",
                )
                break


def _numbers(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce")
