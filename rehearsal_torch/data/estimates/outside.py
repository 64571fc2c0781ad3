"""Claims outside the data, which no sentence and no figure has a number for: the reason stands in its place.

A claim lies outside the data where one of its warnings says so: a context variable or an action beyond the
range of the observations (``range: ``), or too few of them near (``support: ``). Tables and files keep the
number, beside the warning.
"""

from collections.abc import Iterable

# How warnings begin that say of a case or an action that it lies outside the data.
OUTSIDE = ("range: ", "support: ")


def outside(warnings: Iterable[str]) -> tuple[str, list[str]]:
    """Why a claim would lie outside the data, in a sentence, and what else says so; empty if it does not.

    What lies outside its range comes first.
    """
    found = sorted(
        (text for text in warnings if text.startswith(OUTSIDE)), key=lambda text: text.startswith(OUTSIDE[1])
    )
    ranges = sum(text.startswith(OUTSIDE[0]) for text in found) or 1
    said = [text.partition(": ")[2] for text in found]
    return (f"outside the data: {'; '.join(said[:ranges])}" if said else ""), said[ranges:]


def in_place(warnings: Iterable[str]) -> str:
    """The sentence that stands in place of a number; empty where the claim has one."""
    beyond, _ = outside(warnings)
    return f"{beyond[0].upper()}{beyond[1:]}." if beyond else ""


def further(warnings: Iterable[str], said: str) -> list[str]:
    """The warnings whose content was not said before.

    Args:
        said: What was said, such as `in_place`.
    """
    return [text for text in warnings if bare(text) not in said]


def bare(text: str) -> str:
    """A warning without the word that says that it lies outside the data, as `outside` has it."""
    return text.partition(": ")[2] if text.startswith(OUTSIDE) else text
