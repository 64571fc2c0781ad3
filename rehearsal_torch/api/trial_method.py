"""What a campaign of experiments is made of: its task, and the factories of model, objective and search."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rehearsal_torch.api.fit_and_decide import configuration, in_words, undisturbed
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import made
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run_parts import method_of
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.problems.drafts.draft_yaml import problem_content
from rehearsal_torch.problems.trials.trials_file import TrialsFile, trials_problem
from rehearsal_torch.problems.trials.user_experiments import causal_task
from rehearsal_torch.search.search import Search
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel

METHOD = "excbo"
# An unfitted model of a task; an objective of (model, case).
SurrogateFactory = Callable[[CausalTask], CausalModel]
ObjectiveFactory = Callable[..., CausalObjective]
# The search, given its seed.
SearchFactory = Callable[[int], Search[Any]]
Parts = tuple[SurrogateFactory, ObjectiveFactory, SearchFactory]


def trials_of(
    task: CausalTask | Mapping[str, Any] | str | Path | None, method: str | None
) -> tuple[CausalTask | Mapping[str, Any] | None, TrialsFile | None, Parts]:
    """A task, its problem file or None, and the method's factories."""
    if not isinstance(task, str | Path):
        return task, None, trial_method(method or METHOD)
    if problem_content(task) is None:
        return causal_task(task), None, trial_method(method or METHOD)
    file = trials_problem(task)
    return file.task, file, trial_method(method or file.method or METHOD)


def trial_method(name: str) -> Parts:
    """The factories of model, objective and search. The objective's fixed draws are those of seed 0."""
    with in_words(), undisturbed():
        check_method(name, "optimise")
        config = configuration(name, {}, ())
        objective: Any = method_of(config).objective
        nodes = plain(config)
        # The task is passed when a model is built, the seed when a search is built.
        model = {key: value for key, value in nodes["surrogate"].items() if key != "task"}
        surrogate: partial[CausalModel] = made({**model, "_partial_": True}, "surrogate")

    def search(seed: int) -> Search[Any]:
        node = nodes["search"]
        instance: Search[Any] = made(node | {"seed": seed} if "seed" in node else node, "search")
        return instance

    return surrogate, objective, search
