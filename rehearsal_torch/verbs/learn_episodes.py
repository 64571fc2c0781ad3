"""Learning from episodes: a model of transitions fitted to a table of units and times, to look back at units.

    model = rt.learn_episodes(frame, task)
    decision = model.look_back(model.cases[0], changes=3)

It is what ``rehearsal train +experiment=own_episodes path=table.csv dataset.task=task.yaml`` fits, to the
last bit: the same configuration, the same split of the units and the same seeds.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 3 (the model) and Eq. 7-9 (the question).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.verbs.configured import configuration, in_words, learnt, plain, undisturbed
from rehearsal_torch.verbs.methods import RequestError, check_method
from rehearsal_torch.verbs.request import problem_file

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

    from rehearsal_torch.data.decision import EpisodeCase
    from rehearsal_torch.data.episode import Episode
    from rehearsal_torch.objectives.reward import Reward
    from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
    from rehearsal_torch.reporting.style import Wording
    from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
    from rehearsal_torch.verbs.looked_back import LookedBack

# The configuration groups in which settings are allowed.
METHOD = "branch_and_bound"
CHANGES = 3
LOOKING = ("search", "objective")
GROUPS = ("dataset", "surrogate", "trainer", *LOOKING)
_TAKEN = {"dataset.path": "table", "dataset.task": "task", "dataset.seed": "seed"}


@dataclass(frozen=True)
class EpisodeModel:
    """A model of episodes, fitted to the units of a table, with the task that they came with.

    Attributes:
        surrogate: The fitted model.
        problem: The table: its units, their split and the reward of a step.
        method: The name of the method that looks back.
        seed: The seed.
        settings: Settings of the search and the objective.
        node: The configuration of the surrogate.
        changes: The maximum number of changed actions, where none is asked for.
    """

    surrogate: "EpisodeSurrogate"
    problem: "EpisodeTable" = field(repr=False)
    method: str
    seed: int
    settings: Mapping[str, object]
    node: Mapping[str, Any] = field(repr=False)
    changes: int = CHANGES

    @cached_property
    def cases(self) -> "list[EpisodeCase]":
        """The units that nothing was learnt from (or those of ``dataset.split``), with the actions that stay
        as they were at the end of each.
        """
        return [self.problem.case(index) for index in range(self.problem.count())]

    @cached_property
    def reward(self) -> "Reward":
        """The reward of a step, as the task states it."""
        from rehearsal_torch.objectives.episode_reward import episode_reward

        return episode_reward(
            **{key: value for key, value in self.problem.reward_settings().items() if key != "_target_"}
        )

    @cached_property
    def words(self) -> "Wording":
        """What units, steps, actions and the reward are called."""
        from rehearsal_torch.reporting.style import wording

        names = [each.name for each in self.problem.roles.actions]
        known = {"reward": dict(self.problem.reward_settings()), "actions": names}
        return wording({}, dict(self.problem.wording()) | known)

    def look_back(
        self, unit: "str | int | EpisodeCase | Episode", changes: int | None = None, **settings: object
    ) -> "LookedBack":
        """The best change of at most k actions of a unit, as `rt.look_back` finds it, in the task's words.

        Args:
            unit: The name of a unit of the table, one of `cases`, or an episode with the same columns.
            changes: k, the maximum number of actions that differ from the observed ones; None for that of the
                problem file, or 3.
            settings: As for `rt.look_back`; they count before those of the model.

        Raises:
            RequestError: if there is no such unit, or as `rt.look_back` does.
        """
        from rehearsal_torch.verbs.look_back import look_back

        found = look_back(
            self.surrogate,
            self._unit(unit),
            self.changes if changes is None else changes,
            self.method,
            self.reward,
            self.seed,
            self.problem.observations(),
            **{**self.settings, **settings},
        )
        return replace(found, words=self.words)

    def save(self, folder: str | Path) -> Path:
        """Saves the fitted model as a checkpoint, which `rt.load` and ``checkpoint=FOLDER`` read.

        Args:
            folder: The folder; files of a checkpoint in it are replaced.

        Returns:
            The folder.
        """
        from rehearsal_torch.checkpoint import save

        facts = {
            "seed": self.seed,
            "data_fingerprint": self.problem.observations().fingerprint(),
            "data": dict(self.problem.card()),
        }
        save(self.surrogate, dict(self.node), folder, facts)
        return Path(folder)

    def _unit(self, given: "str | int | EpisodeCase | Episode") -> "EpisodeCase | Episode":
        """A unit: itself, or that of the table with this name, in any split.

        Raises:
            RequestError: if there is none, or it is something else.
        """
        from rehearsal_torch.cli.errors import did_you_mean
        from rehearsal_torch.data.decision import EpisodeCase
        from rehearsal_torch.data.episode import Episode

        if isinstance(given, EpisodeCase | Episode):
            return given
        if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
            unit = self.problem.roles.words.unit
            raise RequestError(
                f"unit: expected the name of a {unit}, one of `cases` or an Episode; got "
                f"{type(given).__name__}"
            )
        name = str(given)

        if (known := next((each for each in self.cases if each.identity == name), None)) is not None:
            return known
        every = {each.identity: each for each in self.problem.all}
        if name not in every:
            several = f"the table has {len(every)}, such as {next(iter(every))!r}"
            hint = did_you_mean(name, list(every)) or several
            raise RequestError(f"there is no {self.problem.roles.words.unit} {name!r}: {hint}")
        return EpisodeCase(every[name])


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
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise RequestError(f"seed: expected a whole number of at least 0; got {seed!r}")
    for key, argument in _TAKEN.items():
        if key in settings:
            raise RequestError(f"{key!r} is the argument `{argument}`: give it there")
    if built := [key for key in settings if key.rpartition(".")[2].startswith("_")]:
        raise RequestError(f"{built[0]!r} says what is built, and cannot be set here")
    with in_words(), undisturbed():
        from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
        from rehearsal_torch.problems.written.own_sequence import OwnSequence
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
            EpisodeTable(_rows(table), task, seed, **given)
            if written is None
            else OwnSequence(written, seed, **given)
        )
        surrogate = learnt(config, problem)
        assert isinstance(surrogate, EpisodeSurrogate)
        kept = {key: value for key, value in settings.items() if key.partition(".")[0] in LOOKING}
        changes = (written.changes if written is not None else None) or CHANGES
        return EpisodeModel(surrogate, problem, method, seed, kept, plain(config)["surrogate"], changes)


def _rows(table: "IntoDataFrame | str | Path") -> Any:
    """A file, or the rows as a data frame of pandas.

    Raises:
        RequestError: if they are something else.
        TableError: if two columns have the same name, or the frame is lazy.
    """
    from rehearsal_torch.data.tables.in_memory import data_frame, row_count

    if isinstance(table, str | Path):
        return table
    if row_count(table) is None:
        raise RequestError(f"table: expected a data frame or a .csv file; got a {type(table).__name__}")
    return data_frame(table, "the table")
