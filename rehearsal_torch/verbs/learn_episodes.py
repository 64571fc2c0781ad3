"""Learning from episodes: a model of transitions fitted to a table of units and times, to look back at units.

    model = rt.learn_episodes(frame, task)
    decision = model.look_back(model.cases[0], changes=3)

It is what ``rehearsal train +experiment=own_episodes path=table.csv dataset.task=task.yaml`` fits, to the
last bit: the same configuration, the same split of the units and the same seeds.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 3 (the model) and Eq. 7-9 (the question).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.verbs.configured import configuration, in_words, learnt, plain, undisturbed
from rehearsal_torch.verbs.episode_model import (
    CHANGES,
    LOOKING,
    METHOD,
    EpisodeModel,
    EpisodeReading,
    rows_of,
)
from rehearsal_torch.verbs.methods import RequestError, check_method
from rehearsal_torch.verbs.request import check_request_seed, problem_file

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

# The configuration groups in which settings are allowed.
GROUPS = ("dataset", "surrogate", "trainer", *LOOKING)
_TAKEN = {"dataset.path": "table", "dataset.task": "task", "dataset.seed": "seed"}


def learn_episodes(
    table: "IntoDataFrame | str | Path",
    task: Mapping[str, Any] | str | Path | None = None,
    method: str | None = None,
    seed: int = 0,
    **settings: object,
) -> EpisodeModel:
    """Fits a model of transitions to a table of episodes.

    Args:
        table: One row for each unit and time: a data frame (of pandas, polars or pyarrow), or a file. Or,
            without a task, a problem file with ``question: sequence``.
        task: What its columns mean, with actions and the reward of a step: a dictionary, or a YAML file
            (docs/episodes.md).
        method: The name of a file in ``conf/decision`` that looks back; None for that of the problem file,
            else "branch_and_bound".
        seed: Determines the split of the units and all random draws.
        settings: Overrides of the configuration of ``+experiment=own_episodes``, dotted key to plain value,
            such as ``**{"trainer.max_epochs": 10, "dataset.horizon": 12}``.

    Raises:
        TableError: if the table has faults; all are listed.
        TaskError: if the task has faults; all are listed.
        RequestError: if there is no such method or setting, or the method is for another kind of problem.
        ValueError: base class of all of the above.
    """
    seed = check_request_seed(seed)
    for key, argument in _TAKEN.items():
        if key in settings:
            raise RequestError(f"{key!r} is the argument `{argument}`: give it there")
    if built := [key for key in settings if key.rpartition(".")[2].startswith("_")]:
        raise RequestError(f"{built[0]!r} says what is built, and cannot be set here")
    with in_words(), undisturbed():
        from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
        from rehearsal_torch.problems.written.own_problem import OwnSequence
        from rehearsal_torch.problems.written.sequence_file import sequence_problem
        from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

        written = None if task is not None else sequence_problem(problem_file(table, "learn_episodes"))
        method = method or (written.method if written is not None else None) or METHOD
        check_method(method, "look_back")
        typed = ["+experiment=own_episodes", f"decision={method}", f"seed={seed}"]
        config = configuration(typed, settings, GROUPS)
        given = {
            str(key): value
            for key, value in plain(config)["dataset"].items()
            if not str(key).startswith("_") and key not in ("path", "task", "seed")
        }
        problem = (
            EpisodeTable(rows_of(table), task, seed, **given)
            if written is None
            else OwnSequence(written, seed, **given)
        )
        surrogate = learnt(config, problem)
        assert isinstance(surrogate, EpisodeSurrogate)
        kept = {key: value for key, value in settings.items() if key.partition(".")[0] in LOOKING}
        changes = (written.changes if written is not None else None) or CHANGES
        node, reading = plain(config)["surrogate"], EpisodeReading.of(problem)
        return EpisodeModel(surrogate, reading, method, seed, kept, node, changes, problem)
