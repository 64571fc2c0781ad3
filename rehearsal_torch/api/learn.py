"""Learning: a rehearsal method fitted to a table, to decide for cases that come later.

    model = rt.learn(frame, task)
    decisions = model.decide(cases)

It is the first half of `rehearse`, which decides at once: the fit, its configuration and its seeds are the
same.
"""

import warnings
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.api.configured import in_words, learnt, plain, under_graph, undisturbed
from rehearsal_torch.api.methods import RequestWarning
from rehearsal_torch.api.request import Request

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from omegaconf import DictConfig

    from rehearsal_torch.api.configured import Method
    from rehearsal_torch.api.rehearsal_model import RehearsalModel
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.method_choice.rule import Choice
    from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
    from rehearsal_torch.reporting.untouched_score import UntouchedScore

# What a configuration holds of a method.
NODES = ("surrogate", "objective", "search")


def learn(
    table: "IntoDataFrame | Table | str | Path",
    task: "Mapping[str, Any] | RehearsalTask | str | Path | None" = None,
    method: str | None = None,
    seed: int = 0,
    **settings: object,
) -> "RehearsalModel":
    """Fits a rehearsal method to a table.

    Args:
        table: Observations, or a problem file without a task, as for `rehearse`.
        task: Graph, context, box and region, as for `rehearse`.
        method: The name of a file in ``conf/decision``, as for `rehearse`; "auto" takes one by the rows, and
            the model's `choice` says why.
        settings: Overrides of the method's configuration, as for `rehearse`;
            ``**{"dataset.validation": 0.2}`` holds a fifth of the rows out, and the model's card says how
            well it predicts them.

    Returns:
        The fitted method (`api.rehearsal_model`): `decide`, `what_if`, `compare`,
        `explain`, `save` and `card`.

    Warns:
        RequestWarning: if none of the rows to learn from, or every one, lies in the desired region.

    Raises:
        TableError: if the table cannot be read, or a column is missing, not numeric, incomplete or constant;
            all faults are listed.
        TaskError: if the task cannot be used; all faults are listed.
        RequestError: if there is no such method or setting, or the method is for another kind of problem.
        ValueError: base class of all of the above.
    """
    request = Request.of(table, task, method, seed, settings)
    with in_words(), undisturbed():
        from rehearsal_torch.api.rehearsed import untouched_score

        config, found = request.configured()
        problem = request.problem(config)
        for sentence in problem.facts().notes:
            warnings.warn(sentence, RequestWarning, stacklevel=2)
        request, config, chosen, choice = request.settled(config, found, problem)
        surrogate = learnt(config, problem, chosen)
        score = untouched_score(problem, surrogate, chosen.objective)
        return model_of(request, config, chosen, problem, surrogate, score, choice)


def bounds_left(request: Request, problem: "RehearsalTable") -> str:
    """What becomes of the bounds that a problem file has for each case; empty where there are none."""
    if request.written is None or not request.written.bounds:
        return ""
    return left_behind(f"{request.written.source} has for each case", request.written.bounds, problem.task)


def left_behind(whose: str, names: Collection[str], task: "RehearsalTask") -> str:
    """That a model may set more than the bounds of its cases allow; empty if there are none.

    Args:
        whose: Whose bounds they are, in words.
        names: The variables that they are of.
        task: The task, with the bounds of the model.
    """
    ends = ", ".join(
        f"{name} from {low:g} to {high:g}" for name, (low, high) in task.box.bounds().items() if name in names
    )
    if not ends:
        return ""
    return (
        f"bounds: a model does not keep those that {whose}, so that this one may set {ends}: to decide "
        "within them, call rt.rehearse with the problem file and cases=..."
    )


def model_of(
    request: Request,
    config: "DictConfig",
    method: "Method",
    problem: "RehearsalTable",
    surrogate: Any,
    score: "UntouchedScore | None",
    choice: "Choice | None" = None,
) -> "RehearsalModel":
    """The model of a fit.

    Args:
        config: The configuration, as the fit left it.
        score: The held-out score of untouched rows; None if it was not measured.
        choice: The choice of the method from the rows; None if it was asked for by name.
    """
    from rehearsal_torch.api.explaining.fitted_rows import FittedRows
    from rehearsal_torch.api.model_card import model_card
    from rehearsal_torch.api.rehearsal_model import RehearsalModel
    from rehearsal_torch.surrogates.overturning import Overturning

    whole = plain(config)
    overturning = Overturning(problem.task, problem.observations)
    nodes = {name: whole[name] for name in NODES}
    card = partial(model_card, problem, request.method, request.seed, request.settings, score, choice)
    rows = FittedRows(problem.observations, partial(under_graph, config, problem, method))
    return RehearsalModel(
        surrogate,
        method,
        nodes,
        request.method,
        request.seed,
        overturning,
        card,
        rows,
        choice,
        bounds_left(request, problem),
        dict(problem.facts().wording.get("units_of", {})),
    )
