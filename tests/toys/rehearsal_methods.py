"""Every rehearsal method of conf/decision, small: its configuration there, with settings that make it
quick."""

import torch
import yaml
from hydra.utils import instantiate

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import CONF

QUICK = {
    "nested_ridge": {
        "estimator": {"members": 2, "features": 60, "direction_rows": 60, "width_rows": 80, "iterations": 6}
    },
    "nested_ridge_fourier": {"estimator": {"features": 80, "rank": 40}},
    "nested_ridge_nystrom": {"estimator": {"rank": 40}},
    "nested_ridge_cg": {"estimator": {"rank": 40}},
    "outcome_regression": {
        "members": 2,
        "blocks": 4,
        "functions": 3,
        "frequencies": 30,
        "evidence_rows": 60,
        "iterations": 5,
    },
    "flow_structural": {"flow": {"hidden": [8], "bins": 4}},
    "linear_scenarios": {"draws": 300},
    "drifting_linear": {"initial": 30, "horizon": 30},
    "projected_ascent": {"starts": 4, "steps": 15},
    "adam_in_box": {"steps": 10, "starts": 1, "screened": 8, "screening_draws": 50},
    "mixed_integer": {"scenarios": 15, "nodes": 20, "starts": 2, "rounds": 2, "screening_draws": 50},
    "centre_distance": {"draws": 100, "evaluation_draws": 200},
    "scenario_count": {"search_scenarios": 150, "validation_scenarios": 100, "test_scenarios": 50},
    "supported_gain": {"searched": 2, "points": 6, "near": 2, "judged": 12, "judged_near": 4},
    "sampled_refinement": {"starts": 8, "samples": 8, "rounds": 2},
    "success_probability": {
        "search_scenarios": 150,
        "validation_scenarios": 150,
        "test_scenarios": 100,
        "information_models": 40,
    },
    "informative": {
        "fallback": "most_probable",
        "pool": 12,
        "probes": 3,
        "iterations": 1,
        "programs": 1,
        "scenarios": 15,
        "nodes": 20,
    },
}


def configuration(group, option, seed=0):
    """The plain content of a file of conf, its defaults merged, made quick."""
    content = yaml.safe_load(
        (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").replace("${seed}", str(seed))
    )
    below = [name.partition("@") for name in content.pop("defaults", []) if name != "_self_"]
    merged: dict = {}
    for name, _, package in below:
        inner = configuration(group, name, seed)
        merged |= {package: inner} if package else inner
    for source in (content, QUICK.get(option, {})):
        for key, value in source.items():
            merged[key] = (
                {**merged[key], **value}
                if isinstance(value, dict) and isinstance(merged.get(key), dict)
                else value
            )
    return merged


def choices(decision):
    """The surrogate, objective and search that a decision names."""
    entries = yaml.safe_load((CONF / "decision" / f"{decision}.yaml").read_text(encoding="utf-8"))["defaults"]
    named = {key.removeprefix("override /"): value for entry in entries for key, value in entry.items()}
    return named["surrogate"], named["objective"], named["search"]


def causal(surrogate):
    """Whether a surrogate of conf is a causal model, which stands under contracts of its own."""
    return configuration("surrogate", surrogate).get("_target_", "").endswith(".ExogenousModel")


def foresees(surrogate):
    """Whether a surrogate of conf is told a rehearsal task."""
    return "task" in configuration("surrogate", surrogate) and not causal(surrogate)


SURROGATES = sorted(path.stem for path in (CONF / "surrogate").glob("*.yaml") if foresees(path.stem))
CAUSAL = sorted(path.stem for path in (CONF / "surrogate").glob("*.yaml") if causal(path.stem))
DECISIONS = sorted(
    path.stem for path in (CONF / "decision").glob("*.yaml") if foresees(choices(path.stem)[0])
)
# Pairs of objective and search, each with a surrogate that it can judge.
PAIRS = {(objective, search): surrogate for surrogate, objective, search in map(choices, DECISIONS)} | {
    ("gaussian_success", "projection_newton_published"): "linear_structural"
}
JUDGES = {
    surrogate: (objective, search)
    for (objective, search), surrogate in PAIRS.items()
    if search != "no_action"
}
JUDGES |= {
    surrogate: ("kernel_value", "projected_ascent")
    for surrogate in SURROGATES
    if surrogate.startswith("nested_ridge")
}


def plain(surrogate, task, seed=0):
    """A surrogate's configuration for a task."""
    return {**configuration("surrogate", surrogate, seed), "task": task.to_plain()}


def built(surrogate, task, seed=0):
    """As the commands do: the first weights are drawn from the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return instantiate(plain(surrogate, task, seed), _convert_="all")


# Where contracts move what is fitted (``--device``, tests/contracts/conftest.py); empty: nowhere.
MOVED_TO = []


def learnt(surrogate, task, table, seed=0):
    made = learnt_here(surrogate, task, table, seed)
    return made.to(MOVED_TO[-1]) if MOVED_TO else made


def learnt_here(surrogate, task, table, seed=0):
    """On the CPU, whatever ``--device`` says."""
    return fit(built(surrogate, task, seed), table, Descent(max_epochs=2, progress=False, seed=seed))


def decided(made, pair, some_cases, seed=0):
    """Decisions of a fitted surrogate."""
    objective, search = (
        instantiate(configuration(group, option, seed), _convert_="all")
        for group, option in zip(("objective", "search"), pair, strict=True)
    )
    sought = objective_for(objective, made, some_cases)
    return ruled(sought, search.batch_search(sought), search.declines)
