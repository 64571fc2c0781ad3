"""Causal Bayesian optimisation of experiments that are run elsewhere, through an ask/tell interface.

    optimiser = CausalOptimiser(task, file="trials.json")
    (action,) = optimiser.ask()
    optimiser.tell(action, {"X": 0.3, "Y": 1.2})

Every experiment is a trial with a number and a state (`data.trials.trial`). The result of
`ask` depends on the trials, the seed and the task alone, so that a file written by another process is
continued as if there had been no interruption, pending trials included. The first actions are points of a
Sobol sequence, until the completed trials are enough to fit a model. From then on each `ask` maximises the
acquisition function under a model of all completed trials. It is fitted once: `ask`, `recommend` and `model`
share the fit until another trial is completed.

A batch of actions is selected sequentially: the outcome of each pending action is imputed by its posterior
mean, which removes the epistemic uncertainty of the mechanisms near it, and the next action is selected under
that model; failed actions are imputed likewise, so that they are not repeated. Hyper-parameters are kept
fixed meanwhile. Some objectives take pending actions instead (`search.trials.proposal`). Pending or failed
settings are never suggested again.

Every call is atomic: a call that raises an error has changed nothing, neither in memory nor in the file.

Source: Ren et al. (2025), Alg. 1; Ginsbourger et al. (2010) (pending points at their mean).
"""

import gzip
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, overload

import numpy as np
import pandas as pd
from narwhals.typing import IntoDataFrame
from torch import Tensor

from rehearsal_torch.api.trial_method import ObjectiveFactory, SurrogateFactory, trials_of
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.outcome_constraint import INFEASIBLE
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import SET, data_frame, in_library
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.data.trials.recommendation_history import FollowedUp, PastRecommendation
from rehearsal_torch.data.trials.trial import (
    Recommended,
    Settings,
    State,
    Suggestion,
    Trial,
    TrialWarning,
    finite,
)
from rehearsal_torch.data.trials.trial_log import Reference, TrialLog
from rehearsal_torch.data.trials.trial_store import TrialStore, read_campaign, write_campaign
from rehearsal_torch.data.trials.typed_settings import outside_bounds
from rehearsal_torch.files.atomic_write import write_bytes
from rehearsal_torch.files.schema import shown
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.problems.trials.numbered_rows import TRIAL, beside, lines_of, not_read, numbered_rows
from rehearsal_torch.problems.trials.user_experiments import STATE, backdated, experiments_of, read_rows
from rehearsal_torch.reporting.trial_view import TrialView
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import recommend, sureness
from rehearsal_torch.search.trials.campaign_advice import (
    SHARE,
    AtBound,
    LeftOut,
    Stopping,
    at_bounds,
    left_out,
    stopping,
)
from rehearsal_torch.search.trials.finishing import Finishing, finishing
from rehearsal_torch.search.trials.front import front
from rehearsal_torch.search.trials.proposal import (
    NothingLeftError,
    as_measured,
    aware_of_pending,
    check_settable,
    designed_action,
    searched_action,
)
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import KeptFit

# Fixed actions, or a context, by name; several contexts.
Given = Settings | None
Contexts = Sequence[Settings] | IntoDataFrame
# Fixed actions and the context, each with its value as its only level.
Held = Mapping[str, tuple[float, ...]]
EXPERIMENTS = "these experiments"
# The maximum number of actions per `ask`: more would take minutes, and are never run at a time.
MAX_SUGGESTIONS = 1000
FAR = 0.5  # The share of the range of a context by which it lies beyond, before that is said.


class CausalOptimiser(TrialView):
    """Suggests experiments and learns from them; `plot()` draws them. A ValueError if task, method or
    `initial` cannot be used, a TrialFileError for another campaign's file.

    Args:
        task: Graph, actions and reward: plain data, a YAML file or a CausalTask; or a problem file with
            ``question: trials``, whose experiments are read unless `file` holds trials, and whose fixed
            actions are held. None takes that of `file`.
        surrogate: Returns an unfitted causal model for a task; None takes that of `method`.
        objective: Returns the objective for (model, case); None takes that of `method`.
        search: Finds the action; None takes that of `method`.
        initial: Experiments before the first model, of settable nodes those that set one; None takes that of
            `file`, or 2 (k + 1) with k actions.
        seed: Determines the first actions; None takes that of `file`, or 0.
        file: Where the trials are stored, shared with other processes. An existing file is continued; a
            `task` replaces its task, and the trials stay.
        method: A file in ``conf/decision`` ("excbo", "ucb", "mcbo", ...) for what is not given.
        trainer: Trains a surrogate that needs gradients, such as ``ExogenousModel(fitting="train")``.
        tolerance: How far told settings may lie from a pending trial's: a share of each range, or action to a
            distance in its unit; None for the problem file's, or half a unit of their last digit.
    """

    def __init__(
        self,
        task: CausalTask | Mapping[str, Any] | str | Path | None = None,
        surrogate: SurrogateFactory | None = None,
        objective: ObjectiveFactory | None = None,
        search: Search[Any] | None = None,
        initial: int | None = None,
        seed: int | None = None,
        file: str | Path | None = None,
        *,
        method: str | None = None,
        trainer: Descent | None = None,
        tolerance: float | Mapping[str, float] | None = None,
    ) -> None:
        task, problem, (make_surrogate, make_objective, make_search) = trials_of(task, method)
        if tolerance is None and problem is not None:
            tolerance = problem.tolerance
        if problem is not None and file is not None and TRIAL in problem.task.graph.names:
            raise ValueError(f"{TRIAL} is the number of an experiment: give this variable another name")
        self._store = TrialStore(task, seed, initial, file, tolerance)
        self.fixed, self.context, self.units = dict[str, Any](), dict[str, Any](), dict[str, str]()
        self._table = ReadTable(pd.DataFrame(), EXPERIMENTS)
        if problem is not None:
            self.fixed, self.context, self._table = dict(problem.fixed), dict(problem.context), problem.rows
            self.units = {name: variable.unit or "" for name, variable in problem.variables.items()}
            with self._store.locked_log() as log:
                # Later, what was corrected or withdrawn would come back from the table.
                if not log.trials:
                    self._store.keep(log.take(*experiments_of(problem.rows, problem.task))[0])
        self.task, self.seed, self.initial = self._store.task, self._store.seed, self._store.initial
        self.surrogate: SurrogateFactory = make_surrogate if surrogate is None else surrogate
        self.objective: ObjectiveFactory = make_objective if objective is None else objective
        self.search: Search[Any] = make_search(self.seed) if search is None else search
        self._fit: KeptFit[CausalModel] = KeptFit(trainer)
        self._last_best: tuple[Any, Any] = None, None

    def with_unit(self, name: str) -> str:
        """A variable with its unit in the problem file."""
        return f"{name} ({unit})" if (unit := self.units.get(name)) else name

    @classmethod
    def load(
        cls,
        file: str | Path,
        task: CausalTask | Mapping[str, Any] | str | Path | None = None,
        surrogate: SurrogateFactory | None = None,
        objective: ObjectiveFactory | None = None,
        search: Search[Any] | None = None,
        *,
        method: str | None = None,
        trainer: Descent | None = None,
        tolerance: float | Mapping[str, float] | None = None,
    ) -> "CausalOptimiser":
        """Continues a file of trials, with a `task` in place of its own; TrialFileError without one."""
        read_campaign(file)
        parts = task, surrogate, objective, search
        return cls(*parts, file=file, method=method, trainer=trainer, tolerance=tolerance)

    def save(self, file: str | Path) -> None:
        """Writes a copy of the trials to a file that `load` can continue."""
        write_campaign(file, self._store.campaign(self._store.fresh()))

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number, including those written by other processes."""
        return self._store.fresh().trials

    @property
    def table(self) -> Table:
        """All completed experiments, actions first, in the order of their trials."""
        return self._store.fresh().table

    @property
    def pending(self) -> list[Suggestion]:
        """Suggested actions without a report."""
        return [Suggestion(trial) for trial in self._store.fresh().in_states("pending")]

    def ask(self, count: int = 1, fixed: Given = None, context: Given = None) -> list[Suggestion]:
        """The next `count` actions to try, each name to value with the number of its trial (``.trial``),
        which is then pending; `fixed` holds actions at a value, and a `context` of the task needs all of its
        values; None stands for those of the problem file. The start design goes on until a model can be
        fitted. Fewer, with a warning, if no more are left, and with one while no setting is known to keep the
        constraints, which then comes first; a ValueError for counts below 1 or above 1,000, infeasible fixed
        values, another context than the task's, or if nothing is left to try.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            expected = "at least 1 action" if isinstance(count, int) else "a whole number of actions"
            raise ValueError(f"count: expected {expected}; got {count!r}")
        if count > MAX_SUGGESTIONS:
            expected = f"count: expected at most {MAX_SUGGESTIONS} actions at once; got {shown(count)}"
            raise ValueError(f"{expected}: report some of them, and ask again")
        levels = self._held(fixed, context)
        # A task that the method cannot learn is refused before the first experiment.
        self.surrogate(self.task)
        with self._store.locked_log() as log:
            model, suggestions = None, list[Suggestion]()
            missing, notes = self.task.lacking(log.table.records()), dict[str, None]()
            for _ in range(count):
                try:
                    if missing or self._designed(log) < self.initial:
                        action = designed_action(self.task, log, self.initial, self.seed, levels)
                    else:
                        model = self._fitted(log) if model is None else model
                        action, feasible = self._best_action(model, log, levels)
                        notes |= {} if feasible else {INFEASIBLE: None}
                except NothingLeftError as error:
                    if not suggestions:
                        raise
                    notes[f"{len(suggestions)} of {count} experiments are proposed, since {error}"] = None
                    break
                log, suggestion = log.ask(action)
                suggestions.append(suggestion)
            self._store.keep(log)
        for note in notes:
            warnings.warn(note, TrialWarning, stacklevel=2)
        return suggestions

    def tell(
        self,
        action: Reference | None,
        nodes: Mapping[str, float | None],
        altered: Collection[str] = (),
        ran: Given = None,
    ) -> Trial:
        """Records the result of an experiment, or corrects a recorded one (by its number).

        Settings are those of the nearest pending trial within `tolerance`, or else a trial of their own.

        Args:
            action: A suggestion, a trial, its number, or name to value; None, with `ran`, for others.
            nodes: The measured value of every modelled node (`CausalTask.nodes`), None or NaN for one beside
                the reward's that was not measured, and of the context where it was not as asked; others are
                ignored.
            altered: Nodes that hard interventions also set: their mechanisms are not fitted to this.
            ran: The settings actually used, if others; bounds and limits do not apply.

        Raises:
            TrialError: lists missing and non-finite values, unknown names, and actions beyond bounds.
        """
        with self._store.locked_log() as log:
            log, trial, notes = log.complete(action, nodes, altered, ran)
            self._store.keep(log)
        for note in notes:
            warnings.warn(note, TrialWarning, stacklevel=2)
        return trial

    def fail(
        self, action: Reference, reason: str = "", nodes: Mapping[str, float] | None = None, ran: Given = None
    ) -> Trial:
        """Records that an experiment gave no usable measurement, with arguments as of `tell`; its settings
        are not suggested again. Measured `nodes` and the `reason` are kept in the file, and not fitted. A
        TrialError if there is no such trial, or a value is not a finite number.
        """
        return self._report(action, "failed", reason, nodes, ran)

    def observe(
        self, action: Reference, nodes: Mapping[str, float], ran: Mapping[str, float] | None = None
    ) -> Trial:
        """Records what was measured so far of a pending trial, from which is learnt; `tell` then needs the
        other nodes alone. Errors as of `fail`.
        """
        return self._report(action, "pending", "", nodes, ran)

    def stop(self, action: Reference, reason: str = "", nodes: Mapping[str, float] | None = None) -> Trial:
        """Records that an experiment was ended after some of its nodes were measured, from which is learnt;
        its settings may be suggested again. Errors as of `fail`.
        """
        return self._report(action, "stopped", reason, nodes, None)

    def _report(self, action: Reference, state: State, reason: str, nodes: Given, ran: Given) -> Trial:
        with self._store.locked_log() as log:
            log, trial = log.fail(action, reason, nodes, ran, state)
            self._store.keep(log)
        return trial

    def finishing(self, action: Reference, rest: float) -> Finishing:
        """Whether to finish a pending trial of which some nodes were measured, and why, where the share
        `rest` of the cost of an experiment is still to come. A ValueError for another share than one between
        0 and 1, or for constraints, settable nodes or two rewards; a TrialError if nothing was measured.
        """
        if not 0 < (finite(rest) or 0) < 1:
            raise ValueError(f"rest: expected a share of an experiment's cost, between 0 and 1; got {rest!r}")
        unknown = {
            "constraints on nodes": bool(self.task.constraints),
            "nodes that may be set": bool(self.task.settable),
            "two rewards": bool(self.task.reward.labels),
        }
        if what := [name for name, present in unknown.items() if present]:
            raise ValueError(f"what the rest teaches of {what[0]} is not known: leave rest out")
        log = self._store.fresh()
        stopped, trial = log.running(action)
        if self.task.lacking(log.table.records()):
            return Finishing("no_model", trial.id, rest)
        row = dict(zip(self.task.settings, self.task.row(trial.settings), strict=True))
        levels = {name: (row[name],) for name in self.task.context}
        objective, best = self._best_known(log, levels)
        proposed, _ = self._best_action(self._fitted(log), stopped, levels)
        settings = proposed.new_tensor(list(row.values()))
        with in_numbers(EXPERIMENTS):
            return finishing(objective, best, trial.id, settings, trial.nodes, proposed, rest)

    def abandon(self, action: Reference, reason: str = "") -> Trial:
        """Abandons a pending or completed trial; its settings may be suggested again."""
        with self._store.locked_log() as log:
            log, trial = log.abandon(action, reason)
            self._store.keep(log)
        return trial

    def forget(self) -> None:
        """Abandons all pending trials."""
        with self._store.locked_log() as log:
            for trial in log.in_states("pending"):
                log, _ = log.abandon(trial)
            self._store.keep(log)

    def model(self) -> NetworkModel:
        """A copy of the model of the completed trials, for BoTorch; its ``surrogate`` is the causal model."""
        log = self._store.fresh()
        return NetworkModel(self._fitted(log), seed=self.seed, table=log.table)

    @overload
    def recommend(self, fixed: Given = None, context: Given = None) -> Recommended: ...

    @overload
    def recommend(self, fixed: Given = None, *, context: Contexts) -> list[Recommended]: ...

    def recommend(self, fixed: Given = None, context: Any = None) -> Any:
        """The best action and its expected reward, with their uncertainty and the next tried action
        (`Recommended`); recorded unless actions are `fixed`, as of `ask`. In a `context` all of this holds
        there: tried actions are compared by what they would bring in it. Of several, a list or the rows of a
        data frame, it is a list; of two rewards, a list of the settings of which none is better in both. A
        ValueError if one may not be, or there is no model.
        """
        log, several = self._store.fresh(), not isinstance(context, Mapping | pd.Series | None)
        if several and not isinstance(context, Sequence):
            context = data_frame(context, "context").to_dict("records")
        held = [self._held(fixed, values) for values in (context if several else [context])]
        if self.task.reward.labels:
            fronts = [deepcopy(self._best_known(log, levels, front)[1]) for levels in held]
            return fronts if several else fronts[0]
        recommended = [self._recommended(log, levels, fixed is None) for levels in held]
        return recommended if several else recommended[0]

    def _recommended(self, log: TrialLog, levels: Held, recorded: bool) -> Recommended:
        objective, best = self._best_known(log, levels)
        check_settable(self.task, best.action, "recommended")
        if finite(best.predicted) is None:
            fault = f"nothing is recommended: its expected reward is {best.predicted}"
            raise ValueError(f"{fault}; are there values of very different size in the table?")
        with in_numbers(EXPERIMENTS):
            sure = sureness(objective, best)
        width = len(self.task.actions)
        action = self.task.shown(self.task.named(best.action[:width]))
        runner_up: dict[str, Any] = {}
        if sure.runner_up is not None:
            settings = self.task.named(sure.runner_up[:width])
            runner_up = {
                "runner_up": self.task.shown(settings),
                "runner_up_predicted": sure.runner_up_predicted,
                "chance": sure.chance,
            }
        context = self.task.shown({name: levels[name][0] for name in self.task.context})
        nearly: dict[str, Any] = dict(sure.margins)
        for name in nearly.keys() & self.task.coded.keys():
            nearly[name] = tuple(self.task.coded[name].levels[int(place)] for place in nearly[name])
        if recorded:
            claim: dict[str, Any] = {"predicted": best.predicted, "std": finite(sure.std) or 0.0}
            claim |= {"action": {**action, **context}, "reward": self._store.campaign(log).task["reward"]}
            past = PastRecommendation(after=len(log.table), **claim)
            with self._store.locked_log() as log:
                if past not in log.recommended[-1:]:
                    self._store.keep(replace(log, recommended=(*log.recommended, past)))
        return Recommended(
            action,
            best.predicted,
            sure.std,
            tried=sure.tried,
            contradicted=objective.surrogate.contradicted(),
            context=context,
            constraints=best.constraints,
            nearly=nearly,
            loss=sure.tolerance,
            **runner_up,
        )

    def stopping(self, worth: float | None = None, context: Given = None) -> Stopping:
        """Whether to stop, and why: what a better setting could gain over the recommended one, beside what is
        `worth` further experiments, in the reward's unit; None for 2 % of the range of the rewards so far.
        """
        if worth is not None and not (finite(worth) or 0) > 0:
            raise ValueError(f"worth: expected a gain above 0, in the reward's unit; got {worth!r}")
        log = self._store.fresh()
        if lacking := self.task.lacking(log.table.records()):
            return Stopping("no_model", lacking=lacking)
        rewards = self.task.reward_of(log.table)
        tolerance = SHARE * float(rewards.max() - rewards.min()) if worth is None else float(worth)
        objective, best = self._best_known(log, self._held(None, context))
        with in_numbers(EXPERIMENTS):
            return stopping(objective, best, tolerance, self.seed)

    @property
    def at_bounds(self) -> tuple[AtBound, ...]:
        """Bounds that may be too tight: the last recommendation or most of the last proposals lie on them."""
        return at_bounds(self._store.fresh(), self.initial)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The reward of each completed trial as predicted by the others; a ValueError if they are too few."""
        log = self._store.fresh()
        model = self._fitted(log)
        with in_numbers(EXPERIMENTS):
            return left_out(model, log, self.seed)

    def cost(self, settings: Settings) -> float:
        """What an experiment costs (`data.costs.ExperimentCosts`); 0 where the task has no costs."""
        row = dict(zip(self.task.settings, self.task.row(settings), strict=True))
        values = np.array([row[name] for name in self.task.required])
        return 0.0 if self.task.costs is None else float(self.task.costs.of(values))

    @property
    def spent(self) -> float:
        """What the experiments cost that were run, also those that failed or were stopped."""
        run = self._store.fresh().in_states("completed", "failed", "stopped")
        return sum(self.cost(trial.settings) for trial in run)

    @property
    def recommendations(self) -> tuple[FollowedUp, ...]:
        """All recommendations so far, and the experiments at their settings."""
        log, rewards, past = self._store.fresh(), self._reward_of_trial(), list[FollowedUp]()
        comparable = None, self._store.campaign(log).task["reward"]
        for entry in log.recommended:
            numbers = tuple(trial.id for trial in log.tried_at(entry.action))
            rewarded = [rewards[number] for number in numbers if entry.reward in comparable]
            past.append(FollowedUp(entry, numbers, fmean(rewarded) if rewarded else None))
        return tuple(past)

    def read(self, path: str | Path | IntoDataFrame | ReadTable) -> tuple[Trial, ...]:
        """Adds the experiments of a comma-separated file or a data frame, one per row, and returns the trials
        that are new or changed; the columns are actions, nodes, ``set:NODE`` indicators, ``state`` and
        ``reason`` (`problems.trials.user_experiments`), and ``trial`` (`problems.trials.numbered_rows`).

        A row that names a trial reports or corrects it. Another one with the settings of a
        pending trial, up to `tolerance`, is this trial; others become trials that were not suggested. Rows
        equal to recorded trials, to the last bit, are left out with a warning: reading the same file twice
        adds nothing. A row with its actions, and without a value of what the reward reads, is a pending trial
        unless its state says otherwise. A TableError if the file cannot be read, a column is missing, not
        numeric or incomplete, or a state or number is unknown.
        """
        whole = read_rows(path)
        source = path if isinstance(path, str | Path) else whole.where
        with self._store.locked_log() as before:
            numbered, table = numbered_rows(whole, self.task, before)
            table = backdated(replace(table, notes=()), self.task)
            rows, other_rows = experiments_of(table, self.task)
            named = {f"trial {trial.id}": self.task.row(trial.settings) for trial in numbered}
            unnamed = {f"row {index}": row for index, row in enumerate(self.task.settings_of(rows))}
            outside = outside_bounds(self.task, named | unnamed)
            log, same = before.revise(numbered)
            log, repeated, notes = log.take(rows, other_rows)
            self._store.keep(log)
            self._table = self._table if numbered else whole
        known = {trial.id: trial for trial in before.trials}
        changed = tuple(trial for trial in log.trials if known.get(trial.id) != trial)
        repeated += same
        for note in (*not_read(whole.frame, self.task), *table.notes, *notes):
            warnings.warn(f"{source}: {note}", TrialWarning, stacklevel=2)
        if repeated:
            note = f"{repeated} of {len(rows) + len(numbered)} rows equal trials that are recorded already"
            new = [t for t in changed if t.id not in known and len(before.table)]
            again = ", ".join(str(t.id) for t in new if before.tried_at(t.settings))
            more = f"; trial {again} has the settings of one: correct results by number" if again else ""
            warnings.warn(f"{source}: {note}, and are not added again{more}", TrialWarning, stacklevel=2)
        if outside:
            omitted = f" (and {len(outside) - 3} more)" if len(outside) > 3 else ""
            note = f"{'; '.join(outside[:3])}{omitted}: kept as observations, but no action will be suggested"
            warnings.warn(f"{source}: {note} there", TrialWarning, stacklevel=2)
        return changed

    def to_frame(self, library: str = "pandas") -> Any:
        """The completed experiments as a data frame that `read` reads without loss."""
        frame = self._store.fresh().table.to_frame()
        for name, coding in self.task.coded.items():
            frame[name] = [coding.levels[int(place)] if place == place else None for place in frame[name]]
        marks = [f"{SET}{name}" for name in self.task.required]
        return in_library(frame.drop(columns=marks, errors="ignore"), library)

    def write(self, path: str | Path) -> None:
        """Writes all trials to a .csv or .csv.gz that `read` reads without loss, among the other columns of
        the last table that was read, and in its order. The column ``state`` is left out if all are completed;
        if the graph has such a name, those that failed or ended early are.
        """
        log, frame, free = self._store.fresh(), self.to_frame(), STATE not in self.task.graph.names
        trials = log.in_states("pending", *(("failed", "stopped", "abandoned") if free else ()))
        frame.index = pd.Index([trial.id for trial in log.in_states("completed")])
        rows = {t.id: {**t.settings, **t.nodes, **({STATE: t.state} if free else {})} for t in trials}
        for trial in trials:
            rows[trial.id] |= {f"{SET}{n}": float(n in trial.settings) for n in self.task.settable}
        if rows:
            frame = frame.assign(**{STATE: "completed"} if free else {})
            frame = pd.concat([frame, pd.DataFrame.from_dict(rows, orient="index")])
        text = beside(frame, self._table, self.lines).to_csv(index=False)
        content = text.encode("utf-8" if text.isascii() else "utf-8-sig")
        write_bytes(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)

    @property
    def lines(self) -> dict[int, int]:
        """The lines of the last table that was read, by the numbers of their trials."""
        return lines_of(self._table, self.task, self._store.fresh().trials)

    def _fitted(self, log: TrialLog) -> CausalModel:
        self.task.check(log.table)
        with in_numbers(EXPERIMENTS):
            return self._fit(self.surrogate, self.task, log.learnt)

    def _designed(self, log: TrialLog) -> int:
        """The number of experiments of the start design: of settable nodes, those that set one."""
        trials, settable = log.in_states("completed", "pending"), set(self.task.settable)
        return sum(not settable or not settable.isdisjoint(trial.settings) for trial in trials)

    def _held(self, fixed: Given = None, context: Given = None) -> Held:
        """Actions and context that are held, by default as the problem file says; warns of a far context."""
        held = self.task.held(
            self.fixed if fixed is None else fixed, self.context if context is None else context
        )
        table = self._store.fresh().table
        for name in () if self.task.lacking(table.records()) else self.task.context:
            seen = table.columns((name,))
            seen = seen[seen.isfinite()]
            low, high = map(float, seen.aminmax() if len(seen) else (math.nan, math.nan))
            slack, value = FAR * (high - low) + 1e-6 * abs(high), held.get(name, (math.nan,))[0]
            if name not in self.task.coded and not low - slack <= value <= high + slack:
                note = f"{name} was {low:.6g} to {high:.6g} in experiments: at {value:.6g} claims are guesses"
                warnings.warn(note, TrialWarning, stacklevel=3)
        return held

    def _best_known(self, log: TrialLog, levels: Held, find: Any = None) -> tuple[PosteriorMean, Any]:
        """What `find` (by default `recommend`) finds, and its objective. The last one is kept until trials or
        what is held change.
        """
        model = self._fitted(log)
        with in_numbers(EXPERIMENTS):
            objective = PosteriorMean(model, as_measured(self._case(log, levels), log), seed=self.seed)
            key = find is None, self.surrogate, self.seed, log.trials, levels
            if self._last_best[0] != key:
                seed = round_seed(self.seed, objective.case.identity)
                self._last_best = key, (find or recommend)(objective, seed)
            return objective, self._last_best[1]

    def _case(self, log: TrialLog, fixed: Held) -> RehearsalCase:
        """The next round, as a table of the same experiments names it."""
        number = len(log.in_states("completed", "pending", "failed")) + 1
        return self.task.case(f"experiment {number}", fixed)

    def _best_action(self, model: CausalModel, log: TrialLog, levels: Held) -> tuple[Tensor, bool]:
        """The action, and whether some setting is known to keep the constraints."""
        objective = aware_of_pending(self.objective, model, self._case(log, levels), log)
        with in_numbers(EXPERIMENTS):
            return searched_action(objective, self.search, log, self.seed), not objective.seeks_feasibility
