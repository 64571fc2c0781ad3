"""Asking and telling: causal Bayesian optimisation of experiments that are run elsewhere.

    optimiser = CausalOptimiser(task, file="trials.json")
    (action,) = optimiser.ask()
    optimiser.tell(action, {"X": 0.3, "Y": 1.2})

Every experiment is a trial with a number and a state: pending, completed, failed or abandoned. `ask` answers
from the trials, the seed and the task; nothing else is remembered, so that a file that another session wrote
goes on as if there had been no break, pending trials included. The first actions are points of a Sobol
sequence; it goes on until the completed trials are enough to fit a model. From then on each ask fits the
model afresh and looks for the action that is worth most to try.

Several actions are asked for one after the other: each pending action is believed to come out at its
posterior mean, which removes what is not known of the laws near it, and the next one is looked for under that
belief; so is each failed one, which nobody wants to repeat. Hyper-parameters stay as they are meanwhile.
Settings that are pending or failed are never asked again.

Every call happens as a whole or not at all: what raises an error has changed nothing, in memory and in the
file.

Source: Ren et al. (2025), Alg. 1; pending points at their posterior mean: Ginsbourger et al. (2010) ("kriging
believer").
"""

import gzip
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.reading import table_file
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.file import read_campaign, write_campaign
from rehearsal_torch.data.trials.log import Reference, TrialLog
from rehearsal_torch.data.trials.store import TrialStore
from rehearsal_torch.data.trials.trial import Suggestion, Trial, TrialWarning, finite
from rehearsal_torch.files.schema import shown
from rehearsal_torch.files.writing import write_bytes
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.problems.causal.own_experiments import SET, causal_task, experiments_of
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import recommend
from rehearsal_torch.search.trials.pending import impute_pending
from rehearsal_torch.search.trials.proposal import (
    another_action,
    check_settable,
    designed_action,
    lacking_for_model,
)
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.training.fit import fit
from rehearsal_torch.verbs.trial_method import METHOD, MakesModel, MakesObjective, trial_method

Action = dict[str, float]
EXPERIMENTS = "these experiments"
# Actions that can be asked for at once: more would take minutes, and nobody runs so many at a time.
MAX_SUGGESTIONS = 1000


class CausalOptimiser:
    """Suggests experiments and learns from them.

    Args:
        task: Who follows from whom, what may be set, what is wanted; plain data, a YAML file or a CausalTask.
            None for that of `file`.
        surrogate: Makes an unfitted causal model of a task; None for that of `method`.
        objective: Makes the objective of (model, situation); None for that of `method`.
        search: Finds the action; None for that of `method`.
        initial: Experiments before the first model; None for that of `file`, or 2 (k + 1) with k actions.
        seed: Decides the first actions; None for that of `file`, or 0.
        file: Where the trials are kept: each call reads what other sessions added, and has written its own
            before it returns. A file that exists is gone on with; `task`, where it is given as well, takes
            the place of the file's, and the trials stay as they are.
        method: The name of a file in ``conf/decision``, such as "excbo", "ucb" or "mcbo": the surrogate,
            objective and search where none are given. `seed` is also the search's.

    Raises:
        ValueError: if the task cannot be used (a cyclic graph, an unknown name, ...), `initial` is below 5,
            or `method` is none for trials.
        TrialFileError: if the file cannot be read or written, or was begun with another seed or start design.
    """

    def __init__(
        self,
        task: CausalTask | Mapping[str, Any] | str | Path | None = None,
        surrogate: MakesModel | None = None,
        objective: MakesObjective | None = None,
        search: Search[Any] | None = None,
        initial: int | None = None,
        seed: int | None = None,
        file: str | Path | None = None,
        *,
        method: str = METHOD,
    ) -> None:
        makes_model, makes_objective, makes_search = trial_method(method)
        task = causal_task(task) if isinstance(task, str | Path) else task
        self._store = TrialStore(task, seed, initial, file)
        self.task, self.seed, self.initial = self._store.task, self._store.seed, self._store.initial
        self.surrogate: MakesModel = makes_model if surrogate is None else surrogate
        self.objective: MakesObjective = makes_objective if objective is None else objective
        self.search: Search[Any] = makes_search(self.seed) if search is None else search

    @classmethod
    def load(
        cls,
        file: str | Path,
        task: CausalTask | Mapping[str, Any] | str | Path | None = None,
        surrogate: MakesModel | None = None,
        objective: MakesObjective | None = None,
        search: Search[Any] | None = None,
        *,
        method: str = METHOD,
    ) -> "CausalOptimiser":
        """Goes on with a file of trials, and keeps writing to it.

        Args:
            file: The file.
            task: Takes the place of the file's, such as one with narrower bounds; None for the file's own.
            surrogate: As for the optimiser; the file does not hold it.
            objective: As for the optimiser; the file does not hold it.
            search: As for the optimiser; the file does not hold it.
            method: As for the optimiser; the file does not hold it.

        Raises:
            TrialFileError: if there is no such file, or it cannot be read.
            ValueError: if the task cannot be used.
        """
        read_campaign(file)
        return cls(task, surrogate, objective, search, file=file, method=method)

    def save(self, file: str | Path) -> None:
        """Writes a copy of the trials to a file that `load` goes on with.

        Raises:
            TrialFileError: if it cannot be written.
        """
        write_campaign(file, self._store.campaign(self._store.fresh()))

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order of their numbers, those that other sessions wrote included."""
        return self._store.fresh().trials

    @property
    def table(self) -> Table:
        """All completed experiments, actions first, in the order of their trials."""
        return self._store.fresh().table

    @property
    def pending(self) -> list[Suggestion]:
        """Actions that were asked for, and nothing reported of them yet."""
        return [Suggestion(trial) for trial in self._store.fresh().those("pending")]

    def ask(self, count: int = 1) -> list[Suggestion]:
        """The next actions to try, each a dictionary, name to value, with the number of its trial
        (``.trial``).

        Args:
            count: q, how many; they are pending until they are told, failed or abandoned.

        Raises:
            ValueError: if count is below 1 or above 1,000, or nothing can be learnt from what was told (a
                constant node, say).
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"expected to be asked for at least 1 action; got {count!r}")
        if count > MAX_SUGGESTIONS:
            raise ValueError(
                f"expected to be asked for at most {MAX_SUGGESTIONS} actions at once; got {shown(count)}: "
                "report some "
                "of them, and ask again"
            )
        with self._store.changing() as log:
            model, made = None, list[Suggestion]()
            lacking, short = lacking_for_model(log.table, self.task.nodes), len(log.table) < self.initial
            for _ in range(count):
                if (
                    len(log.those("completed", "pending")) < self.initial
                    or lacking == "rows"
                    or (lacking and short)
                ):
                    action = designed_action(self.task, log, self.initial, self.seed)
                elif model is None:
                    model = self._believing(log)
                    action = self._searched(model, log)
                else:
                    impute_pending(model, self.task, log)
                    action = self._searched(model, log)
                log, suggestion = log.ask(action)
                made.append(suggestion)
            self._store.keep(log)
        return made

    def tell(
        self,
        action: Reference | None,
        nodes: Mapping[str, float],
        altered: Collection[str] = (),
        ran: Mapping[str, float] | None = None,
    ) -> Trial:
        """Adds an experiment, or corrects one that was told before (by its number).

        Settings find the pending trial that asked for exactly these. Others are a trial of their own, which
        nobody asked for: no trial is guessed.

        Args:
            action: What was set: what `ask` returned, a trial's number, a trial, or name to value; None where
                nobody asked and `ran` says what was set.
            nodes: What came out, for every node that can reach the reward; others are not read.
            altered: Nodes that were set by hand as well (hard interventions): the experiment says nothing of
                how they come about.
            ran: What was really set, where it differs from what was asked; it may lie outside bounds and
                limits.

        Returns:
            The trial as it is recorded.

        Raises:
            TrialError: if a value is missing or no finite number, a name or number is unknown, or an action
                of no trial lies outside its bounds or limits; all faults are named, and nothing has changed.
        """
        with self._store.changing() as log:
            log, trial, notes = log.complete(action, nodes, altered, ran)
            self._store.keep(log)
        for note in notes:
            warnings.warn(note, TrialWarning, stacklevel=2)
        return trial

    def fail(
        self,
        action: Reference,
        reason: str = "",
        nodes: Mapping[str, float] | None = None,
        ran: Mapping[str, float] | None = None,
    ) -> Trial:
        """Reports that an experiment gave no usable measurement; its settings are not asked again.

        Args:
            action: Which, as for `tell`.
            reason: Why, for those who read the file.
            nodes: What was measured all the same; it is kept in the file, and not learnt from.
            ran: What was really set, where it differs from what was asked.

        Raises:
            TrialError: if there is no such trial, or a value is no finite number.
        """
        with self._store.changing() as log:
            log, trial = log.fail(action, reason, nodes, ran)
            self._store.keep(log)
        return trial

    def abandon(self, action: Reference, reason: str = "") -> Trial:
        """Gives up one trial: a pending one that will not be run, or one that shall not count. Its settings
        may be asked again.

        Raises:
            TrialError: if there is no such trial.
        """
        with self._store.changing() as log:
            log, trial = log.abandon(action, reason)
            self._store.keep(log)
        return trial

    def forget(self) -> None:
        """Gives up all pending actions: they will not be tried."""
        with self._store.changing() as log:
            for trial in log.those("pending"):
                log, _ = log.abandon(trial)
            self._store.keep(log)

    def model(self) -> CausalModel:
        """The model of what was told so far, fitted afresh.

        Raises:
            ValueError: if nothing can be learnt from it.
        """
        return self._fitted(self._store.fresh())

    def recommend(self) -> tuple[Action, float]:
        """The action with the largest posterior mean of the reward, and that mean.

        Raises:
            ValueError: if nothing can be learnt from what was told.
        """
        log = self._store.fresh()
        model = self._fitted(log)
        with in_numbers(EXPERIMENTS):
            found = recommend(PosteriorMean(model, self._case(log), seed=self.seed), self.seed)
        check_settable(self.task, found.action, "recommended")
        if finite(found.predicted) is None:
            raise ValueError(
                f"nothing is recommended: its expected reward is {found.predicted}; are there values of very "
                "different size in the table?"
            )
        return dict(zip(self.task.actions, found.action.tolist(), strict=True)), found.predicted

    def read(self, path: str | Path) -> None:
        """Takes up experiments of a comma-separated file, any number; the columns are actions, nodes, and
        ``set:NODE`` marks.

        A row that has the settings of a pending trial completes it; the others are trials that nobody asked
        for. Rows that are completed trials already, to the last bit, are left out with a warning: the same
        file read twice adds nothing.

        Raises:
            TableError: if the file cannot be read, or a column is missing, no number or incomplete.
        """
        table = experiments_of(table_file(path), self.task, str(path))
        outside = self.task.outside(table)
        with self._store.changing() as log:
            log, left_out = log.complete_rows(table)
            self._store.keep(log)
        if left_out:
            warnings.warn(
                f"{path}: {left_out} of {len(table)} rows are completed trials already, and are not counted "
                "twice",
                TrialWarning,
                stacklevel=2,
            )
        if outside:
            more = f" (and {len(outside) - 3} more)" if len(outside) > 3 else ""
            warnings.warn(
                f"{path}: {'; '.join(outside[:3])}{more}: kept as history, and nothing will be asked for "
                "there",
                TrialWarning,
                stacklevel=2,
            )

    def write(self, path: str | Path) -> None:
        """Writes the completed experiments to a comma-separated file (.csv or .csv.gz) that `read` takes up
        again without loss.
        """
        table = self._store.fresh().table
        frame = pd.DataFrame(table.values.numpy(), columns=list(table.names))
        for place, name in enumerate(table.names):
            if name in self.task.nodes and bool(table.altered[:, place].any()):
                frame[f"{SET}{name}"] = table.altered[:, place].int().numpy()
        content = frame.to_csv(index=False, float_format="%.17g").encode()
        write_bytes(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)

    def _fitted(self, log: TrialLog) -> CausalModel:
        self.task.check(log.table)
        with in_numbers(EXPERIMENTS):
            return fit(self.surrogate(self.task), log.table)

    def _case(self, log: TrialLog) -> RehearsalCase:
        """The round's identity is the number of experiments, completed, pending or failed."""
        return RehearsalCase(
            str(len(log.those("completed", "pending", "failed"))), {}, self.task.box.bounds()
        )

    def _searched(self, model: CausalModel, log: TrialLog) -> Tensor:
        """What the search finds; where that is pending or has failed, the best of many spread points that is
        neither.
        """
        objective = self.objective(model, self._case(log))
        with in_numbers(EXPERIMENTS):
            decision = self.search(objective)
        if decision.alteration is None:
            raise ValueError(
                "the search found no action to try: "
                f"{decision.reason or type(self.search).__name__ + ' gave no reason'}"
            )
        found = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
        missing = [name for name in self.task.actions if name not in found]
        if missing:
            raise ValueError(
                f"the search left {missing} open: expected a value for each of {list(self.task.actions)}; "
                f"got {found}"
            )
        action = torch.tensor([found[name] for name in self.task.actions], dtype=torch.float64)
        check_settable(self.task, action, "proposed")
        return (
            another_action(objective, log, self.seed)
            if bool(log.taken(action, "pending", "failed"))
            else action
        )

    def _believing(self, log: TrialLog) -> CausalModel:
        """The model, pending and failed actions taken for experiments that came out as expected."""
        model = self._fitted(log)
        if log.those("pending", "failed"):
            impute_pending(model, self.task, log)
        return model
