from rehearsal_torch.problems.episodes.roles import gives_way, with_roles
from rehearsal_torch.problems.episodes.stays import CONTEXTUAL, DOSES, STATIC, VARYING
from rehearsal_torch.problems.episodes.task import episode_task
from tests.toys.pumps import TASK, task

ROLES = episode_task(TASK)
SEPSIS = {
    "varying": list(VARYING[:-1]),
    "static": list(STATIC),
    "contextual": list(CONTEXTUAL),
    "doses": list(DOSES),
    "levels": 5,
}


def test_named_values_become_columns_of_zero_and_one():
    assert ROLES.names == ("flow", "heat", "bore", "maker=B", "maker=C", "demand", "valve", "oil")
    assert ROLES.columns == ("flow", "heat", "bore", "maker", "demand", "valve", "oil")


def test_the_task_takes_the_place_of_the_columns_of_the_four_hour_table():
    own = ROLES.surrogate_settings()
    assert own == {
        "varying": ["flow", "heat"],
        "static": ["bore", "maker=B", "maker=C"],
        "contextual": ["demand"],
        "doses": ["valve", "oil"],
        "levels": 5,
    }
    assert with_roles(SEPSIS, own) == own
    assert with_roles({**SEPSIS, "varying": list(VARYING)}, own) == own
    assert with_roles(dict.fromkeys(SEPSIS), own) == own


def test_what_was_set_to_something_else_is_kept():
    own = ROLES.surrogate_settings()
    kept = with_roles({**SEPSIS, "varying": ["flow"], "levels": 3}, own)
    assert kept == {name: own[name] for name in ("static", "contextual", "doses")}


def test_the_reward_is_a_node_of_the_configuration():
    assert ROLES.reward_settings() == {
        "_target_": "rehearsal_torch.objectives.episode_reward.episode_reward",
        "weights": {"flow": 0.25},
        "components": {"hot": {"heat": {"> 10": 2}}},
        "costs": {"oil": 0.5, "valve": [0.0, 1.0, 3.0]},
        "doses": ["valve", "oil"],
        "name": None,
    }
    plain = episode_task(task(actions={"valve": {"levels": 2}}, reward={"weights": {"flow": 1}}))
    assert (plain.reward_settings()["costs"], plain.reward_settings()["components"]) == (None, None)


def test_a_reward_gives_way_only_if_it_is_that_of_patients():
    columns = ("flow", "heat")
    assert gives_way(None, columns)
    assert gives_way({"_target_": "x.LinearReward", "weights": None}, columns)
    assert gives_way({"components": {"lungs": {"paO2 / FiO2_1": {"< 300": 2}}}}, columns)
    assert gives_way({"weights": None, "components": None, "costs": None}, columns)
    assert not gives_way({"weights": None, "components": None, "costs": {"oil": 1}}, columns)
    assert not gives_way({"weights": {"flow": 1}}, columns)
    assert not gives_way({"weights": {"flow": 1}, "components": None, "costs": None}, columns)
    assert not gives_way({"components": {"hot": {"heat": {"> 1": 2}}}}, columns)
    assert not gives_way({"components": {"x": {"unheard_of": {"> 1": 2}}}}, columns)
    # A table that has a column of this name keeps the score.
    assert not gives_way({"components": {"lungs": {"paO2": {"< 300": 2}}}}, ("paO2",))


def test_the_words_are_those_of_the_task():
    assert ROLES.wording() == {
        "unit": "pump",
        "units": "pumps",
        "step": "",
        "units_of": {"flow": "l/s", "oil": "ml"},
        "levels": {"valve": ["shut", "half", "open"]},
    }
    words = episode_task(task(words={"units": "water pumps", "step": "hour"})).wording()
    assert (words["unit"], words["units"], words["step"]) == ("pump", "water pumps", "hour")
