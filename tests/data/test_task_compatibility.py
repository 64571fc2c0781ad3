import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_compatibility import Columns, differences, fields, fingerprint, like, taken
from rehearsal_torch.spaces.polytope import Polytope
from tests.toys.linear_truth import chain

PLAIN = {
    "graph": {"parents": {"a": ["x"], "y": ["a", "x"], "z": ["a"]}},
    "context": ["x"],
    "box": {"a": [0, 1]},
    "region": {"y": [0.6, None], "z": [0, 2]},
}
TASK = RehearsalTask.of(PLAIN)
CAUSAL = {
    "graph": {"parents": {"X": ["a", "b"], "Y": ["X"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}
EVERY = ("graph", "actions", "context", "outcomes", "region", "candidates")


def test_equal_questions_have_equal_fields_however_they_are_written():
    faces = torch.tensor([[0.0, -3.0], [2.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    region = Polytope(("z", "y"), faces, torch.tensor([-1.8, 4.0, 0.0], dtype=torch.float64))
    other = RehearsalTask.of(
        PLAIN
        | {"region": {"names": region.names, "normals": faces.tolist(), "offsets": region.offsets.tolist()}}
    )
    assert fields(other) == fields(TASK)
    assert differences(TASK, other, EVERY) == []
    assert fields(TASK)["region"] == {"y >= 0.6", "z <= 2", "z >= 0"}


def test_only_fields_that_were_used_are_compared_and_the_others_are_taken_over():
    asked = RehearsalTask.of(PLAIN | {"region": {"z": [0, 3], "y": [0.9, None]}, "box": {"a": [0.2, 0.4]}})
    used = tuple(name for name in EVERY if name != "region")
    assert differences(TASK, asked, used) == []
    now = taken(TASK, asked, used)
    assert isinstance(now, RehearsalTask)
    assert now.region == asked.region
    assert now.box.bounds() == {"a": (0.2, 0.4)}
    kept = taken(TASK, RehearsalTask.of(PLAIN | {"box": {"a": [0.2, 0.4]}}), EVERY)
    assert isinstance(kept, RehearsalTask)
    assert kept.region is TASK.region


def test_rewards_are_told_apart():
    task = CausalTask.of(CAUSAL)
    for reward in (
        {"weights": {"Y": 2.0}},
        {"targets": {"Y": 1.0}},
        FunctionReward(("Y",), lambda values: values[..., 0]),
    ):
        asked = CausalTask(task.graph, task.box, CausalTask.of(CAUSAL | {"reward": reward}).reward)
        assert differences(task, asked, ("graph", "actions", "nodes")) == []
        assert differences(task, asked, ("reward",))[0].startswith(
            "reward: it was fitted with [weights Y 1], and is used with ["
        )
    assert differences(
        task, CausalTask.of(CAUSAL | {"graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}}}), ("graph",)
    )


def test_what_codings_leave_to_rows_is_what_the_fit_found_there():
    ward = {"classes": ["C", "A", "B"], "reference": "A"}
    plain = {
        "graph": "{ward age a} -> y",
        "context": ["ward", "age"],
        "box": {"a": [0, 1]},
        "region": "y <= 1",
    }
    fitted = RehearsalTask.of({**plain, "codings": {"ward": ward}})
    for written in ("categorical", {"classes": ["A", "B", "C"]}):
        asked = like(fitted, {**plain, "codings": {"ward": written}})
        assert asked.to_plain() == fitted.to_plain()


def test_fingerprints_of_questions_depend_on_what_a_fit_depends_on_alone():
    one, other = Columns(("a", "b")), Columns(("b", "a"))
    assert fingerprint(one) == fingerprint(other) != fingerprint(Columns(("a", "c")))
    assert len(fingerprint(one)) == 64
    task = chain().task
    assert fingerprint(task) == fingerprint(chain(reach=3.0).task) != fingerprint(chain(lower=0.5).task)
