"""Methods of causal Bayesian optimisation by name: model, objective and search.

The default, ``excbo``, consists of classes with their own default values, so that the optimiser reads no
configuration unless another method is requested; ``conf/decision/excbo.yaml`` holds the same values.

Source: Ren et al. (2025), Alg. 1.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel

METHOD = "excbo"
# An unfitted model of a task; an objective of (model, case).
SurrogateFactory = Callable[[CausalTask], CausalModel]
ObjectiveFactory = Callable[..., CausalObjective]
# The search, given its seed.
SearchFactory = Callable[[int], Search[Any]]
Parts = tuple[SurrogateFactory, ObjectiveFactory, SearchFactory]


def trial_method(name: str) -> Parts:
    """The factories of model, objective and search. The objective's fixed draws are those of seed 0.

    Args:
        name: The name of a file in ``conf/decision``.

    Raises:
        RequestError: if there is no trial method of that name.
    """
    if name == METHOD:
        return ExogenousModel, ConfidenceBound, lambda seed: AcquisitionSearch(seed=seed)
    return configured_method(name)


def configured_method(name: str) -> Parts:
    """The same factories, read from the configuration, also for the default.

    Raises:
        RequestError: if there is no trial method of that name.
    """
    from rehearsal_torch.cli.build import made
    from rehearsal_torch.verbs.configured import configuration, in_words, method_of, plain, undisturbed
    from rehearsal_torch.verbs.methods import check_method

    with in_words(), undisturbed():
        check_method(name, "optimise")
        config = configuration([f"decision={name}"], {}, ())
        objective: Any = method_of(config).objective
        whole = plain(config)
        # The task is passed when a model is built, the seed when a search is built.
        model = {key: value for key, value in whole["surrogate"].items() if key != "task"}
        surrogate: partial[CausalModel] = made({**model, "_partial_": True}, "surrogate")

    def search(seed: int) -> Search[Any]:
        node = whole["search"]
        found: Search[Any] = made(node | {"seed": seed} if "seed" in node else node, "search")
        return found

    return surrogate, objective, search
