"""What would overturn the recommendations of a run: hidden causes and other graphs, in one sentence each.

A recommendation stands against hidden common causes up to its tipping strength (`data.sensitivity`). Over the
N recommendations of a run, the share that stands at strength Gamma is

    stands(Gamma) = #{i: tipping_i > Gamma} / N,

and the median tipping strength is where it falls to one half. The strongest covariate of a run is the
strongest of its decisions, which may alter different variables.

Methods that weigh several candidate graphs record under what share of the posterior a recommendation is
better than no action, and its gain under the worst graph (`surrogates.structural.graph_posterior`). Over a
run, the mean and the smallest share are stated, and the smallest gain.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, median_low

from rehearsal_torch.data.estimates.estimate import CHANCE
from rehearsal_torch.data.estimates.percent import change
from rehearsal_torch.data.sensitivity import Sensitivity, factor
from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.plain import PlainFileError


def sensitivity_of(decided: Decided) -> Sensitivity | None:
    """The recorded sensitivity of a decision; None if there is none.

    Raises:
        PlainFileError: if the record was edited, and says none.
    """
    found = decided.get("sensitivity")
    if not isinstance(found, Mapping):
        return None
    try:
        return Sensitivity.of(found)
    except (LookupError, TypeError, ValueError) as error:
        raise PlainFileError(
            f"decisions.jsonl: sensitivity: expected strengths of at least 1 with their basis; got "
            f"{beginning(str(dict(found)), 200)}: restore the file from a copy"
        ) from error


def yardstick(found: Sequence[Sensitivity]) -> tuple[str, float] | None:
    """The strongest observed covariate and its strength; None if no decision has one."""
    known = [(each.covariate, each.yardstick) for each in found if each.yardstick is not None]
    return max(known, key=lambda pair: pair[1]) if known else None


def typical(found: Sequence[Sensitivity]) -> int:
    """The place of the recommendation with the median tipping strength, the lower of two."""
    return [each.tipping for each in found].index(median_low(each.tipping for each in found))


def stands(found: Sequence[Sensitivity], strength: float) -> float:
    """The share of the recommendations that stand against a hidden cause of some strength."""
    return sum(each.tipping > strength for each in found) / len(found)


def graphs_overall(decisions: Sequence[Decided]) -> str:
    """One sentence on the candidate graphs under which the recommendations are better than no action; empty
    if no recommendation was compared graph by graph.
    """
    acted = [one for one in decisions if one.get("alteration") is not None]
    every = [effort(one, "graphs") for one in acted]
    found = [each for each in every if isinstance(each, Mapping) and "stand" in each]
    if not found:
        return ""
    shares = [float(each["stand"]) for each in found]
    worst = min(found, key=lambda each: float(each["worst"]))
    by = change(float(worst["worst"]), str(claim(acted[0], "of") or CHANCE))
    least = f" (least {min(shares):.1%})" if len(found) > 1 else ""
    judged = min(float(each["judged"]) for each in found)
    if "worst_named" in worst:
        without = f"; {1 - judged:.1%} of them have no estimates" if judged < 1 else ""
        return (
            f"Of {worst['graphs']} graphs that may be true, better than no action under {mean(shares):.1%}"
            f"{least}{without}; under the worst graph ({worst['worst_named']}), by {by}."
        )
    unjudged = (
        f"; graphs with {1 - judged:.1%} of it have too few scenarios for a comparison" if judged < 1 else ""
    )
    return (
        f"Over {found[0]['graphs']} candidate graphs, better than no action under {mean(shares):.1%} of the "
        f"posterior{least}{unjudged}; under the worst graph, number {worst['worst_graph']} with "
        f"{float(worst['worst_weight']):.1%} of it, by {by}."
    )


def overall(decisions: Sequence[Decided]) -> str:
    """One sentence on what would overturn the recommendations; empty if none has a sensitivity."""
    found = [each for each in map(sensitivity_of, decisions) if each is not None]
    if not found:
        return ""
    if len(found) == 1:
        text = found[0].sentence()
        return f"{text[0].upper()}{text[1:]}."
    strengths = [each.tipping for each in found]
    middle = median_low(strengths)
    spread = f"{factor(min(strengths))} to {factor(max(strengths))}"
    doubtful = sum(each == 1 for each in strengths)
    if math.isinf(middle):
        first = f"No hidden common cause can overturn most of the recommendations (strengths {spread})"
    elif middle == 1:
        first = (
            f"Even without a hidden common cause, {doubtful} of {len(found)} recommendations may be no "
            "better than no action, which their interval contains"
        )
    else:
        first = (
            f"A hidden common cause would have to make the action {factor(middle)} times as likely, or as "
            f"unlikely, to overturn the median recommendation (of {len(found)}: {spread})"
        )
    if any(each.basis == "point" for each in found):
        first += ", by the estimates alone where the method has no interval"
    strongest = yardstick(found)
    if strongest is None:
        notes = [each.note for each in found if each.note]
        return f"{first}; {notes[0]}." if notes else f"{first}."
    name, strength = strongest
    if math.isinf(strength):
        does = "determines the action"
    else:
        does = f"makes the action {factor(strength)} times as likely, or as unlikely"
    return f"{first}; the strongest observed covariate, {name}, {does}."
