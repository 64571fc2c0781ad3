from tests.toys.pumps import TASK, roles_of, task

ROLES = roles_of(TASK)


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
