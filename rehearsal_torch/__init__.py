"""Rehearsal learning, causal Bayesian optimisation and counterfactually optimal action sequences, in one
house.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rehearsal_torch.certificate import PacBound, pac_bound
    from rehearsal_torch.checkpoint import card, load, save
    from rehearsal_torch.data.causal_task import CausalTask
    from rehearsal_torch.data.decision import Decision, Foresight, Hindsight
    from rehearsal_torch.data.episode import Episode, transitions
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.trial import Trial
    from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
    from rehearsal_torch.graphs.separation import c_separated
    from rehearsal_torch.loop import rounds
    from rehearsal_torch.objectives.confidence_bound import ConfidenceBound
    from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, LinearReward
    from rehearsal_torch.objectives.kernel_value import KernelValue
    from rehearsal_torch.objectives.success_probability import SuccessProbabilities
    from rehearsal_torch.optimiser import CausalOptimiser
    from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
    from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
    from rehearsal_torch.search.alterations.informative import Informative
    from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
    from rehearsal_torch.search.sequences.astar import AStar
    from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
    from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
    from rehearsal_torch.spaces.box import Alteration
    from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
    from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
    from rehearsal_torch.surrogates.network.causal_model import counterfactual, recover, sample
    from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
    from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
    from rehearsal_torch.surrogates.transition import TransitionModel
    from rehearsal_torch.training.fit import fit

__version__ = "0.2.0"

_HOME = {
    "PacBound": "certificate",
    "pac_bound": "certificate",
    "card": "checkpoint",
    "load": "checkpoint",
    "save": "checkpoint",
    "CausalTask": "data.causal_task",
    "Decision": "data.decision",
    "Episode": "data.episode",
    "transitions": "data.episode",
    "RehearsalTask": "data.rehearsal_task",
    "Foresight": "data.decision",
    "Hindsight": "data.decision",
    "Table": "data.table",
    "Trial": "data.trial",
    "ExperimentTable": "problems.causal.own_experiments",
    "RehearsalTable": "problems.rehearsal.own_table",
    "RehearsalGraph": "graphs.mixed_graph",
    "c_separated": "graphs.separation",
    "rounds": "loop",
    "ConfidenceBound": "objectives.confidence_bound",
    "CounterfactualReturn": "objectives.counterfactual_return",
    "KernelValue": "objectives.kernel_value",
    "LinearReward": "objectives.counterfactual_return",
    "SuccessProbabilities": "objectives.success_probability",
    "CausalOptimiser": "optimiser",
    "AcquisitionSearch": "search.trials.acquisition",
    "AStar": "search.sequences.astar",
    "BranchAndBound": "search.sequences.branch_and_bound",
    "Informative": "search.alterations.informative",
    "ProjectedAscent": "search.alterations.projected_ascent",
    "Alteration": "spaces.box",
    "ExogenousModel": "surrogates.network.exogenous_model",
    "NestedRidge": "surrogates.kernel.nested_ridge",
    "sample": "surrogates.network.causal_model",
    "recover": "surrogates.network.causal_model",
    "counterfactual": "surrogates.network.causal_model",
    "SpectralEnsemble": "surrogates.kernel.spectral_ensemble",
    "StructuralPosterior": "surrogates.structural.graph_posterior",
    "TransitionModel": "surrogates.transition",
    "fit": "training.fit",
}

__all__ = [
    "AStar",
    "AcquisitionSearch",
    "Alteration",
    "BranchAndBound",
    "CausalOptimiser",
    "CausalTask",
    "ConfidenceBound",
    "CounterfactualReturn",
    "Decision",
    "Episode",
    "ExogenousModel",
    "ExperimentTable",
    "Foresight",
    "Hindsight",
    "Informative",
    "KernelValue",
    "LinearReward",
    "NestedRidge",
    "PacBound",
    "ProjectedAscent",
    "RehearsalGraph",
    "RehearsalTable",
    "RehearsalTask",
    "SpectralEnsemble",
    "StructuralPosterior",
    "SuccessProbabilities",
    "Table",
    "TransitionModel",
    "Trial",
    "c_separated",
    "card",
    "counterfactual",
    "fit",
    "load",
    "pac_bound",
    "recover",
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
