"""Rehearsal learning, causal Bayesian optimisation and counterfactually optimal action sequences, in one house.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rehearsal_torch.certificates.pac_bound import PacBound, pac_bound
    from rehearsal_torch.checkpoint import card, load, save
    from rehearsal_torch.data.causal_task import CausalTask
    from rehearsal_torch.data.decision import Decision
    from rehearsal_torch.data.episode import Episode, transitions
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.data.situation import Foresight, Hindsight
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.trial import Trial
    from rehearsal_torch.datasets.experiment_table import ExperimentTable
    from rehearsal_torch.datasets.rehearsal_table import RehearsalTable
    from rehearsal_torch.graphs.rehearsal import RehearsalGraph
    from rehearsal_torch.graphs.separation import c_separated
    from rehearsal_torch.loop import rounds
    from rehearsal_torch.objectives.confidence_bound import ConfidenceBound
    from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
    from rehearsal_torch.objectives.kernel_value import KernelValue
    from rehearsal_torch.objectives.reward import LinearReward
    from rehearsal_torch.objectives.success_probability import SuccessProbabilities
    from rehearsal_torch.optimiser import CausalOptimiser
    from rehearsal_torch.search.acquisition import AcquisitionSearch
    from rehearsal_torch.search.astar import AStar
    from rehearsal_torch.search.branch_and_bound import BranchAndBound
    from rehearsal_torch.search.informative import Informative
    from rehearsal_torch.search.projected_ascent import ProjectedAscent
    from rehearsal_torch.spaces.alteration import Alteration
    from rehearsal_torch.surrogates.exogenous_model import ExogenousModel
    from rehearsal_torch.surrogates.nested_ridge import NestedRidge
    from rehearsal_torch.surrogates.network_questions import counterfactual, recover, sample
    from rehearsal_torch.surrogates.spectral_ensemble import SpectralEnsemble
    from rehearsal_torch.surrogates.structural_posterior import StructuralPosterior
    from rehearsal_torch.surrogates.transition import TransitionModel
    from rehearsal_torch.training.fit import fit

__version__ = "0.1.0"

_HOME = {
    "PacBound": "certificates.pac_bound",
    "pac_bound": "certificates.pac_bound",
    "card": "checkpoint",
    "load": "checkpoint",
    "save": "checkpoint",
    "CausalTask": "data.causal_task",
    "Decision": "data.decision",
    "Episode": "data.episode",
    "transitions": "data.episode",
    "RehearsalTask": "data.rehearsal_task",
    "Foresight": "data.situation",
    "Hindsight": "data.situation",
    "Table": "data.table",
    "Trial": "data.trial",
    "ExperimentTable": "datasets.experiment_table",
    "RehearsalTable": "datasets.rehearsal_table",
    "RehearsalGraph": "graphs.rehearsal",
    "c_separated": "graphs.separation",
    "rounds": "loop",
    "ConfidenceBound": "objectives.confidence_bound",
    "CounterfactualReturn": "objectives.counterfactual_return",
    "KernelValue": "objectives.kernel_value",
    "LinearReward": "objectives.reward",
    "SuccessProbabilities": "objectives.success_probability",
    "CausalOptimiser": "optimiser",
    "AcquisitionSearch": "search.acquisition",
    "AStar": "search.astar",
    "BranchAndBound": "search.branch_and_bound",
    "Informative": "search.informative",
    "ProjectedAscent": "search.projected_ascent",
    "Alteration": "spaces.alteration",
    "ExogenousModel": "surrogates.exogenous_model",
    "NestedRidge": "surrogates.nested_ridge",
    "sample": "surrogates.network_questions",
    "recover": "surrogates.network_questions",
    "counterfactual": "surrogates.network_questions",
    "SpectralEnsemble": "surrogates.spectral_ensemble",
    "StructuralPosterior": "surrogates.structural_posterior",
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
