"""The graphs that may be true, as ``graphs=FILE`` names them, and the method fitted under each.

Decisions are made with the graph of the task; their trace then says under which of these graphs they stand
(`member_graphs`).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rehearsal_torch.cli.build import made, seed_and_use_one_thread
from rehearsal_torch.cli.run import Run
from rehearsal_torch.user_error import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
    from rehearsal_torch.loop import Claims
    from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
    from rehearsal_torch.surrogates.surrogate import Surrogate


def judged_by_graphs(
    run: Run,
    surrogate: "Surrogate",
    written: Any,
    claims: "Claims | None" = None,
    told: Callable[[str], None] | None = None,
) -> "Claims | None":
    """The claims of a run, followed by the graphs under which its decisions stand; the claims alone if no
    graphs are named.

    Args:
        surrogate: Its fitted surrogate, under the graph of the task.
        written: The graphs (`graphs.graph_class`); None for none.
        claims: Replaces the claims of the decisions; None keeps the method's own.
        told: Is told of the progress, one line per fit; None for silence.

    Raises:
        UserError: if the graphs cannot be read or do not suit the task, or the run does not decide for cases
            of a table by a method with one graph.
    """
    if written is None:
        return claims
    from rehearsal_torch.graphs.graph_class import graph_class
    from rehearsal_torch.member_graphs import member_graphs

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


def fitted_under(run: Run, graph: "RehearsalGraph") -> "RehearsalSurrogate":
    """The method of a run, fitted to its observations under another graph of the task's variables."""
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.training.fit import fit

    seed_and_use_one_thread(run.seed)
    task = RehearsalTask.of(run.config["surrogate"]["task"]).to_plain() | {"graph": graph.to_plain()}
    made_under: RehearsalSurrogate = made({**run.config["surrogate"], "task": task}, "surrogate")
    fit(made_under, run.problem.observations(), run.trainer(None), run.problem.held_out())
    return made_under
