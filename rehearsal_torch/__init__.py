"""Rehearsal learning, causal Bayesian optimisation and counterfactually optimal action sequences.

The names below are imported on first use, so that importing the package is cheap.
"""

import random
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rehearsal_torch.api.decisions import Decisions
    from rehearsal_torch.api.episode_model import EpisodeModel, learn_episodes
    from rehearsal_torch.api.episode_query import LookedBack
    from rehearsal_torch.api.explanation import Explanation
    from rehearsal_torch.api.load import load
    from rehearsal_torch.api.look_back import look_back
    from rehearsal_torch.api.optimiser import CausalOptimiser
    from rehearsal_torch.api.rehearsal_model import RehearsalModel
    from rehearsal_torch.api.rehearse import learn, rehearse
    from rehearsal_torch.api.what_if import Comparison, WhatIf
    from rehearsal_torch.certificate import pac_bound
    from rehearsal_torch.checkpoint import card, save
    from rehearsal_torch.data.causal_task import CausalTask
    from rehearsal_torch.data.decision import Decision, EpisodeCase, RehearsalCase
    from rehearsal_torch.data.episode import Episode, transitions
    from rehearsal_torch.data.estimate import Estimate
    from rehearsal_torch.data.finding import Finding
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.trials.trial import Trial
    from rehearsal_torch.decision_loop import rounds
    from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
    from rehearsal_torch.graphs.separation import c_separated
    from rehearsal_torch.mechanisms.mechanism import Mechanism
    from rehearsal_torch.objectives.objective import Objective
    from rehearsal_torch.problems.problem import Problem, World
    from rehearsal_torch.search.search import Search
    from rehearsal_torch.spaces.box import Alteration, Box
    from rehearsal_torch.spaces.polytope import Polytope
    from rehearsal_torch.surrogates.structural_counterfactuals import counterfactual, recover, sample
    from rehearsal_torch.surrogates.surrogate import Surrogate
    from rehearsal_torch.training.lightning_module import TrainingData, TrainingModule, lightning_parts
    from rehearsal_torch.training.surrogate_fit import fit

__version__ = "0.2.0"

# The public names of each module.
_MODULES = {
    "api.decisions": "Decisions",
    "api.episode_model": "EpisodeModel learn_episodes",
    "api.episode_query": "LookedBack",
    "api.explanation": "Explanation",
    "api.load": "load",
    "api.look_back": "look_back",
    "api.optimiser": "CausalOptimiser",
    "api.rehearsal_model": "RehearsalModel",
    "api.rehearse": "learn rehearse",
    "api.what_if": "Comparison WhatIf",
    "certificate": "pac_bound",
    "checkpoint": "card save",
    "data.causal_task": "CausalTask",
    "data.decision": "Decision EpisodeCase RehearsalCase",
    "data.episode": "Episode transitions",
    "data.estimate": "Estimate",
    "data.finding": "Finding",
    "data.rehearsal_task": "RehearsalTask",
    "data.table": "Table",
    "data.trials.trial": "Trial",
    "decision_loop": "rounds",
    "graphs.mixed_graph": "RehearsalGraph",
    "graphs.separation": "c_separated",
    "mechanisms.mechanism": "Mechanism",
    "objectives.objective": "Objective",
    "problems.problem": "Problem World",
    "search.search": "Search",
    "spaces.box": "Alteration Box",
    "spaces.polytope": "Polytope",
    "surrogates.structural_counterfactuals": "counterfactual recover sample",
    "surrogates.surrogate": "Surrogate",
    "training.lightning_module": "TrainingData TrainingModule lightning_parts",
    "training.surrogate_fit": "fit",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Alteration",
    "Box",
    "CausalOptimiser",
    "CausalTask",
    "Comparison",
    "Decision",
    "Decisions",
    "Episode",
    "EpisodeCase",
    "EpisodeModel",
    "Estimate",
    "Explanation",
    "Finding",
    "LookedBack",
    "Mechanism",
    "Objective",
    "Polytope",
    "Problem",
    "RehearsalCase",
    "RehearsalGraph",
    "RehearsalModel",
    "RehearsalTask",
    "Search",
    "Surrogate",
    "Table",
    "TrainingData",
    "TrainingModule",
    "Trial",
    "WhatIf",
    "World",
    "c_separated",
    "card",
    "counterfactual",
    "fit",
    "learn",
    "learn_episodes",
    "lightning_parts",
    "load",
    "look_back",
    "pac_bound",
    "recover",
    "rehearse",
    "rounds",
    "sample",
    "save",
    "transitions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(__all__)}")
    state = random.getstate()
    module = import_module(f"{__name__}.{_HOME[name]}")
    # A library draws a number when it is imported.
    random.setstate(state)
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
