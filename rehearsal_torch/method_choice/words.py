"""A choice in words and as a table: what was taken and why, what does not apply, and what the values are."""

import math
from dataclasses import fields

from rehearsal_torch.method_choice.rule import NOTHING, Choice, Standing

MEANING = (
    "A value is what models of other rows think of the decisions of a method fitted to half of the rows: the "
    "mean estimated probability of a desired outcome, each method's models weighted by how well they predict "
    "held-out rows. It is no outcome of these decisions, which no table has."
)
NET_MEANING = (
    "A net value is what models of other rows think of the decisions of a method fitted to half of the rows, "
    "each method's models weighted by how well they predict held-out rows: the mean of worth times the "
    "estimated probability of a desired outcome, less the cost of the decision from the usual values of the "
    "actions. It is no outcome of these decisions, which no table has."
)
NUMBERS = tuple(
    each.name
    for each in fields(Standing)
    if each.name not in ("method", "applies", "compared", "reason", "chosen")
)


def sentence(choice: Choice) -> str:
    """What was taken, and why, in one sentence."""
    one, best = choice.standing(choice.chosen), choice.standing(choice.best)
    nothing, value = choice.standing(NOTHING), "value" if choice.worth is None else "net value"
    least, error = _value(choice, nothing.value), _apart(choice, one.behind_error)
    own, most = _value(choice, one.value), _value(choice, best.value)
    if choice.chosen == NOTHING and choice.best == NOTHING:
        more = "worth more" if choice.worth is None else "worth more, less their costs,"
        return f"auto took none: no method's decisions are {more} than doing nothing ({least})"
    if choice.chosen == NOTHING:
        return (
            f"auto took none: the {value} of doing nothing, {least}, lies within one standard error "
            f"({error}) of the best, {choice.best} {most}, so that no method is told apart from doing nothing"
        )
    beside = f"doing nothing {least}"
    if choice.chosen == choice.best:
        return (
            f"auto took {choice.chosen}: its {value} {own} is the best, and no simpler method lies within "
            f"one standard error of it ({beside})"
        )
    return (
        f"auto took {choice.chosen}: its {value} {own} lies within one standard error ({error}) of the best, "
        f"{choice.best} {most}, and it is simpler ({beside})"
    )


def gained(choice: Choice) -> str:
    """What the method taken, or else the best, gains over doing nothing, in a sentence; empty if that is
    doing nothing.
    """
    one = choice.standing(choice.chosen if choice.chosen != NOTHING else choice.best)
    if one.method == NOTHING:
        return ""
    gain = _apart(choice, one.gain, "+")
    lower, upper = (
        f"{each:+.4g}" if choice.worth is not None else f"{100 * each:+.1f}"
        for each in (one.gain_lower, one.gain_upper)
    )
    unclear = ", so that it is not told from zero" if one.gain_lower <= 0 <= one.gain_upper else ""
    return f"Over doing nothing, {one.method} gains {gain} (95% interval {lower} to {upper}){unclear}."


def _value(choice: Choice, value: float) -> str:
    """A value as text: a chance in per cent with one decimal, an amount in four digits."""
    return f"{100 * value:.1f} %" if choice.worth is None else f"{value:.4g}"


def _apart(choice: Choice, value: float, sign: str = "") -> str:
    """A difference of two values as text: of chances in percentage points."""
    return f"{100 * value:{sign}.1f} percentage points" if choice.worth is None else f"{value:{sign}.4g}"


def sentences(choice: Choice) -> list[str]:
    """All that is to be said of a choice, one sentence each."""
    told = [each for each in (f"{sentence(choice)}.", gained(choice)) if each]
    nothing = choice.standing(NOTHING)
    if choice.chosen != NOTHING and nothing.behind <= nothing.behind_error:
        told.append(
            "No method is told apart from doing nothing, which decision=none cannot be asked for here: its "
            "linear model cannot be fitted."
        )
    compared = [each for each in choice.standings if each.compared]
    drawn = f"{choice.rows} of {choice.of} rows" if choice.rows < choice.of else f"{choice.rows} rows"
    told.append(
        f"{len(compared)} methods were compared on {drawn}, in {choice.halves} halves with {choice.cases} "
        f"cases each. Choosing among them makes the value of {choice.chosen} about "
        f"{_apart(choice, choice.bias)} too large."
    )
    poor = [each.method for each in compared if not each.predicts]
    if poor:
        verb = "predicts" if len(poor) == 1 else "predict"
        told.append(
            f"{' and '.join(poor)} {verb} held-out rows worse than a constant, by more than one standard "
            "error, and could not be taken."
        )
    told += [f"{each.method} does not apply: {each.reason}." for each in choice.standings if not each.applies]
    idle = [each.method for each in choice.standings if each.applies and not each.compared]
    if idle:
        told.append(f"Not compared, for the reasons in the table of the choice: {', '.join(idle)}.")
    return [*told, MEANING if choice.worth is None else NET_MEANING]


def rows(choice: Choice) -> list[dict[str, str]]:
    """The table of a choice, one row per method; numbers in six digits, empty where there is none."""
    return [
        {
            "method": each.method,
            "applies": _yes(each.applies),
            "compared": _yes(each.compared),
            "chosen": _yes(each.chosen),
            **{name: _cell(getattr(each, name)) for name in NUMBERS},
            "reason": each.reason,
        }
        for each in choice.standings
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
