import copy

import pytest

from tests.golden.tolerances import differences

RECORD = {
    "machine": {"processor": "one"},
    "cpu_seconds": 1.0,
    "run": {
        "widths": {"a": 4.0},
        "decisions": [
            {
                "status": "may",
                "set": {"a": 1.0},
                "estimate": {"point": 0.5, "lower": None},
                "baseline": {"point": -40.0},
                "doses": {"action[0]": [0.2, 250.0]},
                "warnings": {"support": 1},
            }
        ],
        "losses": {"train_loss": -2.0},
    },
}


def changed(value, *path, processor="one"):
    made = copy.deepcopy(RECORD)
    made["machine"]["processor"], made["cpu_seconds"] = processor, 9.0
    place = made["run"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


POINT, SET = ("decisions", 0, "estimate", "point"), ("decisions", 0, "set", "a")
RETURN, DOSE = ("decisions", 0, "baseline", "point"), ("decisions", 0, "doses", "action[0]", 1)
LOSS, STATUS = ("losses", "train_loss"), ("decisions", 0, "status")
WARNINGS = ("decisions", 0, "warnings", "support")


@pytest.mark.parametrize(
    ("processor", "path", "within", "beyond"),
    [
        ("one", POINT, 0.5 + 9e-10, 0.5 + 2e-9),
        ("other", POINT, 0.5049, 0.5051),
        ("one", SET, 1 + 9e-10, 1 + 2e-9),
        ("other", SET, 1.039, 1.041),
        ("other", RETURN, -40.19, -40.21),
        ("other", DOSE, 252.4, 252.6),
        ("one", LOSS, -1.91, -1.89),
        ("other", LOSS, -1.91, -1.89),
    ],
)
def test_numbers_may_differ_up_to_their_tolerance(processor, path, within, beyond):
    assert differences(RECORD, changed(within, *path, processor=processor)) == []
    (line,) = differences(RECORD, changed(beyond, *path, processor=processor))
    assert path[-2 if path == DOSE else -1] in line
    assert f"{beyond!r} now" in line


@pytest.mark.parametrize("processor", ["one", "other"])
def test_a_status_is_equal_everywhere(processor):
    assert len(differences(RECORD, changed("refused", *STATUS, processor=processor))) == 1


def test_warnings_are_counted_on_one_machine_alone():
    assert len(differences(RECORD, changed(2, *WARNINGS))) == 1
    assert differences(RECORD, changed(2, *WARNINGS, processor="other")) == []


@pytest.mark.parametrize("value", [None, "nothing", float("nan"), True, [0.5]])
def test_what_is_no_longer_a_number_differs(value):
    assert differences(RECORD, changed(value, *POINT, processor="other"))
