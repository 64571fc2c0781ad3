"""Methods of causal Bayesian optimisation by name; the default's parts are those of its configuration."""

import inspect

import pytest
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.verbs.trial_method import METHOD, configured_method, trial_method

TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}


def system(action):
    x = action["a"] ** 2
    return {"X": x, "Y": 1 - (x - 0.3) ** 2 - (action["b"] - 1.2) ** 2}


def told(made, rounds):
    for _ in range(rounds):
        (action,) = made.ask()
        made.tell(action, system(action))
    return made


def test_the_defaults_parts_are_those_of_its_configuration():
    model, objective, search = configured_method(METHOD)
    plain = trial_method(METHOD)
    assert (model.func, objective.func) == plain[:2] == (ExogenousModel, ConfidenceBound)
    for made in (model, objective):
        defaults = {name: each.default for name, each in inspect.signature(made.func).parameters.items()}
        assert made.keywords
        assert {name: defaults[name] for name in made.keywords} == made.keywords
    for seed in (0, 3):
        assert type(search(seed)) is type(plain[2](seed))
        assert vars(search(seed)) == vars(plain[2](seed))
        assert search(seed).seed == seed


@pytest.mark.slow
def test_the_default_asks_what_its_configuration_asks():
    bare = told(rt.CausalOptimiser(TASK, initial=6, seed=1), 7)
    model, objective, search = configured_method(METHOD)
    configured = told(rt.CausalOptimiser(TASK, model, objective, search(1), initial=6, seed=1), 7)
    assert torch.equal(bare.table.values, configured.table.values)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ucb", "eifn", "qlognei", "sobol_actions"])
def test_another_method_is_chosen_by_name(method, tmp_path):
    file = tmp_path / "trials.json"
    made = told(rt.CausalOptimiser(TASK, initial=6, seed=2, method=method, file=file), 6)
    model, objective, search = configured_method(method)
    parts = rt.CausalOptimiser.load(file, None, model, objective, search(2))
    assert rt.CausalOptimiser.load(file, method=method).surrogate.keywords == made.surrogate.keywords
    again = parts.ask()
    parts.forget()
    assert made.ask() == again
    assert set(made.recommend()[0]) == {"a", "b"}


def test_the_task_may_be_a_file(tmp_path):
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK), encoding="utf-8")
    assert rt.CausalOptimiser(tmp_path / "task.yaml").ask(3) == rt.CausalOptimiser(TASK).ask(3)
    with pytest.raises(ValueError, match="there is no task file"):
        rt.CausalOptimiser(str(tmp_path / "tasks.yaml"))


def test_parts_that_are_given_win():
    search = rt.AcquisitionSearch(screened=64, starts=8, kept=3, steps=20)
    made = rt.CausalOptimiser(TASK, surrogate=ExogenousModel, search=search, method="ucb")
    assert made.surrogate is ExogenousModel
    assert made.search is search
    assert made.objective.keywords["propagate"] == "mean"


def test_a_method_of_another_job_begins_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"'cme' decides for cases of a table .* choose one of excbo, "):
        rt.CausalOptimiser(TASK, method="cme", file=tmp_path / "trials.json")
    assert not list(tmp_path.iterdir())
