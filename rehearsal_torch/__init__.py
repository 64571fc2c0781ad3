"""Rehearsal learning, causal Bayesian optimisation and counterfactually optimal action sequences.

The names below are imported on first use, so that importing the package is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rehearsal_torch.api.decisions import Decisions
    from rehearsal_torch.api.episode_model import EpisodeModel, learn_episodes
    from rehearsal_torch.api.explaining.explanation import Explanation
    from rehearsal_torch.api.learn import learn
    from rehearsal_torch.api.look_back import look_back
    from rehearsal_torch.api.looked_back import LookedBack
    from rehearsal_torch.api.optimiser import CausalOptimiser
    from rehearsal_torch.api.rehearsal_model import RehearsalModel
    from rehearsal_torch.api.rehearse import rehearse
    from rehearsal_torch.api.saving.saved_model import load
    from rehearsal_torch.api.what_if import Comparison, WhatIf
    from rehearsal_torch.certificate import PacBound, pac_bound
    from rehearsal_torch.checkpoint import card, save
    from rehearsal_torch.credible_bound import CredibleBound
    from rehearsal_torch.data.causal_task import CausalTask
    from rehearsal_torch.data.decision import Decision, EpisodeCase, RehearsalCase
    from rehearsal_torch.data.episode import Episode, transitions
    from rehearsal_torch.data.estimates.estimate import Estimate
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.trials.trial import Trial
    from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
    from rehearsal_torch.graphs.separation import c_separated
    from rehearsal_torch.loop import rounds
    from rehearsal_torch.mechanisms.mechanism import Mechanism
    from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
    from rehearsal_torch.objectives.kernel_value import KernelValue
    from rehearsal_torch.objectives.objective import Objective
    from rehearsal_torch.objectives.reward import LinearReward
    from rehearsal_torch.objectives.success_probability import SuccessProbability
    from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
    from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
    from rehearsal_torch.problems.problem import Problem, World
    from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
    from rehearsal_torch.search.alterations.informative import Informative
    from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
    from rehearsal_torch.search.search import Search
    from rehearsal_torch.search.sequences.astar import AStar
    from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
    from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
    from rehearsal_torch.spaces.box import Alteration, Box
    from rehearsal_torch.spaces.polytope import Polytope
    from rehearsal_torch.surrogates.counterfactual import counterfactual, recover, sample
    from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
    from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
    from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
    from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
    from rehearsal_torch.surrogates.surrogate import Surrogate
    from rehearsal_torch.surrogates.transition import TransitionModel
    from rehearsal_torch.training.fit import fit

__version__ = "0.2.0"

_HOME = {
    "PacBound": "certificate",
    "pac_bound": "certificate",
    "CredibleBound": "credible_bound",
    "card": "checkpoint",
    "load": "api.saving.saved_model",
    "save": "checkpoint",
    "CausalTask": "data.causal_task",
    "Decision": "data.decision",
    "Estimate": "data.estimates.estimate",
    "RehearsalCase": "data.decision",
    "EpisodeCase": "data.decision",
    "Episode": "data.episode",
    "transitions": "data.episode",
    "RehearsalTask": "data.rehearsal_task",
    "Table": "data.table",
    "Trial": "data.trials.trial",
    "RehearsalGraph": "graphs.mixed_graph",
    "c_separated": "graphs.separation",
    "rounds": "loop",
    "Mechanism": "mechanisms.mechanism",
    "ConfidenceBound": "objectives.trials.confidence_bound",
    "CounterfactualReturn": "objectives.counterfactual_return",
    "LinearReward": "objectives.reward",
    "KernelValue": "objectives.kernel_value",
    "Objective": "objectives.objective",
    "SuccessProbability": "objectives.success_probability",
    "CausalOptimiser": "api.optimiser",
    "ExperimentTable": "problems.causal.own_experiments",
    "Problem": "problems.problem",
    "World": "problems.problem",
    "RehearsalTable": "problems.rehearsal.own_table",
    "Informative": "search.alterations.informative",
    "ProjectedAscent": "search.alterations.projected_ascent",
    "Search": "search.search",
    "AStar": "search.sequences.astar",
    "BranchAndBound": "search.sequences.branch_and_bound",
    "AcquisitionSearch": "search.trials.acquisition",
    "Alteration": "spaces.box",
    "Box": "spaces.box",
    "Polytope": "spaces.polytope",
    "counterfactual": "surrogates.counterfactual",
    "recover": "surrogates.counterfactual",
    "sample": "surrogates.counterfactual",
    "NestedRidge": "surrogates.kernel.nested_ridge",
    "SpectralEnsemble": "surrogates.kernel.spectral_ensemble",
    "ExogenousModel": "surrogates.network.exogenous_model",
    "StructuralPosterior": "surrogates.structural.graph_posterior",
    "Surrogate": "surrogates.surrogate",
    "TransitionModel": "surrogates.transition",
    "fit": "training.fit",
    "Decisions": "api.decisions",
    "Explanation": "api.explaining.explanation",
    "Comparison": "api.what_if",
    "WhatIf": "api.what_if",
    "RehearsalModel": "api.rehearsal_model",
    "learn": "api.learn",
    "EpisodeModel": "api.episode_model",
    "learn_episodes": "api.episode_model",
    "look_back": "api.look_back",
    "LookedBack": "api.looked_back",
    "rehearse": "api.rehearse",
}

__all__ = [
    "AStar",
    "AcquisitionSearch",
    "Alteration",
    "Box",
    "BranchAndBound",
    "CausalOptimiser",
    "CausalTask",
    "Comparison",
    "ConfidenceBound",
    "CounterfactualReturn",
    "CredibleBound",
    "Decision",
    "Decisions",
    "Episode",
    "EpisodeCase",
    "EpisodeModel",
    "Estimate",
    "ExogenousModel",
    "ExperimentTable",
    "Explanation",
    "Informative",
    "KernelValue",
    "LinearReward",
    "LookedBack",
    "Mechanism",
    "NestedRidge",
    "Objective",
    "PacBound",
    "Polytope",
    "Problem",
    "ProjectedAscent",
    "RehearsalCase",
    "RehearsalGraph",
    "RehearsalModel",
    "RehearsalTable",
    "RehearsalTask",
    "Search",
    "SpectralEnsemble",
    "StructuralPosterior",
    "SuccessProbability",
    "Surrogate",
    "Table",
    "TransitionModel",
    "Trial",
    "WhatIf",
    "World",
    "c_separated",
    "card",
    "counterfactual",
    "fit",
    "learn",
    "learn_episodes",
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
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
