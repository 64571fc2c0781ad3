"""What a page leaves out of a decision whose case is a held-out row of the table, and was given by nobody.

Left out are what was known of the case, its present values, and both where a sentence states them:

    range: bmi is 51; the observations lie between 18 and 42
 -> range: bmi is beyond the rows; the observations lie between 18 and 42
    leaving bmi at 31 and bp at 90          ->  leaving bmi as it is and bp as it is
    the present value of bmi (31)           ->  the present value of bmi

What a decision sets is shown, also where that lies outside the data; so are ranges of the data, which the
data card has. Sentences are those of `surrogates.overlap` and `objectives.present_values`; sentences of parts
of one's own stay as they are. Values of an edited record are looked for as it has them.
"""

import re
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.spaces.box import setting_text

# An edited record may hold whole numbers that are no float.
LARGEST = 1e300
_KNOWN = ("given", "present")
_OUTSIDE = re.compile(r"^(range: .+) is (?!set to ).+?(; the observations lie between )")


def without_values(one: Decided) -> Decided:
    """A decision without the values of its case; the record itself stays as it is.

    Args:
        one: A line of ``decisions.jsonl``.
    """
    found: dict[str, Any] = {key: value for key, value in one.items() if key not in _KNOWN}
    present = one.get("present")
    stated = _stated(present) if isinstance(present, Mapping) else {}
    warnings, reason = one.get("warnings"), one.get("reason")
    if warnings:
        found["warnings"] = [sentence_without(str(text), stated) for text in warnings]
    if reason:
        found["reason"] = sentence_without(str(reason), stated)
    return found


def sentence_without(text: str, stated: Mapping[str, str]) -> str:
    """A warning or a reason without the values of a case.

    Args:
        stated: Variable to its present value, as sentences state it.
    """
    text = _OUTSIDE.sub(r"\1 is beyond the rows\2", text)
    for name, value in stated.items():
        whole = rf"(?<!\w){re.escape(name)}"
        text = re.sub(rf"({whole}) at {re.escape(value)}(?![\w.])", r"\1 as it is", text)
        text = re.sub(rf"({whole}) \({re.escape(value)}\)", r"\1", text)
    return text


def _stated(present: Mapping[Any, Any]) -> dict[str, str]:
    """Present values as sentences state them: numbers in four significant digits, texts as they are."""
    return {
        str(name): value if isinstance(value, str) else setting_text(float(value))
        for name, value in present.items()
        if isinstance(value, str) or (isinstance(value, int | float) and abs(value) < LARGEST)
    }
