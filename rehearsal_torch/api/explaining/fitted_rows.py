"""The rows to which a method was fitted, and the method fitted to them again under another graph.

A model that was fitted in this process knows them; a saved one holds none, and is given them again.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from omegaconf import open_dict

from rehearsal_torch.api.request import Request
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.methods.judged import fitted_under
from rehearsal_torch.methods.run import build
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.user_error import RequestWarning

if TYPE_CHECKING:
    from rehearsal_torch.api.rehearsal_model import RehearsalModel


@dataclass(frozen=True)
class FittedRows:
    """The rows of a fit.

    Attributes:
        observations: Returns them.
        under: Returns the method fitted to them under another graph of the task's variables.
    """

    observations: Callable[[], Table]
    under: Callable[[RehearsalGraph], RehearsalSurrogate]


def rows_again(model: "RehearsalModel", table: Any) -> FittedRows:
    """The rows of a saved model, given again.

    Args:
        model: The model; its card names the data by fingerprint.
        table: The rows, in any of the forms of `learn`.

    Warns:
        RequestWarning: if they are not those of the fit.

    Raises:
        TableError: if the table cannot be read, or a column is missing, not numeric, incomplete or constant.
        RequestError: if it is of another type, or there is no such file.
    """
    request = Request.of(table, model.task, model.name, model.seed, _kept(model.card.get("settings")))
    config, method = request.configured()
    # A model is called by the method that decides, also where that was chosen from the rows.
    assert method is not None
    with open_dict(config):
        config.surrogate = {**model.nodes["surrogate"], "task": model.task.to_plain()}
    problem = request.problem(config)
    known, given = model.card.get("data_fingerprint"), problem.observations()
    if isinstance(known, str) and given.fingerprint() != known:
        warnings.warn(
            f"table: the model was fitted to other rows than these {len(given)} "
            f"({known[:12]}, here {given.fingerprint()[:12]}), so that the explanation is of another table: "
            "give those of the fit",
            RequestWarning,
            stacklevel=3,
        )
    return FittedRows(problem.observations, partial(fitted_under, build(config, problem, method)))


def _kept(settings: object) -> dict[str, object]:
    """The settings of a fit that say which rows it is fitted to, and how."""
    if not isinstance(settings, Mapping):
        return {}
    return {
        str(key): value
        for key, value in settings.items()
        if str(key).partition(".")[0] in ("dataset", "trainer")
    }
