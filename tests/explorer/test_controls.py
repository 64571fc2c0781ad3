"""What the page asks for of a case: numbers, levels and classes."""

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.explorer.rehearsal_session import action_field, context_field, offered, usual
from tests.data.codings.test_task_codings import TASK


def test_texts_are_chosen_and_numbers_are_typed():
    coded, given = RehearsalTask.of(TASK).coded, {"age": 50.5, "ward=B": 0.0, "ward=C": 1.0}
    ward = context_field("ward", coded["ward"], [0.0, 1.0], given, "ward")
    assert (ward["levels"], ward["chosen"], ward["hint"]) == (["A", "B", "C"], 2, "")
    assert context_field("ward", coded["ward"], (), {}, "ward")["chosen"] == 0
    age = context_field("age", None, [20.0, 80.0], given, "age (years)")
    assert (age["levels"], age["exact"], age["hint"]) == ([], "50.5", "observed: 20 to 80")


def test_a_value_is_sent_back_with_all_its_digits():
    action, case = {"bounds": [0.0, 1.0], "levels": None, "texts": None}, {"bounds": {}, "present": {}}
    field = action_field("a", action, case, 0.1 + 0.2, "a")
    assert (field["value"], float(field["exact"])) == ("0.3", 0.1 + 0.2)
    assert action_field("a", action, case, 7.0, "a")["exact"] == "1"


def test_what_is_set_is_offered_by_its_range_its_levels_or_the_places_of_its_classes():
    task = RehearsalTask.of(
        {
            "graph": ["ward -> severity", "smoker -> severity", "dose -> severity"],
            "context": [],
            "box": {"ward": {"values": ["A", "B", "C"]}, "smoker": {"values": ["no", "yes"]}, "dose": [0, 2]},
            "region": "severity <= medium",
            "codings": TASK["codings"],
        }
    )
    assert offered(task) == {
        "ward": {"bounds": [0.0, 2.0], "levels": [0.0, 1.0, 2.0], "texts": ["A", "B", "C"]},
        "smoker": {"bounds": [0.0, 1.0], "levels": [0.0, 1.0], "texts": ["no", "yes"]},
        "dose": {"bounds": [0.0, 2.0], "levels": None, "texts": None},
    }


def test_the_first_values_are_those_of_a_possible_case():
    task = RehearsalTask.of(TASK)
    means = {"ward=B": 0.3, "ward=C": 0.45, "age": 50.123}
    assert usual(task, means) == {"ward=B": 0.0, "ward=C": 1.0, "age": 50.1}
    assert usual(task, means | {"ward=C": 0.2}) == {"ward=B": 0.0, "ward=C": 0.0, "age": 50.1}
    assert usual(task, {"age": 1.0}) == {"age": 1.0}
    ordered = RehearsalTask.of(
        {
            "graph": ["s -> y", "a -> y"],
            "context": ["s"],
            "box": {"a": [0, 1]},
            "region": "y >= 0",
            "codings": {"s": ["low", "medium", "high"]},
        }
    )
    assert usual(ordered, {"s": 1.4}) == {"s": 1.0}
