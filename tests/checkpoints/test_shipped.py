"""The checkpoints of the project: they load, are small, come from the commands of their cards, and are as
good as their cards say.
"""

import re
import shlex

import pytest
import torch
import yaml
from safetensors.torch import load as tensors_of

import rehearsal_torch as rt
from rehearsal_torch.cli.configuration_keys import check
from rehearsal_torch.cli.main import decide, main
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.files.dotted_path import defined_in, mappings
from rehearsal_torch.methods.argument_descriptions import takes
from rehearsal_torch.methods.run_parts import build, fitted
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.reporting.training_scores import held_out
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from tests.places import ROOT

FOLDER = ROOT / "checkpoints"
PAGE = ROOT / "docs" / "checkpoints.md"
CLASSES = {
    "dropwave": ExogenousModel,
    "loan": NestedRidge,
    "sepsis": TransitionEnsemble,
    "two_stores": StructuralPosterior,
}
# Bytes.
LARGEST = 2_000_000
SCORED = ("dropwave", "loan", "two_stores")
ENTRIES = {"command", "seed", "commit", "versions", "data_fingerprint", "data", "weights_sha256"}
# How far the predictions of a refit may lie from those of the checkpoint: linear algebra in closed form, or
# 400 steps of gradient descent.
TOLERANCES = {"dropwave": 1e-4, "loan": 1e-6, "two_stores": 1e-8}
every = pytest.mark.parametrize("name", CLASSES)


def typed(name):
    """What the command of a card types behind the script."""
    python, script, *arguments = shlex.split(rt.card(FOLDER / name)["command"])
    assert (python, script) == ("python", "scripts/train.py")
    return arguments


def run_of(name):
    """What the command of a card builds."""
    config, _ = composed([*typed(name), "trainer.progress=false"], multirun=False)
    return build(config)


def test_there_is_one_of_each_family():
    assert {path.name for path in FOLDER.iterdir()} == set(CLASSES)


@every
def test_it_loads_and_is_small(name):
    surrogate = rt.load(FOLDER / name)
    assert type(surrogate) is CLASSES[name]
    assert surrogate.faults() == []
    assert not surrogate.training
    files = {path.name: path.stat().st_size for path in (FOLDER / name).iterdir()}
    assert set(files) == {"card.yaml", "config.yaml", "weights.safetensors"}
    assert sum(files.values()) <= LARGEST


@every
def test_its_classes_arguments_and_tensors_have_their_names(name):
    """Nothing is translated on loading: a class that moves takes these folders along."""
    content = yaml.safe_load((FOLDER / name / "config.yaml").read_text())
    for where, node in mappings(content):
        target = node.get("_target_")
        assert target is None or defined_in(target, ["rehearsal_torch"]), where
        assert target is None or {*node} <= {"_target_", "_partial_", *takes(target)}, where
    state = rt.load(FOLDER / name).state_dict()
    for key, value in tensors_of((FOLDER / name / "weights.safetensors").read_bytes()).items():
        assert torch.equal(state[key].cpu(), value), key


@every
def test_its_card_says_where_it_comes_from_and_what_it_is_not_for(name):
    card = rt.card(FOLDER / name)
    assert set(card) >= ENTRIES
    assert re.fullmatch("[0-9a-f]{40}", card["commit"]), "a commit, without changes"
    assert {"python", "rehearsal-torch", "torch", "numpy"} <= set(card["versions"])
    assert card["data"]["fingerprint"]
    assert "never for evidence" in card["data"]["caution"]
    assert name not in SCORED or card["held_out"]


@pytest.mark.parametrize("name", ["sepsis"])
def test_the_command_of_its_card_composes(name):
    config, jobs = composed(typed(name), multirun=False)
    check(config, "train", jobs, typed(name))
    assert config.seed == rt.card(FOLDER / name)["seed"]


@pytest.mark.slow
@every
def test_the_command_of_its_card_has_the_same_data(name):
    problem, card = run_of(name).problem, rt.card(FOLDER / name)
    assert problem.observations().fingerprint() == card["data_fingerprint"]
    assert problem.card()["fingerprint"] == card["data"]["fingerprint"]


@pytest.mark.parametrize("name", SCORED)
def test_the_command_of_its_card_builds_it(name):
    run = run_of(name)
    assert run.config["surrogate"] == yaml.safe_load((FOLDER / name / "config.yaml").read_text())
    rt.load(FOLDER / name, task=run.problem.question())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCORED[1:], pytest.param("dropwave", marks=pytest.mark.bench)])
def test_its_figures_are_those_of_its_card(name, tmp_path):
    preview = run_of(name).config["preview"]
    # The checkpoint brings its surrogate.
    kept = [text for text in typed(name) if not text.startswith("surrogate.")]
    more = [f"checkpoint={FOLDER / name}", f"limit={preview}", "workers=1", f"out={tmp_path / 'run'}"]
    assert main(decide, [*kept, *more]) == 0
    said, found = rt.card(FOLDER / name)["held_out"], held_out(tmp_path / "run")
    assert set(found) == set(said)
    for part, figures in said.items():
        assert found[part] == pytest.approx(figures, abs=1e-6), part


@pytest.mark.slow
def test_the_constants_of_the_transition_model_are_those_of_its_card():
    found = rt.load(FOLDER / "sepsis").lipschitz(run_of("sepsis").problem.held_out())
    assert dict(found) == pytest.approx(rt.card(FOLDER / "sepsis")["lipschitz"], rel=1e-4)


def predictions(name, model, problem):
    """What a surrogate predicts where it was not fitted, as one vector."""
    if name == "dropwave":
        return rt.recover(model.network(), problem.held_out()).flatten()
    cases = [problem.case(index) for index in range(5)]
    if name == "two_stores":
        objective = SuccessProbability.for_cases(
            model,
            cases,
            search_scenarios=200,
            validation_scenarios=200,
            test_scenarios=200,
            information_models=20,
        )
        prices = torch.linspace(-1, 3, 9, dtype=torch.float64).unsqueeze(-1)
        shares = [one.share_of(0, prices) for one in objective.sets]
        return torch.cat([model.graph_weights(), *(each.double().flatten() for each in shares)])
    rates = torch.linspace(0, 1, 6, dtype=torch.float64).reshape(-1, 1, 1)
    (one,) = KernelValue.for_cases(model, cases).sets
    estimates = [claim.estimate for rate in rates for claim in one.appraise(rate.expand(5, 1))]
    return torch.tensor([[each.point, each.lower, each.upper] for each in estimates]).flatten()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loan", "two_stores", pytest.param("dropwave", marks=pytest.mark.bench)])
def test_a_refit_predicts_the_same(name):
    run = run_of(name)
    refit = fitted(run).surrogate
    found, again = (predictions(name, each, run.problem) for each in (rt.load(FOLDER / name), refit))
    assert found.isfinite().all()
    assert found.std() > 0.1, "not all the same"
    assert (found - again).abs().max() <= TOLERANCES[name]


@every
def test_the_page_tells_of_it(name):
    text, card = PAGE.read_text(encoding="utf-8"), rt.card(FOLDER / name)
    (section,) = re.findall(rf"^## `{name}`.*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    words = " ".join(section.split())
    assert card["command"] in words
    assert f'rt.load("checkpoints/{name}")' in words
    assert "Not for: " in words
    size = sum(path.stat().st_size for path in (FOLDER / name).iterdir())
    assert f"{size / 1000:.0f} kB" in words


def test_the_page_rounds_the_figures_of_the_cards():
    words = " ".join(PAGE.read_text(encoding="utf-8").split())
    for name, method in (("loan", "cme"), ("two_stores", "qwz23_success")):
        figures = rt.card(FOLDER / name)["held_out"][method]
        parts = [figures[f"probability{end}"] for end in ("", "_low", "_high")]
        assert "{:.3f} (95% interval {:.3f} to {:.3f})".format(*parts) in words
        assert f"{figures['no_action']:.3f} without action" in words
        assert f"{figures['oracle']:.3f} at best" in words
    assert rt.card(FOLDER / "loan")["held_out"]["cme"]["coverage"] == 1, "as the page says"
    nodes = rt.card(FOLDER / "dropwave")["held_out"]
    for node, figures in nodes.items():
        assert f"{figures['correlation']:.3f} for `{node}`" in words
    assert f"{nodes['X']['rows']} held-out experiments" in words
