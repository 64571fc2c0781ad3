"""Actions of every kind in one campaign: told in their units and texts, in Python, files and tables."""

import numpy as np
import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.data.trials.trial import TrialError
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel

SOLVENTS = ["water", "ethanol", "toluene"]
ACTIONS = {
    "dose": {"range": [0.001, 10], "scale": "log"},
    "stages": {"range": [1, 4], "kind": "integer"},
    "solvent": {"kind": "categorical", "levels": SOLVENTS},
    "purity": {"kind": "ordinal", "levels": ["low", "high"]},
}
TASK = {
    "graph": "{dose solvent} -> x; {x stages solvent purity weather} -> y",
    "actions": ACTIONS,
    "reward": "y",
    "context": {"weather": {"kind": "categorical", "levels": ["dry", "humid"]}},
}
DRY = {"weather": "dry"}


def run(action):
    x = np.log10(action["dose"]) + (action["solvent"] == "ethanol")
    return {"x": x, "y": -((x + 1) ** 2) - 0.1 * (action["stages"] - 2) ** 2 + (action["purity"] == "high")}


def told(count, **settings):
    optimiser = rt.CausalOptimiser(TASK, seed=0, method="qlognei", **settings)
    for number in range(count):
        (action,) = optimiser.ask(context={"weather": ("dry", "humid")[number % 2]})
        optimiser.tell(action, run(action))
    return optimiser


@pytest.mark.slow
def test_a_campaign_is_told_in_texts_and_units(tmp_path):
    optimiser = told(13, file=tmp_path / "trials.json")
    settings = [trial.settings for trial in optimiser.trials]
    counts = [sum(each["solvent"] == solvent for each in settings[:8]) for solvent in SOLVENTS]
    assert sorted(counts) == [2, 3, 3]
    assert {each["weather"] for each in settings} == {"dry", "humid"}
    advice = optimiser.recommend(fixed={"solvent": "water", "stages": 3}, context=DRY)
    assert advice.action == advice.action | {"solvent": "water", "stages": 3.0}
    assert advice.action["purity"] in ("low", "high")
    assert advice.nearly["solvent"] == ("water",)
    assert "solvent = water" in str(advice)
    assert "'solvent': 'water'" in str(optimiser.ask(fixed={"solvent": "water"}, context=DRY)[0])
    again = rt.CausalOptimiser.load(tmp_path / "trials.json", method="qlognei")
    assert again.task == optimiser.task
    assert again.trials == optimiser.trials
    optimiser.write(tmp_path / "trials.csv")
    copy = rt.CausalOptimiser(TASK)
    copy.read(tmp_path / "trials.csv")
    assert [trial.settings for trial in copy.trials] == [trial.settings for trial in optimiser.trials]
    assert copy.to_frame().equals(optimiser.to_frame())


@pytest.mark.slow
def test_texts_are_inputs_without_an_order():
    frame, rewards = told(13).to_frame(), list[float]()
    for solvents in (SOLVENTS, SOLVENTS[::-1]):
        task = {**TASK, "actions": {**ACTIONS, "solvent": {"kind": "categorical", "levels": solvents}}}
        optimiser = rt.CausalOptimiser(task, surrogate=lambda task: ExogenousModel(task, hyper="fitted"))
        optimiser.read(frame)
        model = optimiser.model()
        settings = optimiser.table.columns(optimiser.task.settings).unsqueeze(-2)
        rewards.append(model.posterior(settings).mean.flatten())
    assert rewards[0].tolist() == pytest.approx(rewards[1].tolist(), abs=0.05)
    dose, *indicators = model.surrogate.rows.inputs[0]
    assert (dose, *indicators) == ("dose", "solvent=toluene", "solvent=ethanol", "solvent=water")
    assert {*model.surrogate.rows.inputs[1]} == {
        "x",
        "stages",
        "purity",
        "weather=dry",
        "weather=humid",
        *indicators,
    }


def test_a_node_is_learnt_from_texts_beside_a_cause_that_was_not_measured():
    optimiser = rt.CausalOptimiser(TASK, seed=0)
    for number, action in enumerate(optimiser.ask(8, context=DRY)):
        optimiser.tell(action, run(action) | ({"x": None} if number > 5 else {}))
    assert optimiser.model().surrogate.encoder.rows.counts.tolist() == [6, 8]


def test_what_no_text_is_refused_where_it_stands():
    optimiser = told(1)
    with pytest.raises(ValueError, match=r"fixed: solvent: expected one of water, .*did you mean 'ethanol'"):
        optimiser.ask(fixed={"solvent": "etanol"}, context=DRY)
    with pytest.raises(TrialError, match="solvent: expected one of water, ethanol, toluene; got 1"):
        optimiser.tell(
            None, {"x": 1, "y": 2}, ran={"dose": 1, "stages": 1, "solvent": 1, "purity": "low"} | DRY
        )
    row = {"dose": 1, "stages": 1, "solvent": "etanol", "purity": "low", "weather": "dry", "x": 1, "y": 2}
    with pytest.raises(TableError, match=r"solvent: expected one of .*'etanol' in line 2"):
        optimiser.read(pd.DataFrame([row]))
    with pytest.raises(TableError, match=r"dose: expected a number above 0.*got 0 in line 2"):
        optimiser.read(pd.DataFrame([row | {"solvent": "water", "dose": 0}]))


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"levels": ["a", "b"]}, "actions.solvent.levels: these are texts: add kind: categorical"),
        ({"values": ["a", "b"]}, "actions.solvent.values: these are texts"),
        ({"kind": "categorical", "levels": ["a", "a"]}, "'a' occurs twice"),
        ({"kind": "categorical"}, r"expected levels: \[...\], its texts"),
        ({"kind": "categorical", "levels": ["a", "b"], "scale": "log"}, "scale: texts have no scale"),
    ],
)
def test_a_category_that_cannot_be_one_is_refused(action, words):
    with pytest.raises(TaskError, match=words):
        rt.CausalOptimiser({**TASK, "actions": {**ACTIONS, "solvent": action}})


def test_many_combinations_are_searched_by_the_mixed_optimiser():
    levels = [f"s{number}" for number in range(30)]
    actions = {
        "a": {"kind": "categorical", "levels": levels},
        "b": {"range": [1, 4], "kind": "integer"},
        "c": [0, 1],
    }
    optimiser = rt.CausalOptimiser(
        {"graph": "{a b c} -> y", "actions": actions, "reward": "y"}, method="qlognei"
    )
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"a": random.choice(levels, 20), "b": random.integers(1, 5, 20), "c": random.uniform(size=20)}
    )
    optimiser.read(rows.assign(y=(rows["a"] == "s7") - (rows["c"] - 0.5) ** 2))
    assert optimiser.ask()[0]["a"] in levels
