"""Every question to a fitted method has the same answer when its model was moved to another device.

As in test_devices.py, the device is a stand-in in memory, or a GPU with ``--device cuda``.
"""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

import rehearsal_torch as rt
from rehearsal_torch import task_pool
from rehearsal_torch.checkpoint import load
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.explorer.open_run import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from tests.places import ROOT
from tests.toys.class_world import rows as class_rows
from tests.toys.explored import run_folder
from tests.toys.linear_truth import chain
from tests.toys.place import Place
from tests.toys.second_device import Elsewhere

pytestmark = pytest.mark.slow
WORLD = chain()
ROWS = WORLD.table(80)
CASE = {"x": 0.3}
# The course of a search, and how long it took.
UNLIKE = ("trace", "seconds")
QUICK: dict[str, dict[str, Any]] = {
    "care": {"search.batch_size": 4},
    "qwz23": {"objective.validation_scenarios": 150, "objective.test_scenarios": 100},
    "cme": {},
    "outcome_regression": {"surrogate.members": 2, "surrogate.frequencies": 30},
}


@cache
def learnt(method: str) -> rt.RehearsalModel:
    """Not to be moved itself."""
    task = WORLD.task.to_plain() | {"candidates": [["a"], ["m"]]}
    made = rt.learn(ROWS.to_frame(), task, method=method, **QUICK[method])
    assert isinstance(made, rt.RehearsalModel)
    return made


def moved(model: Any, device: torch.device) -> Any:
    """A copy on a device."""
    if isinstance(model, torch.nn.Module):
        return deepcopy(model).to(device)
    copy = replace(model, surrogate=deepcopy(model.surrogate))
    assert copy.to(device) is copy
    assert copy.surrogate.device.type == device.type
    return copy


def alike(one: Any, other: Any, place: Place, where: str = "answer") -> None:
    """Equal answers, but for `UNLIKE`: numbers to the tolerance of the place, everything on the CPU."""
    if isinstance(one, Tensor):
        assert other.device.type == "cpu", where
        one, other = one.tolist(), other.tolist()
    if is_dataclass(one) and not isinstance(one, type):
        assert type(one) is type(other), where
        for each in fields(one):
            if each.name not in UNLIKE:
                alike(getattr(one, each.name), getattr(other, each.name), place, f"{where}.{each.name}")
    elif isinstance(one, pd.DataFrame):
        alike(one.to_dict("list"), other.to_dict("list"), place, where)
    elif isinstance(one, Mapping):
        assert list(one) == list(other), where
        for name, value in one.items():
            if name in UNLIKE:
                continue
            alike(value, other[name], place, f"{where}[{name!r}]")
    elif isinstance(one, Sequence) and not isinstance(one, str):
        assert len(one) == len(other), where
        for index, pair in enumerate(zip(one, other, strict=True)):
            alike(*pair, place, f"{where}[{index}]")
    elif isinstance(one, float) and not math.isinf(one):
        close = max(place.value, 2e-6) if place.kind == "cuda" else place.value
        assert other == pytest.approx(one, rel=close, abs=close, nan_ok=True), where
    else:
        assert one == other, where


@pytest.mark.bench
@pytest.mark.parametrize("method", QUICK)
def test_a_moved_method_answers_as_on_the_cpu(method: str, place: Place):
    model = learnt(method)

    def answers(asked: rt.RehearsalModel) -> list[Any]:
        decided = [each.to_dict() for each in asked.decide([CASE, {"x": -1.0}, {"x": 9.0}])]
        if method == "qwz23":  # its claims have no intervals
            return decided
        return [
            decided,
            asked.what_if(CASE, {"a": 0.4}),
            asked.compare(CASE, {"a": 0.4}, {"a": -0.4}),
            asked.compare(CASE, {"a": 0.4}, {"m": 0.4}),
        ]

    here = answers(model)
    with place.entered() as device:
        alike(here, answers(moved(model, device)), place)


@pytest.mark.bench
@pytest.mark.parametrize("method", QUICK)
def test_a_moved_method_is_explained_as_on_the_cpu(method: str, place: Place):
    model = learnt(method)
    here = model.explain(CASE, rows=True, refits=2)
    assert here.rows is not None
    assert here.rows.contents is not None
    assert here.runners_up
    with place.entered() as device:
        alike(here, moved(model, device).explain(CASE, rows=True, refits=2), place)


def test_a_loaded_and_moved_method_is_explained_without_the_rows(place: Place, tmp_path):
    model = learnt("care")
    with place.entered() as device:
        model.save(tmp_path / "here")
        moved(model, device).save(tmp_path / "there")
        again = rt.load(tmp_path / "there")
        assert isinstance(again, rt.RehearsalModel)
        assert again.surrogate.device.type == "cpu"
        here = rt.load(tmp_path / "here").explain(CASE, rows=True)
        assert list(here.rows.contents.columns) == ["x", "a", "m", "distance"]
        alike(here, again.explain(CASE, rows=True), place)
        alike(here, again.to(device).explain(CASE, rows=True), place)


@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
def test_a_moved_method_with_classes_answers_as_on_the_cpu(place: Place):
    task = {
        "graph": ["severe -> {treatment status}", "treatment -> status"],
        "context": ["severe"],
        "box": {"treatment": {"values": ["A", "B", "C"]}},
        "region": "status in {well, mild}",
        "codings": {"treatment": "categorical", "status": "categorical"},
    }
    model = rt.learn(class_rows(300), task, method="outcome_regression", **QUICK["outcome_regression"])

    def answers(asked: Any) -> list[Any]:
        (decision,) = asked.decide({"severe": 1})
        told = asked.what_if({"severe": 1}, {"treatment": "C"})
        return [decision.alteration, decision.estimate, told, asked.explain({"severe": 1}, rows=True)]

    here = answers(model)
    with place.entered() as device:
        alike(here, answers(moved(model, device)), place)


def test_the_pages_of_a_moved_method_are_those_of_the_cpu(place: Place, tmp_path):
    found = opened(run_folder(tmp_path / "run"))

    def shown(model: rt.RehearsalModel) -> list[Any]:
        session = RehearsalSession(replace(found, model=model))
        asked = (1, {"x": -0.4}, {"a": 0.25})
        return [
            session.describe(),
            session.what_if(*asked),
            session.charts(*asked),
            session.recommend(0, {"x": 0.1}),
        ]

    here = shown(found.model)
    with place.entered() as device:
        alike(here, shown(moved(found.model, device)), place)


def refuse(*_: object) -> None:
    raise AssertionError("a tensor of the second device was pickled")


def test_what_workers_are_sent_holds_no_tensor_of_the_device(place: Place, monkeypatch):
    model = learnt("care")
    with place.entered() as device:
        common = {"own": moved(model, device).surrogate, "layer": torch.nn.Linear(2, 3).to(device)}
        monkeypatch.setattr(Elsewhere, "__reduce_ex__", refuse)
        copied = task_pool.on_cpu(common)
        for name, module in common.items():
            state = module.state_dict()
            assert {each.device.type for each in state.values()} == {device.type}, name
            for key, value in copied[name].state_dict().items():
                assert value.device.type == "cpu", key
                assert torch.equal(value, state[key].cpu()), key
    assert isinstance(copied["layer"].weight, torch.nn.Parameter)
    assert copied["layer"].weight.requires_grad


@pytest.mark.bench
def test_workers_decide_with_a_moved_method_as_on_the_cpu(place: Place, monkeypatch):
    model, cases = learnt("care"), [{"x": value / 10} for value in range(8)]
    here = [each.to_dict() for each in model.decide(cases)]
    with place.entered() as device:
        own = moved(model, device)
        monkeypatch.setattr(Elsewhere, "__reduce_ex__", refuse)
        assert [each.to_dict() for each in own.decide(cases, workers=2)] == here
        assert own.surrogate.device.type == device.type


@pytest.fixture(scope="module")
def sepsis() -> tuple[Any, SepsisSimulated]:
    return load(ROOT / "checkpoints" / "sepsis"), SepsisSimulated(patients=120, horizon=8)


@pytest.mark.parametrize("member", [None, 0], ids=["an ensemble", "one model"])
def test_a_moved_model_of_episodes_looks_back_as_on_the_cpu(sepsis, place: Place, member: int | None):
    model, problem = sepsis
    model = model if member is None else model.each[member]
    episode, records = problem.case(0).episode, problem.observations()

    def answer(asked: Any) -> Any:
        return rt.look_back(asked, episode, 2, method="greedy", reward={"MeanBP": 1.0}, records=records)

    here = answer(model)
    assert here.hidden_cause is not None
    with place.entered() as device:
        alike(here.to_dict(), answer(moved(model, device)).to_dict(), place)


@pytest.mark.bench
def test_rounds_with_a_moved_model_of_episodes_are_those_of_the_cpu(sepsis, place: Place):
    model, problem = sepsis

    def objective(surrogate: Any, case: Any) -> CounterfactualReturn:
        return CounterfactualReturn(surrogate, case, LinearReward({"MeanBP": 1.0}), 2, "mean")

    here = list(rounds(problem, model, objective, GreedyChanges(), range(2)))
    assert any(each.decision.hidden_cause is not None for each in here)
    with place.entered() as device:
        there = list(rounds(problem, moved(model, device), objective, GreedyChanges(), range(2)))
        shared = list(rounds(problem, moved(model, device), objective, GreedyChanges(), range(2), workers=2))
    assert [each.line() for each in shared] == [each.line() for each in here]
    for one, other in zip(here, there, strict=True):
        assert one.decision.actions() == other.decision.actions()
        alike(one.decision.hidden_cause, other.decision.hidden_cause, place)
        alike(one.score, other.score, place)
