"""What judges the decisions of a run beside its own fit: models of rows that did not choose, and the method
fitted under other graphs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from rehearsal_torch.claims.cross_fitting import CrossFittedClaims, cross_fitted
from rehearsal_torch.claims.member_graphs import member_graphs
from rehearsal_torch.claims.rules import Claims
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_class
from rehearsal_torch.methods.build import made, seed_and_use_one_thread
from rehearsal_torch.methods.run import Run
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.fit import fit
from rehearsal_torch.training.shared_members import shareable
from rehearsal_torch.user_error import UserError, as_user_error


def cross_fitted_claims(
    run: Run, told: Callable[[str], None] | None = None, workers: int = 1
) -> CrossFittedClaims:
    """The cross-fitted claims of a run.

    All fits use the held-out rows of the problem for early stopping, as that of the run does.

    Args:
        told: Is told of the progress, one line per fold; None for silence.
        workers: The number of processes that share the folds, unless these train on GPUs, or with several
            processes each.

    Raises:
        UserError: if the run decides for other problems than cases of a table, or a fold cannot be fitted to.
    """
    problem, task = run.problem, run.problem.question()
    if not isinstance(task, RehearsalTask):
        raise UserError(
            "these claims are those of alterations, judged by other rows of a table; "
            f"{type(problem).__name__} has none",
            "claims=cross_fitted",
            "Leave claims= out",
        )
    held_out = problem.held_out()
    with as_user_error("claims"):
        trainer = run.trainer(None)
        how = None if trainer is None else trainer.settled()

        def fitted(table: Table) -> Surrogate:
            return fit(run.surrogate(), table, None if how is None else how.settled(), held_out)

        return cross_fitted(
            problem.observations(),
            problem.facts().units,
            task,
            fitted,
            run.objective,
            run.search,
            seed=run.seed,
            told=told,
            workers=workers if shareable(how) else 1,
        )


def judged_by_graphs(
    run: Run,
    surrogate: Surrogate,
    written: Any,
    claims: Claims | None = None,
    told: Callable[[str], None] | None = None,
) -> Claims | None:
    """The claims of a run, followed by the graphs under which its decisions stand (`member_graphs`); the
    claims alone if no graphs are named.

    Args:
        surrogate: Its fitted surrogate, under the graph of the task.
        written: The graphs (`graphs.written_graph`); None for none.
        claims: Replaces the claims of the decisions; None keeps the method's own.
        told: Is told of the progress, one line per fit; None for silence.

    Raises:
        UserError: if the graphs cannot be read or do not suit the task, or the run does not decide for cases
            of a table by a method with one graph.
    """
    if written is None:
        return claims
    if run.learn or run.kind != "rehearse" or "task" not in run.config["surrogate"]:
        raise UserError(
            "only decisions for cases of a table, by a method that is fitted once, are compared over graphs",
            "graphs",
            "Leave graphs= out",
        )
    with as_user_error("graphs"):
        return member_graphs(
            graph_class(written), surrogate, partial(fitted_under, run), run.objective, claims, told
        )


def fitted_under(run: Run, graph: RehearsalGraph) -> RehearsalSurrogate:
    """The method of a run, fitted to its observations under another graph of the task's variables."""
    seed_and_use_one_thread(run.seed)
    task = RehearsalTask.of(run.config["surrogate"]["task"]).to_plain() | {"graph": graph.to_plain()}
    under: RehearsalSurrogate = made({**run.config["surrogate"], "task": task}, "surrogate")
    fit(under, run.problem.observations(), run.trainer(None), run.problem.held_out())
    return under
