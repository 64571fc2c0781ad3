"""Costs and net values of recorded decisions, as cells of tables and as sentences.

cost         what the alteration costs, 0 where nothing is altered
net_value    the worth of a desired outcome times its probability, minus the cost, with an interval
net_gain     the same, minus that of changing nothing
"""

import math
from collections.abc import Sequence

import pandas as pd

from rehearsal_torch.evaluation.recorded_run import Decided, claim
from rehearsal_torch.evaluation.rehearsal_rows import number


def priced(lines: Sequence[Decided]) -> bool:
    """Whether any of some decisions has a cost."""
    return any(not math.isnan(number(decision.get("cost"))) for decision in lines)


def weighed(lines: Sequence[Decided]) -> bool:
    """Whether any of some decisions was weighed against the worth of a desired outcome."""
    return any(not math.isnan(number(decision.get("worth"))) for decision in lines)


def cells(decision: Decided) -> dict[str, float]:
    """The numbers of a decision by column, NaN where there is none."""
    numbers = {"cost": number(decision.get("cost"))}
    for of in ("net_value", "net_gain"):
        ends = {f"{of}_{end}": number(claim(decision, end, of)) for end in ("lower", "upper")}
        numbers |= {of: number(claim(decision, of=of)), **ends}
    return numbers


def cost_cell(decision: Decided) -> str:
    """The cost as text; a dash without one."""
    return _amount(decision.get("cost"))


def gain_cell(decision: Decided) -> str:
    """The net gain as text, with its interval if it has one; a dash without one."""
    point, lower, upper = (number(claim(decision, part, "net_gain")) for part in ("point", "lower", "upper"))
    if math.isnan(point):
        return "-"
    return f"{point:+.4g}" if math.isnan(lower) else f"{point:+.4g} [{lower:+.4g}, {upper:+.4g}]"


def sentence(decision: Decided) -> str:
    """What a decision costs, and what it nets, in a sentence; empty if nothing is known of costs."""
    if math.isnan(number(decision.get("cost"))):
        return ""
    value = f"the net value is {_amount(claim(decision, of='net_value'))}"
    if decision.get("alteration") is None:
        return f"It costs nothing; {value}." if weighed([decision]) else "It costs nothing."
    cost = f"It costs {cost_cell(decision)}"
    if not weighed([decision]):
        return f"{cost}, which is not weighed: what a desired outcome is worth is not stated."
    gain = gain_cell(decision)
    return f"{cost}." if gain == "-" else f"{cost} and nets {gain} above changing nothing; {value}."


def average(frame: pd.DataFrame) -> str:
    """The mean cost and net gain of the recommended alterations of a data frame, in words; empty without."""
    if "cost" not in frame:
        return ""
    cost, gain = (number(frame[name].mean()) for name in ("cost", "net_gain"))
    if math.isnan(cost):
        return ""
    nets = "" if math.isnan(gain) else f" and nets {gain:+.3g}"
    return f" It costs {cost:.3g}{nets} on average."


def _amount(value: object) -> str:
    amount = number(value)
    return "-" if math.isnan(amount) else f"{amount:.4g}"
