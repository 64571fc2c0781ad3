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

_HOME = {
    "pac_bound": "certificate",
    "card": "checkpoint",
    "load": "api.load",
    "save": "checkpoint",
    "CausalTask": "data.causal_task",
    "Decision": "data.decision",
    "Estimate": "data.estimate",
    "Finding": "data.finding",
    "RehearsalCase": "data.decision",
    "EpisodeCase": "data.decision",
    "Episode": "data.episode",
    "transitions": "data.episode",
    "RehearsalTask": "data.rehearsal_task",
    "Table": "data.table",
    "Trial": "data.trials.trial",
    "RehearsalGraph": "graphs.mixed_graph",
    "c_separated": "graphs.separation",
    "rounds": "decision_loop",
    "Mechanism": "mechanisms.mechanism",
    "Objective": "objectives.objective",
    "CausalOptimiser": "api.optimiser",
    "Problem": "problems.problem",
    "World": "problems.problem",
    "Search": "search.search",
    "Alteration": "spaces.box",
    "Box": "spaces.box",
    "Polytope": "spaces.polytope",
    "counterfactual": "surrogates.structural_counterfactuals",
    "recover": "surrogates.structural_counterfactuals",
    "sample": "surrogates.structural_counterfactuals",
    "Surrogate": "surrogates.surrogate",
    "fit": "training.surrogate_fit",
    "TrainingData": "training.lightning_module",
    "TrainingModule": "training.lightning_module",
    "lightning_parts": "training.lightning_module",
    "Decisions": "api.decisions",
    "Explanation": "api.explanation",
    "Comparison": "api.what_if",
    "WhatIf": "api.what_if",
    "RehearsalModel": "api.rehearsal_model",
    "learn": "api.rehearse",
    "EpisodeModel": "api.episode_model",
    "learn_episodes": "api.episode_model",
    "look_back": "api.look_back",
    "LookedBack": "api.episode_query",
    "rehearse": "api.rehearse",
}

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
    # A library draws a number when it is imported; the caller's state is not ours.
    random.setstate(state)
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
