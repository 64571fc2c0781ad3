"""Claims outside the data, which no sentence and no figure has a number for: the reason stands in its place.

A claim lies outside the data where one of its findings says so: a context variable or an action beyond the
range of the observations, or too few of them near. Tables and files keep the number, beside the warning.
"""

from collections.abc import Iterable

from rehearsal_torch.data.finding import OUTSIDE, Finding


def outside(findings: Iterable[Finding]) -> tuple[str, list[str]]:
    """Why a claim would lie outside the data, in a sentence, and what else says so; empty if it does not.

    What lies outside its range comes first.
    """
    beyond = sorted(
        (each for each in findings if each.kind in OUTSIDE), key=lambda each: each.kind != "range"
    )
    ranges = sum(each.kind == "range" for each in beyond) or 1
    texts = [each.text for each in beyond]
    return (f"outside the data: {'; '.join(texts[:ranges])}" if texts else ""), texts[ranges:]


def in_place(findings: Iterable[Finding]) -> str:
    """The sentence that stands in place of a number; empty where the claim has one."""
    beyond, _ = outside(findings)
    return f"{beyond[0].upper()}{beyond[1:]}." if beyond else ""


def further(findings: Iterable[Finding], said: str) -> list[str]:
    """The sentences of findings whose content was not said before."""
    return [each.text for each in findings if each.text not in said]
