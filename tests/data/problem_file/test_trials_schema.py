"""Problems of trials: a file and a task are read by one schema, each with all faults at its own keys."""

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import FunctionReward, TargetError, WeightedSum
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.problem_file.trials_schema import TrialsProblem, problem_of_task
from rehearsal_torch.files.schema import FaultsError, read
from tests.toys.mutated import mutated

PROBLEM = {
    "variables": {
        "valve": {"role": "action", "range": [0, 1]},
        "dose": {"role": "action", "levels": [5, 0, 1], "unit": "ml", "before": 2, "cost": 3},
        "heat": {"role": "outcome", "error": 0.1},
        "yield": "outcome",
        "noise": {"role": "other", "error": 2},
    },
    "graph": ["{valve noise} -> heat", "{heat dose} -> yield"],
    "reward": "yield - 0.5*heat",
    "limits": "dose + valve <= 5",
    "constraints": ["heat <= 3 with 90 %"],
    "fixed": {"dose": 1},
    "tolerance": {"valve": 0.1},
    "cost": 10,
}
TASK = {
    "graph": {"parents": {"heat": ["valve", "noise"], "yield": ["heat", "dose"]}},
    "actions": {"valve": [0, 1], "dose": {"values": [5, 0, 1], "before": 2, "cost": 3}},
    "reward": {"weights": {"yield": 1, "heat": -0.5}},
    "limits": {"normals": [[1, 1]], "offsets": [5]},
    "constraints": "heat <= 3 with 0.9",
    "cost": 10,
    "errors": {"heat": 0.1, "noise": 2},
}
TASKS = [
    TASK,
    {**TASK, "reward": {"targets": {"yield": 2}, "mean": False}},
    {**TASK, "reward": "yield - heat", "limits": ["valve <= 0.5", "dose <= 4"]},
    CausalTask.of(TASK).to_plain(),
]


def told(plain, of=TrialsProblem):
    return [str(each) for each in read(of, plain)[1]]


def test_a_problem_and_a_task_are_read_to_the_same():
    found, faults = read(TrialsProblem, PROBLEM)
    assert faults == []
    problem, task = TrialsProblem.model_construct(**found), problem_of_task(TASK)
    for name, about in problem.variables.items():
        one, other = (each.variables[name] for each in (problem, task))
        assert (one.before, one.cost, one.error) == (other.before, other.cost, other.error)
        assert (one.role, one.range, one.levels) == (other.role, other.range, other.levels), about
    assert problem.parts()[2] == task.parts()[2] == WeightedSum({"yield": 1.0, "heat": -0.5})
    one, other = CausalTask.of(problem).to_plain(), CausalTask.of(TASK).to_plain()
    assert {**one, "graph": None} == {**other, "graph": None}
    assert one["limits"] == {"normals": [[1.0, 1.0]], "offsets": [5.0]}
    assert set(CausalTask.of(problem).graph.edges) == set(CausalTask.of(TASK).graph.edges)
    assert problem.fixed == {"dose": 1.0}


@pytest.mark.parametrize("plain", TASKS)
def test_a_task_is_read_back_as_it_was_written(plain):
    task = CausalTask.of(plain)
    again = CausalTask.of(yaml.safe_load(yaml.safe_dump(task.to_plain(), sort_keys=False)))
    assert task.actions == ("valve", "dose")
    assert again.to_plain() == task.to_plain()
    assert again.reward == task.reward


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.sampled_from(TASKS).flatmap(mutated))
def test_a_mutated_task_is_a_task_or_a_paragraph(plain):
    try:
        found = CausalTask.of(plain).to_plain()
    except FaultsError as error:
        found, faults = None, error.faults
    if found is None:
        assert faults
        assert all(len(each) < 2000 and each.part in ("", *plain, *TASK) for each in faults)
    else:
        assert CausalTask.of(yaml.safe_load(yaml.safe_dump(found, sort_keys=False))).to_plain() == found


@settings(max_examples=80, derandomize=True, deadline=None)
@given(mutated(PROBLEM))
def test_a_mutated_problem_is_read_or_has_faults_and_the_editor_says_no_more(plain):
    found, faults = read(TrialsProblem, plain)
    if not faults:
        schema = TrialsProblem.model_json_schema()
        errors = [each.message for each in Draft202012Validator(schema).iter_errors(plain)]
        # YAML has names of digits alone.
        assert not errors or any("is not of type 'string'" in each or "not valid" in each for each in errors)
        assert found["variables"]


def test_rewards_are_names_sums_weights_targets_or_functions():
    function = FunctionReward(("yield",), lambda each: each[..., 0])
    for written, expected in (
        ("yield", WeightedSum({"yield": 1.0})),
        ("2*yield - heat", WeightedSum({"yield": 2.0, "heat": -1.0})),
        ({"weights": {"yield": -2}}, WeightedSum({"yield": -2.0})),
        ({"targets": {"yield": 3}, "mean": False}, TargetError({"yield": 3.0}, mean=False)),
        (function, function),
    ):
        assert CausalTask.of({**TASK, "reward": written}).reward == expected
    blanks = {"graph": ['a -> "my yield"'], "actions": {"a": [0, 1]}, "reward": "my yield"}
    assert CausalTask.of(blanks).reward.names == ("my yield",)
    numbered = {"graph": {"parents": {1: [0]}}, "actions": {0: [0, 1]}, "reward": 1}
    assert CausalTask.of(numbered).reward.names == ("1",)


def test_limits_are_text_or_faces_in_any_order_of_the_actions():
    names = {"names": ["dose", "valve"], "normals": [[2, 1]], "offsets": [6]}
    for limits in (names, "2*dose + valve <= 6", ["2*dose + valve <= 6"]):
        found = CausalTask.of({**TASK, "limits": limits}).limits
        assert (found.names, found.normals.tolist()) == (("valve", "dose"), [[1.0, 2.0]])
    tensors = {"normals": torch.ones(1, 2), "offsets": torch.tensor([5.0])}
    assert CausalTask.of({**TASK, "limits": tensors}).limits.offsets.tolist() == [5.0]
    for normals in ([[1.0, 1.0]] * 1001, torch.ones(1000, 1000)):
        with pytest.raises(TaskError, match=r"at most 1000 faces|200000 values"):
            CausalTask.of({**TASK, "limits": {"normals": normals, "offsets": [1.0]}})


@pytest.mark.parametrize(
    ("about", "values"),
    [
        ({"range": [0, 1]}, None),
        ({"range": [0, 1], "step": 0.25}, [0, 0.25, 0.5, 0.75, 1]),
        ({"range": [0.5, 3.2], "kind": "integer"}, [1, 2, 3]),
        ({"kind": "binary"}, [0, 1]),
        ({"range": [0, 0.3], "step": 0.1}, [0, 0.1, 0.2, 0.3]),
        ({"levels": [2, 0, 1]}, [0, 1, 2]),
    ],
)
def test_steps_and_kinds_are_levels(about, values):
    found = read(TrialsProblem, changed("dose", {"role": "action", **about}))[0]["variables"]["dose"]
    assert found.values() == (values if values is None else pytest.approx(values))
    assert found.ends() == ((0, 1) if values is None else (found.values()[0], found.values()[-1]))


def changed(name, about, **parts):
    return {**PROBLEM, "variables": {**PROBLEM["variables"], name: about}, **parts}


def test_earlier_values_are_of_what_is_settled_before_an_experiment():
    variables = {**PROBLEM["variables"], "noise": {"role": "context", "before": 3}}
    assert told({**PROBLEM, "variables": variables, "context": {"noise": 1}}) == []
    variables["noise"] = {"role": "other", "before": 3}
    assert told({**PROBLEM, "variables": variables}) == [
        "variables.noise.before: is for actions; its role is other: leave it out"
    ]
    variables["noise"] = {"role": "context", "scale": "log", "before": 0}
    assert told({**PROBLEM, "variables": variables, "context": {"noise": 1}}) == [
        "variables.noise.scale: a log scale has no place for 0: begin above 0, or leave it out"
    ]


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ({"heat": 0}, "errors.heat: expected a number above 0; got 0"),
        ({"dose": 1}, "errors.dose: is for what is measured; its role is action: leave it out"),
        ({"haet": 1}, "errors: ['haet'] are not in the graph"),
    ],
)
def test_known_errors_are_of_what_is_measured(errors, words):
    with pytest.raises(TaskError) as caught:
        CausalTask.of({**TASK, "errors": errors})
    (fault,) = caught.value.faults
    assert words in str(fault)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cost": None}, "cost: the cheapest experiment costs nothing; expected what any experiment costs"),
        ({"cost": -1}, "cost: expected a cost of at least 0; got -1"),
        (
            {
                "actions": {"valve": [0, 1]}
                | {"dose": [0, 1], "valve": {"range": [0, 1], "cost": {"column": "price"}}}
            },
            "valve.cost: expected a number, which holds for all",
        ),
        (
            {"actions": {"valve": [0, 1]} | {"dose": {"values": [5, 0, 1], "cost": {0: 1}}}},
            "dose.cost: no price of 1, 5, which",
        ),
    ],
)
def test_costs_are_of_actions_and_no_experiment_is_free(changes, words):
    with pytest.raises(TaskError) as caught:
        problem_of_task({**TASK, **changes})
    (fault,) = caught.value.faults
    assert words in str(fault)


def test_all_faults_are_told_at_once():
    """A fault of one variable kept all others from being told."""
    wrong = changed("dose", {"role": "action", "rnage": [0, 1]}, reward="yeild + heat", limits="valv <= 1")
    paths = ["variables.dose.rnage", "reward", "variables.yield", "limits"]
    assert [each.partition(":")[0] for each in told(wrong)] == paths


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("valve <= 1", "valve is an action: write its inequalities under limits"),
        ("heta <= 1", "'heta' is no variable; did you mean 'heat'"),
        ("noise <= 1", "no action leads to noise"),
        ("heat <= 1 with 100 %", "expected a probability from 50 % to 99 %"),
        ("heat < 1", "at character 6"),
        ([3], "expected inequalities of nodes"),
    ],
)
def test_constraints_are_of_nodes_that_actions_move(constraint, words):
    (fault,) = told({**PROBLEM, "constraints": constraint})
    assert fault.startswith(f"constraints: {words}")


def test_a_constrained_node_is_modelled_although_the_reward_does_not_read_it():
    graph = {"parents": {**TASK["graph"]["parents"], "waste": ["dose"]}}
    task = CausalTask.of({**TASK, "graph": graph, "constraints": "waste <= 1 and heat + waste <= 4"})
    assert "waste" in task.nodes
    assert set(task.flattened().nodes) == {"yield", "heat", "waste"}
    (constraint,) = task.constraints
    assert (constraint.names, constraint.probability) == (("waste", "heat"), 0.95)
    assert constraint.excess(torch.tensor([2.0, 3.0])).tolist() == [1.0, 1.0]


def test_the_only_outcome_is_the_reward():
    about = {**PROBLEM["variables"], "heat": "other"}
    found = read(TrialsProblem, {**PROBLEM, "variables": about, "reward": None})[0]
    assert TrialsProblem.model_construct(**found).parts()[2].names == ("yield",)


def test_a_reward_that_is_a_function_reads_nodes_of_the_graph():
    with pytest.raises(TaskError, match=r"graph: actions .* are not ancestors of the reward"):
        CausalTask.of({**TASK, "reward": FunctionReward((), sum)})
