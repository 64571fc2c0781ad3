"""Problem files that ask for trials: the task they stand for, and their faults, each with its line."""

import pytest
import torch

from rehearsal_torch.data.problem_file.findings import ProblemError
from rehearsal_torch.problems.causal.own_experiments import causal_task
from rehearsal_torch.problems.written.trials_file import trials_problem
from tests.problems.written.conftest import TRIALS

TASK = {
    "graph": {
        "parents": {
            "temperature": ["valve", "ambient"],
            "yield": ["temperature", "dose"],
            "waste": ["temperature", "dose"],
        }
    },
    "actions": {"valve": [0, 1], "dose": {"values": [0, 1, 2, 5]}},
    "reward": {"weights": {"yield": 1, "waste": -0.2}},
    "limits": {"normals": [[2, 1]], "offsets": [6]},
}


def faults(file):
    with pytest.raises(ProblemError) as caught:
        trials_problem(file)
    return list(caught.value.faults)


def test_it_stands_for_the_task_of_the_same_parts(trials):
    found, task = trials_problem(trials()), causal_task(TASK)
    plain, expected = found.task.to_plain(), task.to_plain()
    assert {part: plain[part] for part in ("actions", "reward", "limits")} == {
        part: expected[part] for part in ("actions", "reward", "limits")
    }
    assert set(found.task.graph.edges) == set(task.graph.edges)
    assert set(found.task.nodes) == set(task.nodes)
    assert len(found.rows.frame) == 8
    assert (found.fixed, found.method) == ({}, None)


def test_the_only_outcome_is_the_reward(trials):
    about = {**TRIALS["variables"], "waste": "other"}
    assert trials_problem(trials(variables=about, reward=None)).task.reward.names == ("yield",)
    target = trials_problem(trials(variables=about, reward={"targets": {"yield": 3}})).task.reward
    assert float(target(torch.tensor([[1.0]]))) == -4


@pytest.mark.parametrize(
    ("about", "offered"),
    [
        ({"range": [0, 1], "levels": None, "step": 0.25}, [0, 0.25, 0.5, 0.75, 1]),
        ({"range": [0.5, 3.2], "levels": None, "kind": "integer"}, [1, 2, 3]),
        ({"range": None, "levels": None, "kind": "binary"}, [0, 1]),
        ({"range": [0, 0.3], "levels": None, "step": 0.1}, [0, 0.1, 0.2, 0.3]),
    ],
)
def test_steps_and_kinds_are_levels(trials, about, offered):
    about = {key: each for key, each in about.items() if each is not None} | {"role": "action"}
    found = trials_problem(trials(variables={**TRIALS["variables"], "dose": about}))
    assert list(found.task.box.levels["dose"]) == pytest.approx(offered)


def test_without_data_there_are_no_experiments_and_a_note_says_what_to_do(trials):
    found = trials_problem(trials(data=None))
    assert found.rows.frame.empty
    assert "add the line data: experiments.csv" in found.rows.notes[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward": "yeild"}, "reward: 'yeild' is not under variables; did you mean 'yield'?"),
        ({"reward": "yield - 0.2*temperature"}, "temperature is of the role other; expected outcomes"),
        ({"reward": "yield + waste + 3"}, "a constant, 3, changes no decision"),
        ({"reward": "yield * waste"}, "reward: at character 9"),
        ({"limits": "2*valv + dose <= 6"}, "limits: 'valv' is no action; did you mean 'valve'?"),
        ({"limits": "dose < 6"}, "limits: at character 6"),
        ({"limits": 6}, "limits: expected inequalities"),
        ({"fixed": {"dos": 3}}, "fixed: dos"),
        ({"data": "experimnts.csv"}, "data: there is no file"),
    ],
)
def test_faults_have_their_line_and_key(trials, changes, words):
    told = faults(trials(**changes))
    assert any(words in each for each in told), told
    assert all(each.startswith(("line ", "reward: expected the outcome")) for each in told)
