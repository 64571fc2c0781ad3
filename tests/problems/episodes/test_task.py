import pytest
import yaml

from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.problems.episodes.roles import Action, Carry, Column, Words
from rehearsal_torch.problems.episodes.task import episode_task
from tests.toys.pumps import TASK, task


def test_a_task_says_what_every_column_means():
    roles = episode_task(TASK)
    assert (roles.unit, roles.time, roles.step) == ("pump", "hour", None)
    assert roles.varying == (Column("flow", "l/s", 0.0, 100.0), Column("heat"))
    assert roles.static == (Column("bore", "mm"), Column("maker", values=("A", "B", "C")))
    assert roles.actions == (
        Action("valve", "", ("shut", "half", "open"), (0.0, 1.0, 3.0), "max"),
        Action("oil", "ml", (), (0.5,), "sum"),
    )
    assert roles.count == 5
    assert roles.words == Words("pump", "pumps", "")
    assert roles.missing == Carry("refuse")


def test_a_file_reads_as_its_content(tmp_path):
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK, sort_keys=False), encoding="utf-8")
    assert episode_task(tmp_path / "task.yaml") == episode_task(TASK)


def test_levels_are_a_number_of_them_or_their_names_and_values():
    def levels(written):
        return episode_task(task(actions={"valve": {"levels": written}})).actions[0].levels

    assert levels(3) == ("0", "1", "2")
    assert levels([-1, 0, 1]) == ("-1", "0", "1")
    assert levels([0.5, "b "]) == ("0.5", "b")


def test_actions_with_levels_alone_need_no_more_levels_than_they_have():
    roles = episode_task(task(actions={"valve": {"levels": 3}, "gate": {"levels": 2}}))
    assert roles.count == 3


def test_a_cost_is_one_for_each_level_or_rises_with_them():
    def costs(written, levels):
        return episode_task(task(actions={"valve": {"levels": levels, "cost": written}})).actions[0].costs

    assert costs([0, 2, 6], 3) == (0.0, 2.0, 6.0)
    assert costs(1.5, 3) == (0.0, 1.5, 3.0)
    assert costs({"low": 1, "high": 4}, ["low", "high"]) == (1.0, 4.0)


@pytest.mark.parametrize(
    ("unit", "combine"),
    [
        *[(each, "sum") for each in (None, "mg", "mg/dL", "IU/kg", "m/z")],
        *[(each, "mean") for each in ("mcg/kg/min", "mL/4 h", "mg/day", "units per hour", "tablets daily")],
    ],
)
def test_a_unit_per_time_is_a_rate(unit, combine):
    actions = {"valve": {"levels": 3}, "oil": {} if unit is None else {"unit": unit}}
    assert [each.combine for each in episode_task(task(actions=actions)).actions] == ["max", combine]
    actions["oil"]["combine"] = "max"
    assert episode_task(task(actions=actions)).actions[1].combine == "max"


def test_columns_may_be_a_list_and_ranges_short():
    roles = episode_task(task(varying=["flow", "heat"], static=None, contextual=[]))
    assert roles.varying == (Column("flow"), Column("heat"))
    assert roles.static == roles.contextual == ()
    assert episode_task(task(varying={"flow": [0, None], "heat": None})).varying[0].low == 0.0


def test_a_list_in_the_place_of_a_column_is_a_fault():
    with pytest.raises(TaskError, match=r"varying: expected .*; got"):
        episode_task(task(varying=[["flow"], {"heat": 1}]))


def test_rules_say_which_changes_may_be_recommended():
    said = {"most_levels": 1, "boluses": ["oil"], "forbidden": {"valve": "raise"}}
    roles = episode_task(task(rules=said))
    assert roles.rules == said
    assert roles.rule_settings() == said | {"named": ["valve"]}
    assert episode_task(TASK).rule_settings() == {"named": ["valve"]}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"boluses": ["oill"]}, r"rules: 'oill' is no action; .*oil"),
        ({"forbidden": {"valv": "raise"}}, r"rules: 'valv' is no action"),
        ({"forbidden": {"valve": "up"}}, r"rules.forbidden.valve: .*'raise'"),
        ({"most_levels": 0}, r"rules.most_levels: "),
        ({"suport": 3}, r"rules.suport: unknown key"),
    ],
)
def test_faulty_rules_are_named(wrong, words):
    with pytest.raises(TaskError, match=words):
        episode_task(task(rules=wrong))


def test_an_order_within_a_step_names_states():
    roles = episode_task(task(order=["heat", "flow"]))
    assert roles.surrogate_settings()["order"] == ["heat", "flow"]
    assert "order" not in episode_task(TASK).surrogate_settings()
    with pytest.raises(TaskError, match=r"order: 'oil' is no varying column"):
        episode_task(task(order=["heat", "oil"]))
