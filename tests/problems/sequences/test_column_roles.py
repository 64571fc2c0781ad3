from tests.toys.pumps import TASK, roles_of, task

ROLES = roles_of(TASK)


def test_named_values_become_columns_of_zero_and_one():
    assert ROLES.names == ("flow", "heat", "bore", "maker=B", "maker=C", "demand", "valve", "oil")
    assert ROLES.columns == ("flow", "heat", "bore", "maker", "demand", "valve", "oil")


def test_the_settings_of_a_model_of_transitions_are_its_columns():
    own = ROLES.surrogate_settings()
    assert own == {
        "varying": ["flow", "heat"],
        "static": ["bore", "maker=B", "maker=C"],
        "contextual": ["demand"],
        "doses": ["valve", "oil"],
        "levels": 5,
    }


def test_the_reward_is_a_node_of_the_configuration():
    assert ROLES.reward_settings() == {
        "_target_": "rehearsal_torch.objectives.task_reward.episode_reward",
        "weights": {"flow": 0.25},
        "components": {"hot": {"heat": {"> 10": 2}}},
        "costs": {"oil": 0.5, "valve": [0.0, 1.0, 3.0]},
        "doses": ["valve", "oil"],
        "name": None,
    }
    plain = roles_of(task(actions={"valve": {"levels": 2}}, reward={"weights": {"flow": 1}}))
    assert (plain.reward_settings()["costs"], plain.reward_settings()["components"]) == (None, None)


def test_the_words_are_those_of_the_task():
    assert ROLES.wording() == {
        "unit": "pump",
        "units": "pumps",
        "step": "",
        "time": "hour",
        "units_of": {"flow": "l/s", "oil": "ml"},
        "levels": {"valve": ["shut", "half", "open"]},
    }
    words = roles_of(task(words={"units": "water pumps", "step": "hour"})).wording()
    assert (words["unit"], words["units"], words["step"]) == ("pump", "water pumps", "hour")
