"""Sentences that several cases share, written once with the names of the cases."""

from collections.abc import Iterable, Sequence

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.page.markup import Markup, bullets, joined, tag

NAMED = 8


def name_of(one: Decided) -> str:
    """The name of a decision's case: its identity, or its number where it has none."""
    return str(one.get("identity") or one.get("index", ""))


def grouped(said: Iterable[tuple[str, str]], everybody: int, noun: str = "case", nouns: str = "") -> Markup:
    """Each sentence once, in order of appearance, with the cases that it is said of.

    Args:
        said: The name of a case, and a sentence.
        everybody: The number of all cases.
        noun: What a case is called.
        nouns: What several are called; empty for the noun with an s.
    """
    found: dict[str, list[str]] = {}
    for name, sentence in said:
        found.setdefault(sentence, []).append(name)
    return bullets(
        joined(
            [sentence, tag("span", f" ({whom(names, everybody, noun, nouns or f'{noun}s')})", class_="soft")]
        )
        for sentence, names in found.items()
    )


def whom(names: Sequence[str], everybody: int, noun: str, nouns: str) -> str:
    """The cases that something is said of: all of them, or their names, the first ones if there are many."""
    if len(names) == everybody and everybody > 1:
        return f"all {everybody} {nouns}"
    more = len(names) - NAMED
    some = ", ".join(names[:NAMED] if more > 1 else names)
    return f"{noun if len(names) == 1 else nouns} {some}" + (f" and {more} more" if more > 1 else "")
