"""A fitted transition model of episodes with its task, as `learn_episodes` and `load` return it.

    model = rt.learn_episodes(frame, task)
    model.look_back(model.cases[0], changes=3)
    model.save("pumps")

    again = rt.load("pumps")                     or the folder of a run that fitted such a model
    again.look_back(again.read(later)[0])        units of a table that came after the fit

A table that comes later is read by the task of the fit: its columns, its levels, its length of a step.
Amounts become the levels that were fitted. Values outside the data of the fit make a warning that begins with
``range:``. Steps are named by the times of the unit's own table. A loaded model has no rows of the fit, so
that how strong a hidden common cause would have to be is known only with ``records=``, as for `rt.look_back`.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 3 (the model) and Eq. 7-9 (the question).

Learning fits what ``rehearsal train +experiment=own_episodes path=table.csv dataset.task=task.yaml`` fits, to
the last bit: the same configuration, the same split of the units and the same seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from narwhals.typing import IntoDataFrame

from rehearsal_torch.api.episode_query import GROUPS as LOOKING
from rehearsal_torch.api.episode_query import LookedBack, best_change
from rehearsal_torch.api.fit_and_decide import (
    configuration,
    in_words,
    learnt,
    provenance,
    refuse_arguments,
    undisturbed,
)
from rehearsal_torch.api.rehearsal_request import check_request_seed, problem_file
from rehearsal_torch.checkpoint import save as save_surrogate
from rehearsal_torch.checkpoint import written as written_folder
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import data_frame, row_count
from rehearsal_torch.data.tables.reader import TableError, table_file
from rehearsal_torch.files.bounded_yaml import sealed
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.objectives.step_reward import Reward
from rehearsal_torch.objectives.task_reward import episode_reward
from rehearsal_torch.problems.sequences.column_roles import EpisodeRoles
from rehearsal_torch.problems.sequences.rows_to_episodes import read_episodes
from rehearsal_torch.problems.sequences.sequence_file import OwnSequence, sequence_problem
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.reporting.labels import Wording, wording
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.user_error import RequestError, did_you_mean

# The method that looks back, and the number of changes, where none are named.
LOOKING_BACK = "closed_form"
CHANGES = 3
# The share by which an amount may lie beyond the largest one without a word.
SLACK = 1e-9
INTENDED = (
    "Looking back at units like those of the data: it estimates which few other actions would have led to a "
    "larger reward. A recommendation is a claim of this model, not a prescription."
)
LIMITS = (
    "It rests on the assumption that nothing hidden influences both actions and states.",
    "States and actions outside the ranges of the data carry a warning: what it says of them is an "
    "extrapolation.",
    "It says nothing of units, instruments or populations other than those of the data, nor of changes "
    "since.",
    "What an action brings after the end of an episode does not count.",
)


@dataclass(frozen=True)
class EpisodeReading:
    """How tables of episodes are read: as that of the fit.

    Attributes:
        step: The length of a step, in the unit of time.
        first: The time of the first step, if it was the same for all units; else None.
        keep_last: How many actions at the end of each unit stay as they were.
        amounts: Action to its largest amount in the data of the fit; levels have none.
    """

    roles: EpisodeRoles
    step: float
    first: int | None = None
    keep_last: int = 1
    amounts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EpisodeModel:
    """A model of episodes, with the task that they came with.

    Attributes:
        method: The name of the method that looks back.
        settings: Settings of the search and the objective.
        changes: The maximum number of changed actions, where none is asked for.
    """

    surrogate: EpisodeSurrogate
    reading: EpisodeReading
    method: str
    seed: int
    settings: Mapping[str, object]
    node: Mapping[str, Any] = field(repr=False)
    changes: int = CHANGES
    problem: EpisodeTable | None = field(default=None, repr=False)
    card: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to(self, device: torch.device | str) -> Self:
        """Moves the fitted model to a device, such as "cuda"; its answers stay on the CPU."""
        self.surrogate.to(device)
        return self

    @cached_property
    def cases(self) -> list[EpisodeCase]:
        """The units of the split that nothing was learnt from; empty for a loaded model without rows."""
        return [] if self.problem is None else [self.problem.case(i) for i in range(self.problem.count())]

    @cached_property
    def reward(self) -> Reward:
        """The reward of a step, as the task states it."""
        settings = self.reading.roles.reward_settings()
        return episode_reward(**{key: value for key, value in settings.items() if key != "_target_"})

    @cached_property
    def words(self) -> Wording:
        """What units, steps, actions and the reward are called; each unit says at which time it begins."""
        roles = self.reading.roles
        columns: dict[str, Any] = {
            "reward": roles.reward_settings(),
            "actions": [action.name for action in roles.actions],
        }
        return wording({}, roles.wording() | columns)

    def read(self, table: IntoDataFrame | str | Path) -> list[EpisodeCase]:
        """Cases of a later table, one for each unit of at least two steps; or a TableError."""
        rows, roles = rows_of(table), self.reading.roles
        if isinstance(rows, pd.DataFrame):
            frame, where = rows.reset_index(drop=True), "the table"
        else:
            frame, where = table_file(rows), str(rows)
        episodes = read_episodes(frame, roles, where, length=self.reading.step)
        if not episodes.episodes:
            raise TableError(
                f"{where}: no {roles.words.unit} with at least 2 steps is left ({dict(episodes.counts)}): a "
                "look back needs an action and what came of it"
            )
        return [episodes.case(episode, self.reading.keep_last) for episode in episodes.episodes]

    def look_back(
        self,
        unit: str | int | EpisodeCase | Episode,
        changes: int | None = None,
        records: Sequence[Episode] | Table | IntoDataFrame | None = None,
        **settings: object,
    ) -> LookedBack:
        """The best change of at most k actions of a unit, as `rt.look_back` finds it, in the task's words. A
        RequestError if there is no such unit, or as `rt.look_back` does.

        Args:
            unit: The name of a unit of the fit, one of `cases` or of `read`, or an episode with its columns.
            changes: k, the maximum number of changed actions; None for that of the problem file, or 3.
            records: The episodes of the fit, for a loaded model; one that was fitted here has them.
            settings: As for `rt.look_back`; they count before those of the model.
        """
        if records is None and self.problem is not None:
            records = self.problem.observations()
        most = self.changes if changes is None else changes
        return self.best_change(self._unit(unit), most, self.method, None, self.seed, records, settings)

    def best_change(
        self,
        episode: Episode | EpisodeCase,
        changes: int,
        method: str,
        reward: Reward | Mapping[str, float] | str | None,
        seed: int,
        records: Sequence[Episode] | Table | IntoDataFrame | None,
        settings: Mapping[str, object],
    ) -> LookedBack:
        """What `rt.look_back` answers with this model; without a reward, with the task's and its words."""
        goal, words = (self.reward, self.words) if reward is None else (reward, None)
        rules = {f"objective.rules.{key}": value for key, value in self.reading.roles.rule_settings().items()}
        settings = {**rules, **self.settings, **settings}
        best = best_change(self.surrogate, episode, changes, method, goal, seed, records, settings, words)
        return replace(best, findings=(*best.findings, *self.beyond(best.case.episode)))

    def beyond(self, episode: Episode) -> tuple[Finding, ...]:
        """A finding for each action of which an episode has more than the data of the fit."""
        most = {name: float(episode.columns([name]).max()) for name in self.reading.amounts}
        return tuple(
            Finding(
                "range",
                f"{name} is up to {setting_text(most[name], 6)}; the observations lie between 0 and "
                f"{setting_text(largest, 6)}, and it is taken as the highest of their levels",
            )
            for name, largest in self.reading.amounts.items()
            if most[name] > largest * (1 + SLACK)
        )

    def save(self, folder: str | Path) -> Path:
        """Saves a checkpoint, over one in the folder, that `rt.load` and ``checkpoint=FOLDER`` read."""
        card = dict(self.card) if self.problem is None else self._card(self.problem)
        settings = {key: _plain(value) for key, value in self.settings.items()}
        card["looking"] = sealed({"method": self.method, "changes": self.changes, "settings": settings})

        return written_folder(folder, lambda beside: save_surrogate(self.surrogate, self.node, beside, card))

    def _card(self, problem: EpisodeTable) -> dict[str, Any]:
        return {
            "intended_use": INTENDED,
            "limits": list(LIMITS),
            **provenance(self.seed, problem.observations()),
            "data": dict(problem.card()),
            "reading": dict(problem.facts().reading),
        }

    def _unit(self, unit: str | int | EpisodeCase | Episode) -> EpisodeCase | Episode:
        """A unit: itself, or that of the table with this name, in any split."""
        if isinstance(unit, EpisodeCase | Episode):
            return unit
        noun = self.reading.roles.words.unit
        if isinstance(unit, bool) or not isinstance(unit, str | int | np.integer):
            expected = f"expected the name of a {noun}, one of `cases` or an Episode"
            raise RequestError(f"unit: {expected}; got {type(unit).__name__}")
        name = str(unit)
        if self.problem is None:
            raise RequestError(
                f"there is no {noun} {name!r}: a loaded model has no rows. Read a table, "
                "units = model.read(table), and give one of these units"
            )
        if (match := next((case for case in self.cases if case.identity == name), None)) is not None:
            return match
        episodes = {episode.identity: episode for episode in self.problem.all}
        if name not in episodes:
            example = f"the table has {len(episodes)}, such as {next(iter(episodes))!r}"
            hint = did_you_mean(name, list(episodes)) or example
            raise RequestError(f"there is no {noun} {name!r}: {hint}")
        return EpisodeCase(episodes[name], first=self.reading.first)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def rows_of(table: IntoDataFrame | str | Path) -> Any:
    """A file, or the rows as a data frame of pandas. A RequestError if they are something else."""
    if isinstance(table, str | Path):
        return table
    if row_count(table) is None:
        raise RequestError(f"table: expected a data frame or a .csv file; got a {type(table).__name__}")
    return data_frame(table, "the table")


# The configuration groups in which settings are allowed.
GROUPS = ("dataset", "surrogate", "trainer", *LOOKING)
_TAKEN = {"dataset.path": "table", "dataset.task": "task", "dataset.seed": "seed"}


def learn_episodes(
    table: IntoDataFrame | str | Path,
    task: Mapping[str, Any] | str | Path | None = None,
    method: str | None = None,
    seed: int = 0,
    **settings: object,
) -> EpisodeModel:
    """Fits a model of transitions to a table of episodes. TableError and TaskError list all faults of table
    and task; a RequestError is for methods and settings.

    Args:
        table: One row for each unit and time, as a data frame or a file; or, without a task, a problem file.
        task: Columns, actions and the reward of a step: a dictionary, or a YAML file (docs/episodes.md).
        method: A file in ``conf/decision`` that looks back; None for the problem file's, else "closed_form".
        seed: Determines the split of the units and all random draws.
        settings: Overrides of ``+experiment=own_episodes`` by dotted keys, such as ``**{"dataset.horizon":
            12}``.
    """
    seed = check_request_seed(seed)
    refuse_arguments(settings, _TAKEN)
    if instructions := [key for key in settings if key.rpartition(".")[2].startswith("_")]:
        raise RequestError(f"{instructions[0]!r} says what is built, and cannot be set here")
    with in_words(), undisturbed():
        file = None if task is not None else sequence_problem(problem_file(table, "learn_episodes"))
        method = method or (file.problem.method if file is not None else None) or LOOKING_BACK
        check_method(method, "look_back")
        config = configuration(method, settings, GROUPS, seed, "own_episodes")
        data = plain(config)["dataset"]
        dropped = [key for key in data if key.startswith("_") or key in ("path", "task", "seed")]
        data = {key: data[key] for key in data if key not in dropped}
        problem = (
            EpisodeTable(rows_of(table), task, seed, **data)
            if file is None
            else OwnSequence(file, seed, **data)
        )
        run = build(config, problem)
        surrogate = learnt(run)
        assert isinstance(surrogate, EpisodeSurrogate)
        later = {key: value for key, value in settings.items() if key.partition(".")[0] in LOOKING}
        changes = (file.problem.changes if file is not None else None) or CHANGES
        roles, node = problem.roles, run.config["surrogate"]
        amounts = {action.name: problem.largest[action.name] for action in roles.actions if not action.levels}
        reading = EpisodeReading(roles, problem.length, problem.first, problem.keep_last, amounts)
        return EpisodeModel(surrogate, reading, method, seed, later, node, changes, problem)
