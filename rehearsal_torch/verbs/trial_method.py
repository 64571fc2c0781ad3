"""Methods of causal Bayesian optimisation by name: model, objective and search.

The default, ``excbo``, consists of classes with their own default values, so that the optimiser reads no
configuration unless another method is requested; ``conf/decision/excbo.yaml`` holds the same values.

Source: Ren et al. (2025), Alg. 1.
"""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.cli.choice.asked import problem_content
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.trial import TrialWarning
from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.problems.causal.own_experiments import causal_task
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel

if TYPE_CHECKING:
    from rehearsal_torch.problems.written.trials_file import TrialsProblem

METHOD = "excbo"
# An unfitted model of a task; an objective of (model, case).
SurrogateFactory = Callable[[CausalTask], CausalModel]
ObjectiveFactory = Callable[..., CausalObjective]
# The search, given its seed.
SearchFactory = Callable[[int], Search[Any]]
Parts = tuple[SurrogateFactory, ObjectiveFactory, SearchFactory]


def trials_of(
    task: CausalTask | Mapping[str, Any] | str | Path | None, method: str | None
) -> "tuple[CausalTask | Mapping[str, Any] | None, TrialsProblem | None, Parts]":
    """A task, read from its file if it is in one, the problem file that it is from (None without one), and
    the factories of the method.

    Args:
        task: The task: plain data, a YAML file, a problem file with ``question: trials``, or None.
        method: The name of a file in ``conf/decision``; None for that of the problem file, else ``excbo``.

    Warns:
        TrialWarning: if the problem file holds actions at a value.

    Raises:
        TaskError: if it cannot be used; all faults are listed.
        RequestError: if there is no trial method of that name.
    """
    if not isinstance(task, str | Path):
        return task, None, trial_method(method or METHOD)
    if problem_content(task) is None:
        return causal_task(task), None, trial_method(method or METHOD)
    from rehearsal_torch.problems.written.trials_file import trials_problem

    found = trials_problem(task)
    if found.fixed:
        warnings.warn(
            f"{found.source} holds {dict(found.fixed)}, which counts for decide alone: write ask(fixed=...)",
            TrialWarning,
            stacklevel=3,
        )
    return found.task, found, trial_method(method or found.method or METHOD)


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
