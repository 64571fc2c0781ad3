"""Docstrings, argument by argument."""

from collections.abc import Sequence

from rehearsal_torch.methods.argument_descriptions import annotated, argument_docs, entries, takes

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


class Valued:
    """An objective.

    Args:
        weights: As a tensor.
        level: How sure.
    """

    def __init__(self, weights: list[float], level: float) -> None:
        self.weights, self.level = weights, level

    @classmethod
    def for_sets(cls, weights: dict[str, float] | None = None) -> list["Valued"]:
        """One for each set.

        Args:
            weights: By name.
        """
        return [cls(list((weights or {}).values()), 0.5)]


def test_an_objective_of_alterations_takes_its_settings_where_its_sets_are_built():
    target = f"{HERE}.Valued"
    assert argument_docs(target) == {"weights": "By name.", "level": "How sure."}
    assert annotated(target, "weights") == "mapping or null"
    assert annotated(target, "level") == "number"
    assert set(takes(f"{HERE}.Derived")) == {"beds", "nurses"}
