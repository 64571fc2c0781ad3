"""Every configuration parses, names things that exist, and composes with every other."""

import inspect
from importlib import import_module

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate
from omegaconf import OmegaConf

from rehearsal_torch.methods.argument_descriptions import takes
from tests.places import CONF

FILES = sorted(CONF.rglob("*.yaml"))
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
DECISIONS = sorted(path.stem for path in (CONF / "decision").glob("*.yaml"))


@pytest.fixture
def hydra():
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def targets(node, where=""):
    """(where, node) of everything that is built."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield where, node
        for key, value in node.items():
            yield from targets(value, f"{where}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from targets(value, f"{where}[{index}]")


def found(target):
    module, _, name = target.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CONF)))
def test_files_parse_say_what_they_are_and_build_what_exists(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# "), "the first line says what the file is for"
    content = yaml.safe_load(text)
    for where, node in targets(content):
        names = takes(node["_target_"])
        given = {key for key in node if not key.startswith("_") and key != "defaults"}
        # Lightning passes settings of its own on to wandb.init, whatever their names.
        passed_on = {"settings"} if node["_target_"].endswith(".WandbLogger") else set()
        assert given - passed_on <= set(names), (
            f"{where}: {sorted(given - set(names))} are no arguments of {node['_target_']}"
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CONF)))
def test_experiments_choose_no_launcher(path):
    # A launcher that stands in a swept experiment is ignored without a word.
    if path.parent.name in ("experiment", "decision"):
        assert "launcher" not in path.read_text(encoding="utf-8")


def test_experiment_is_not_in_the_defaults_list():
    # With it, `+experiment=sepsis` would fail.
    defaults = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    assert not any(isinstance(entry, dict) and "experiment" in entry for entry in defaults)


def composed(experiment, decision, *more):
    return compose(
        "config",
        [f"+experiment={experiment}", f"decision={decision}", "path=somewhere.csv", *more],
        return_hydra_config=True,
    )


def family(decision):
    """What a decision is for: rehearsal problems or trials, whose surrogates are told the task, or
    episodes."""
    entries = yaml.safe_load((CONF / "decision" / f"{decision}.yaml").read_text(encoding="utf-8"))["defaults"]
    (surrogate,) = (entry["override /surrogate"] for entry in entries if "override /surrogate" in entry)
    text = (CONF / "surrogate" / f"{surrogate}.yaml").read_text(encoding="utf-8")
    while "task:" not in text and "defaults:" in text:
        (base,) = (entry for entry in yaml.safe_load(text)["defaults"] if entry != "_self_")
        text = (CONF / "surrogate" / f"{base.partition('@')[0]}.yaml").read_text(encoding="utf-8")
    if "task:" not in text:
        return "episodes"
    return "trials" if "exogenous_model" in text else "foresight"


SUITED = {
    "foresight": ["auf", "bermuda_online", "ride_hailing", "two_stores"],
    "trials": ["cbo", "dropwave_recovery"],
    "episodes": ["lipschitz_grid", "mimic", "sepsis"],
}
# What reads a file of one's own is tried elsewhere, with such a file.
OWN = ["own_problem", "own_table", "own_system", "own_episodes", "own_sequence", "own_trials"]
READING = [*OWN, "icu_sepsis"]
PAIRS = [(experiment, decision) for decision in DECISIONS for experiment in SUITED[family(decision)]]


def test_every_experiment_belongs_to_a_family():
    assert sorted([*READING, *(name for names in SUITED.values() for name in names)]) == EXPERIMENTS


def test_decisions_come_in_three_families():
    from rehearsal_torch.methods.instantiate import USUAL

    found = {name: {decision for decision in DECISIONS if family(decision) == name} for name in SUITED}
    assert found["foresight"] >= {"micns", "grad_rh", "qwz23_offline", *USUAL["rehearse"]}
    assert found["episodes"] >= {"astar", "random", *USUAL["look_back"]}
    assert found["trials"] >= {"excbo_paper", "random_actions", *USUAL["optimise"]}
    assert all(USUAL.values())


@pytest.mark.slow
@pytest.mark.parametrize(("experiment", "decision"), PAIRS)
def test_every_experiment_takes_every_decision_of_its_family(hydra, experiment, decision):
    from rehearsal_torch.methods.instantiate import tasked
    from rehearsal_torch.search.search import Search
    from rehearsal_torch.surrogates.surrogate import Surrogate

    config = composed(experiment, decision)
    chosen = config.hydra.runtime.choices
    named = yaml.safe_load((CONF / "decision" / f"{decision}.yaml").read_text(encoding="utf-8"))["defaults"]
    own = yaml.safe_load((CONF / "experiment" / f"{experiment}.yaml").read_text(encoding="utf-8"))["defaults"]
    # The grid is about the published model, whatever decides.
    kept = {group: option for entry in own for group, option in entry.items() if "decision" not in group}
    for entry in named:
        ((group, option),) = entry.items()
        assert chosen[group.removeprefix("override /")] == kept.get(group, option)
    assert chosen.decision == decision
    assert config.hydra.job.chdir is False
    if experiment not in SUITED["episodes"]:
        problem = instantiate(
            config.dataset, **({"size": {"rows": 30}} if experiment in SUITED["foresight"] else {})
        )
        tasked(config, problem)
        assert OmegaConf.to_container(config.surrogate.task) == problem.task.to_plain()
    assert isinstance(instantiate(config.surrogate), Surrogate)
    assert isinstance(instantiate(config.search), Search)
    assert callable(instantiate(config.objective))
    del config.hydra
    OmegaConf.resolve(config)
    assert set(inspect.signature(found(config.dataset._target_)).parameters) >= {
        key for key in config.dataset if not key.startswith("_")
    }


@pytest.mark.slow
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("dataset", ["bank", "dropwave", "sepsis_simulated"])
def test_a_decision_of_another_family_is_refused(hydra, dataset, decision):
    from rehearsal_torch.methods.instantiate import problem_of, surrogate_of
    from rehearsal_torch.user_error import UserError

    kinds = {"bank": "foresight", "dropwave": "trials", "sepsis_simulated": "episodes"}
    if family(decision) == kinds[dataset]:
        return
    few = ["dataset.patients=20"] if dataset == "sepsis_simulated" else []
    config = compose("config", [f"dataset={dataset}", f"decision={decision}", *few])
    has = {
        "bank": "decision=outcome_regression or decision=care",
        "dropwave": "decision=excbo or decision=ucb",
        "sepsis_simulated": "decision=branch_and_bound",
    }
    # A decision with settings for the dataset is refused by the dataset, which has no such setting.
    message = (
        "unexpected keyword"
        if "validation" in config.dataset and dataset != "bank"
        else f"decision: this decides for .*{has[dataset]}"
    )
    with pytest.raises(UserError, match=message):
        surrogate_of(config, problem_of(config))
