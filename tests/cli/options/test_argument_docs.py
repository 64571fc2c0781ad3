"""Docstrings, argument by argument."""

from collections.abc import Sequence

from rehearsal_torch.cli.options.argument_docs import annotated, argument_docs, entries

HERE = __name__


class Base:
    """A ward.

    Args:
        beds: How many.
        nurses: Of the day:
            and of the night.

    Raises:
        ValueError: for none.
    """

    def __init__(self, beds: int, nurses: Sequence[str] | None = None) -> None:
        self.beds, self.nurses = beds, nurses


class Derived(Base):
    """A larger ward.

    Attributes:
        beds (int): How many, at least ten.
    """


def test_entries_of_a_docstring():
    assert entries(Base.__doc__) == {"beds": "How many.", "nurses": "Of the day: and of the night."}
    assert entries("No arguments.") == {}


def test_a_derived_class_speaks_before_its_base():
    target = f"{HERE}.Derived"
    assert argument_docs(target) == {
        "beds": "How many, at least ten.",
        "nurses": "Of the day: and of the night.",
    }


def test_annotations_in_words():
    target = f"{HERE}.Base"
    assert annotated(target, "beds") == "whole number"
    assert annotated(target, "nurses") == "list or null"
    assert annotated(target, "doors") == ""
