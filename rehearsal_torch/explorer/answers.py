"""What the page shows of a claim: its numbers and its sentence, or the reason for which there are none.

    outside the data    a context variable or an action lies outside the range of the observations
                        (``range:``), or few of them are near (``support:``): the number is withheld, and the
                        warning stands in its place
    refused             the method cannot answer: the reason stands in its place
    otherwise           the claim with its interval, beside that of no action, and, where the case states the
                        present values of what is set, of leaving these

A number that is withheld does not leave the server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.texts import said
from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.estimates.outside import OUTSIDE, outside
from rehearsal_torch.data.estimates.percent import ends_of, percents
from rehearsal_torch.reporting.page.material import shown
from rehearsal_torch.reporting.page.probability_sentences import chances, headline
from rehearsal_torch.verbs.what_if import WhatIf


def answer(
    found: WhatIf, unknown: Sequence[str], present: Mapping[str, Any], left: Sequence[str] = ()
) -> dict[str, Any]:
    """What the page shows of a claim.

    Args:
        found: The claim.
        unknown: Why the context lies outside the data, so that no action has no number either; empty if it
            does not.
        present: The present values of actions in the case, in words.
        left: Why leaving these would lie outside the data, so that it has no number; empty if it would not.
    """
    beyond, more = outside(found.warnings)
    if left and found.unchanged is not None:
        found = replace(found, unchanged=None, net_gain=None)
        more = [*more, f"leaving the present values has no number: {outside(left)[0]}"]
    withheld = f"refused: {found.refused}" if found.refused else beyond
    baseline = None if unknown else _numbers(found.baseline)
    others = [text for text in found.warnings if not text.startswith((*OUTSIDE, "predicted no better"))]
    if withheld:
        others = [text for text in others if not text.startswith("gain: ")]
    return {
        "setting": dict(found.alteration),
        "withheld": withheld,
        "also": beyond if found.refused else "",
        "estimate": None if withheld else _numbers(found.estimate),
        "baseline": baseline,
        "unchanged": None if withheld else _numbers(found.unchanged),
        "cost": found.cost,
        "net_gain": None if withheld or unknown else _numbers(found.net_gain),
        "told": None if withheld else _told(replace(found, baseline=None) if unknown else found),
        "sentence": withheld or _sentence(found, bool(unknown), present),
        "warnings": list(dict.fromkeys([*more, *others])),
        "against": "" if withheld or not found.against else f"The method would not set this: {found.against}",
        "near": None if withheld or found.distance is None else round(found.distance, 2),
    }


def decision_answer(
    decision: Decision,
    present: Mapping[str, float],
    codings: Mapping[str, Coding] | None = None,
    wanted: str = "",
    units: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the page shows of a decision of the method: headline and sentences, in the words of a report.

    Args:
        present: The present values of actions in the case.
        codings: What texts are as numbers; None for none.
        wanted: The desired region in words; empty where these are too long.
        units: Variable to its unit; None for none.
    """
    setting = decision.to_dict()["alteration"]
    plain = said(decision.to_dict() | {"present": dict(present)}, codings or {})
    beyond, more = outside(decision.warnings)
    sentences = chances(plain, wanted)
    if decision.alteration is None and decision.reason:
        sentences.append(f"Why: {decision.reason}.")
    others = [*more, *(text for text in decision.warnings if not text.startswith(OUTSIDE))]
    overturned = None if beyond or decision.sensitivity is None else decision.sensitivity.sentence()
    if overturned:
        sentences.append(f"{overturned[0].upper()}{overturned[1:]}.")
    return {
        "status": decision.status,
        "headline": headline(plain, units),
        "said": sentences,
        "warnings": others,
        "setting": setting,
        "outside": bool(beyond),
    }


def _numbers(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_dict()


def _told(found: WhatIf) -> dict[str, str]:
    """The numbers of a claim as they are said; empty texts for what has none."""
    one = found.estimate
    point, *ends = percents([one.point, *(ends_of(one) or ())], found.decimals)
    beside = {"baseline": found.baseline, "unchanged": found.unchanged}
    # What the claim is compared with has its decimals.
    compared = "baseline" if found.unchanged is None else "unchanged"
    return {
        "point": point,
        "interval": f"{100 * float(one.level or 0):g}% interval {ends[0]} to {ends[1]}" if ends else "",
        **{
            name: "" if each is None else percents([each.point], found.decimals if name == compared else 0)[0]
            for name, each in beside.items()
        },
    }


def _sentence(found: WhatIf, unknown: bool, present: Mapping[str, Any]) -> str:
    """The claim in a sentence, with that of the present values and of no action if there is one."""
    left = " and ".join(f"{name} left at {shown(present[name])}" for name in found.setting if name in present)
    return replace(found, baseline=None if unknown else found.baseline).claim(left or "the present values")
