import pytest
import yaml

from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.problems.episodes.roles import Action, Carry, Column, Words
from rehearsal_torch.problems.episodes.task import episode_task
from tests.toys.pumps import TASK, task


def faults(plain):
    with pytest.raises(TaskError) as wrong:
        episode_task(plain)
    return list(wrong.value.faults)


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


def test_columns_may_be_a_list_and_ranges_short():
    roles = episode_task(task(varying=["flow", "heat"], static=None, contextual=[]))
    assert roles.varying == (Column("flow"), Column("heat"))
    assert roles.static == roles.contextual == ()
    assert episode_task(task(varying={"flow": [0, None], "heat": None})).varying[0].low == 0.0


def test_all_faults_are_listed_with_their_keys():
    wrong = task(
        step=-1,
        varying={"flow": None, "bore": None},
        missing={"carry": 0},
        levels=0,
        wordz={},
        actions={"valve": {"levels": ["shut", "open"], "cost": {"opn": 2}}, "oil": {"cost": [1, 2]}},
        reward={"weights": {"flw": 1}, "score": {"hot": {"heet": {"> 1": 1}, "flow": {"above 1": 2}}}},
    )
    assert faults(wrong) == [
        "step: expected a length above 0, in the unit of the time column (days, for dates); got -1",
        "missing: expected refuse, drop or {carry: m} with m steps of at least 1; got {'carry': 0}",
        "wordz: unknown key; did you mean 'words'?",
        "levels: expected 2 to 1000 levels; got 0",
        "bore: the column has 2 roles; keep one of them",
        "actions.valve.cost: 'opn' is no level; did you mean 'open'?",
        "actions.oil.cost: expected a number, the cost of one unit of the dose; got [1, 2]",
        "reward.weights: 'flw' is no varying column; did you mean 'flow'?",
        "reward.score.hot: 'heet' is neither a varying column nor an action; there are flow, "
        "bore, valve, oil",
        'reward.score.hot: expected a comparison and points of at least 0, such as "> 70": 3; got '
        "'above 1': 2",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"varying": []}, "varying: expected at least one state that a model predicts; got none"),
        (
            {"reward": {}, "actions": {"valve": {"levels": 2}}},
            "reward: expected weights of states, a score of limits, or both: {weights: {...}, score: {...}}; "
            "got none, and no action has a cost",
        ),
        (
            {"actions": {"valve": {"levels": 9}, "oil": {}}},
            "levels: expected at least 9, since valve has as many and all actions share one number of "
            "levels; got 5",
        ),
        (
            {"actions": {"valve": {"levels": ["a", "a"]}}},
            "actions.valve.levels: expected each name once; got ['a', 'a']: a occurs twice, keep one",
        ),
        (
            {"actions": {"valve": {"levels": ["None", "some"]}}},
            "actions.valve.levels: expected names; got ['None', 'some']: 'None' in a table is read as an "
            "empty cell, use another word",
        ),
        (
            {"actions": {"valve": {"levels": 2, "unit": "turns"}}},
            "actions.valve: expected levels, or a unit of doses; got both: keep one of them",
        ),
        (
            {"actions": {"valve": {"levels": 2, "combine": "sum"}}},
            "actions.valve.combine: levels of merged rows are joined by max; got sum",
        ),
    ],
)
def test_each_fault_has_a_sentence(changed, message):
    assert message in faults(task(**changed))


def test_no_task_and_no_mapping_are_refused():
    with pytest.raises(TaskError, match=r"no task is given: set dataset\.task=task\.yaml, a file with unit,"):
        episode_task(None)
    with pytest.raises(TaskError, match="there is no task file nowhere"):
        episode_task("nowhere.yaml")


def test_a_list_in_the_place_of_a_column_is_a_fault():
    with pytest.raises(TaskError, match=r"varying: expected .*; got"):
        episode_task(task(varying=[["flow"], {"heat": 1}]))
