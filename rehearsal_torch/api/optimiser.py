"""Causal Bayesian optimisation of experiments that are run elsewhere, through an ask/tell interface.

    optimiser = CausalOptimiser(task, file="trials.json")
    (action,) = optimiser.ask()
    optimiser.tell(action, {"X": 0.3, "Y": 1.2})

Every experiment is a trial with a number and a state: pending, completed, failed or abandoned. The result of
`ask` depends on the trials, the seed and the task alone, so that a file written by another process is
continued as if there had been no interruption, pending trials included. The first actions are points of a
Sobol sequence, until the completed trials are enough to fit a model. From then on each `ask` maximises the
acquisition function under a model of all completed trials. It is fitted once: `ask`, `recommend` and `model`
share the fit until another trial is completed.

A batch of actions is selected sequentially: the outcome of each pending action is imputed by its posterior
mean, which removes the epistemic uncertainty of the mechanisms near it, and the next action is selected under
that model; failed actions are imputed likewise, so that they are not repeated. Hyper-parameters are kept
fixed meanwhile. Objectives that take pending actions are told of them instead (`search.trials.proposal`).
Pending or failed settings are never suggested again.

Every call is atomic: a call that raises an error has changed nothing, neither in memory nor in the file.

Source: Ren et al. (2025), Alg. 1; pending points at their posterior mean: Ginsbourger et al. (2010) ("kriging
believer").
"""

import gzip
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from narwhals.typing import IntoDataFrame
from torch import Tensor

from rehearsal_torch.api.fit_and_decide import configuration, in_words, undisturbed
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import SET, in_library
from rehearsal_torch.data.trials.trial import Recommended, Suggestion, Trial, TrialWarning, finite
from rehearsal_torch.data.trials.trial_log import Reference, TrialLog
from rehearsal_torch.data.trials.trial_store import TrialStore, read_campaign, write_campaign
from rehearsal_torch.files.atomic_write import write_bytes
from rehearsal_torch.files.schema import shown
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import made
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run_parts import method_of
from rehearsal_torch.objectives.expected_reward import CausalObjective, PosteriorMean
from rehearsal_torch.problems.drafts.draft_yaml import problem_content
from rehearsal_torch.problems.trials.trials_file import TrialsFile, trials_problem
from rehearsal_torch.problems.trials.user_experiments import FRAME, STATE, causal_task, experiments_of
from rehearsal_torch.reporting.trial_view import TrialView
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import recommend, sureness
from rehearsal_torch.search.trials.proposal import (
    NothingLeftError,
    aware_of_pending,
    check_settable,
    designed_action,
    searched_action,
)
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import KeptFit

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
    """A task, read from its file if it is in one, the problem file that it is from (None without one), and
    the factories of the method.

    Warns:
        TrialWarning: if the problem file holds actions at a value.
    """
    if not isinstance(task, str | Path):
        return task, None, trial_method(method or METHOD)
    if problem_content(task) is None:
        return causal_task(task), None, trial_method(method or METHOD)
    found = trials_problem(task)
    if found.fixed:
        warnings.warn(
            f"{found.source} holds {dict(found.fixed)}, which counts for decide alone: write ask(fixed=...)",
            TrialWarning,
            stacklevel=3,
        )
    return found.task, found, trial_method(method or found.method or METHOD)


def trial_method(name: str) -> Parts:
    """The factories of model, objective and search. The objective's fixed draws are those of seed 0."""
    with in_words(), undisturbed():
        check_method(name, "optimise")
        config = configuration(name, {}, ())
        objective: Any = method_of(config).objective
        whole = plain(config)
        # The task is passed when a model is built, the seed when a search is built.
        model = {key: value for key, value in whole["surrogate"].items() if key != "task"}
        surrogate: partial[CausalModel] = made({**model, "_partial_": True}, "surrogate")

    def search(seed: int) -> Search[Any]:
        node = whole["search"]
        found: Search[Any] = made(node | {"seed": seed} if "seed" in node else node, "search")
        return found

    return surrogate, objective, search


# Fixed actions, each with its value as its only level.
Held = Mapping[str, tuple[float, ...]]
EXPERIMENTS = "these experiments"
# The maximum number of actions per `ask`: more would take minutes, and are never run at a time.
MAX_SUGGESTIONS = 1000


class CausalOptimiser(TrialView):
    """Suggests experiments and learns from them; `plot()` draws them.

    Args:
        task: The causal graph, the actions with their bounds or levels, and the reward; plain data, a YAML
            file or a CausalTask; or a problem file with ``question: trials``, whose experiments are read as
            well. None takes that of `file`.
        surrogate: Returns an unfitted causal model for a task; None takes that of `method`.
        objective: Returns the objective for (model, case); None takes that of `method`.
        search: Finds the action; None takes that of `method`.
        initial: The number of experiments before the first model; None takes that of `file`, or 2 (k + 1)
            with k actions.
        seed: Determines the first actions; None takes that of `file`, or 0.
        file: Where the trials are stored: each call reads what other processes have added, and writes its own
            changes before it returns. An existing file is continued; `task`, if given as well, replaces the
            file's task, and the trials stay unchanged.
        method: The name of a file in ``conf/decision``, such as "excbo" (the default), "ucb" or "mcbo": it
            supplies what is not given. `seed` is also the search's.
        trainer: Trains a surrogate that is trained by gradients, such as ``ExogenousModel(fitting="train")``;
            others are solved, and need none.
        tolerance: How far told settings may lie from those of the pending trial that they are: a share of
            each action's range, or action to a distance in its unit; None for what their digits say, 0.12 for
            0.115 to 0.125, within a twentieth of the range, or for the problem file's.

    Raises:
        ValueError: if the task cannot be used (a cyclic graph, an unknown name, ...), `initial` is below 5,
            or `method` is not a method for trials.
        TrialFileError: if the file cannot be read or written, or was started with another seed or initial
            design.
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
        task, written, parts = trials_of(task, method)
        make_surrogate, make_objective, make_search = parts
        if tolerance is None and written is not None:
            tolerance = written.tolerance
        self._store = TrialStore(task, seed, initial, file, tolerance)
        if written is not None:
            with self._store.changing() as log:
                log, _, notes = log.take(*experiments_of(written.rows, written.task))
                self._store.keep(log)
            for note in notes:
                warnings.warn(note, TrialWarning, stacklevel=2)
        self.task, self.seed, self.initial = self._store.task, self._store.seed, self._store.initial
        self.surrogate: SurrogateFactory = make_surrogate if surrogate is None else surrogate
        self.objective: ObjectiveFactory = make_objective if objective is None else objective
        self.search: Search[Any] = make_search(self.seed) if search is None else search
        self._fit: KeptFit[CausalModel] = KeptFit(trainer)

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
        """Continues a file of trials, and keeps writing to it; the file holds no method. A `task` replaces
        the file's, for example by one with narrower bounds.

        Raises:
            TrialFileError: if there is no such file, or it cannot be read.
            ValueError: if the task cannot be used.
        """
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

    def ask(self, count: int = 1, fixed: Mapping[str, float] | None = None) -> list[Suggestion]:
        """The next actions to try, each a dictionary of name to value with the number of its trial
        (``.trial``).

        Args:
            count: q, the number of actions; each is pending until it is completed (`tell`), failed or
                abandoned. Where fewer settings are left, all of these, with a warning.
            fixed: Actions that these trials hold at a value; the others are chosen for the best with them.

        While no model can be fitted to the completed trials, the start design goes on.

        Raises:
            ValueError: if count is below 1 or above 1,000, a fixed value may not be set, or every setting
                that there is waits for its result or has failed.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            wanted = "at least 1 action" if isinstance(count, int) else "a whole number of actions"
            raise ValueError(f"count: expected {wanted}; got {count!r}")
        if count > MAX_SUGGESTIONS:
            raise ValueError(
                f"count: expected at most {MAX_SUGGESTIONS} actions at once; got {shown(count)}: report some "
                "of them, and ask again"
            )
        held = self.task.held(fixed)
        with self._store.changing() as log:
            model, made = None, list[Suggestion]()
            lacking, ended = self.task.lacking(log.table.records()), ""
            for _ in range(count):
                try:
                    if lacking or len(log.in_states("completed", "pending")) < self.initial:
                        action = designed_action(self.task, log, self.initial, self.seed, held)
                    else:
                        model = self._fitted(log) if model is None else model
                        action = self._searched(model, log, held)
                except NothingLeftError as error:
                    if not made:
                        raise
                    ended = f"{len(made)} of {count} experiments are proposed, since {error}"
                    break
                log, suggestion = log.ask(action)
                made.append(suggestion)
            self._store.keep(log)
        if ended:
            warnings.warn(ended, TrialWarning, stacklevel=2)
        return made

    def tell(
        self,
        action: Reference | None,
        nodes: Mapping[str, float],
        altered: Collection[str] = (),
        ran: Mapping[str, float] | None = None,
    ) -> Trial:
        """Records the result of an experiment, or corrects a recorded one (by its number).

        Settings are matched to the pending trial whose settings they are up to `tolerance`, the nearest of
        several, with a warning. Other settings become a trial of their own, which was not suggested.

        Args:
            action: The suggestion that `ask` returned, a trial's number, a trial, or a mapping of name to
                value; None for an experiment that was not suggested, with its settings in `ran`.
            nodes: The measured value of every modelled node (`CausalTask.nodes`); others are ignored.
            altered: Nodes that were also set by hard interventions: their mechanisms are not fitted to this
                experiment.
            ran: The settings actually used, if they differ from the suggestion; they may lie outside bounds
                and limits.

        Raises:
            TrialError: if a value is missing or not a finite number, a name or number is unknown, or an
                action that belongs to no trial lies outside its bounds or limits; all faults are listed.
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
        """Records that an experiment gave no usable measurement; its settings are not suggested again.

        Args:
            action: The experiment, as for `tell`.
            reason: The reason, for readers of the file.
            nodes: Measurements made nevertheless; they are stored in the file, and not used for fitting.
            ran: The settings actually used, if they differ from the suggestion.

        Raises:
            TrialError: if there is no such trial, or a value is not a finite number.
        """
        with self._store.changing() as log:
            log, trial = log.fail(action, reason, nodes, ran)
            self._store.keep(log)
        return trial

    def abandon(self, action: Reference, reason: str = "") -> Trial:
        """Abandons a trial: a pending one that will not be run, or a completed one to be excluded. Its
        settings may be suggested again.
        """
        with self._store.changing() as log:
            log, trial = log.abandon(action, reason)
            self._store.keep(log)
        return trial

    def forget(self) -> None:
        """Abandons all pending trials."""
        with self._store.changing() as log:
            for trial in log.in_states("pending"):
                log, _ = log.abandon(trial)
            self._store.keep(log)

    def model(self) -> NetworkModel:
        """The model of the completed trials, for BoTorch's acquisition functions and optimisers; its
        ``surrogate`` is the fitted causal model. A copy, which the caller may change.

        Raises:
            ValueError: if no model can be fitted.
        """
        log = self._store.fresh()
        return NetworkModel(self._fitted(log), seed=self.seed, table=log.table)

    def recommend(self, fixed: Mapping[str, float] | None = None) -> Recommended:
        """The action to keep, and its expected reward: a pair, which also says how sure both are, and which
        tried action comes next (`Recommended`); the best one with the actions that `fixed` holds at a
        value.

        Raises:
            ValueError: if a fixed value may not be set, or no model can be fitted to the completed trials.
        """
        held, log = self.task.held(fixed), self._store.fresh()
        model = self._fitted(log)
        with in_numbers(EXPERIMENTS):
            objective = PosteriorMean(model, self._case(log, held), seed=self.seed)
            found = recommend(objective, self.seed)
        check_settable(self.task, found.action, "recommended")
        if finite(found.predicted) is None:
            raise ValueError(
                f"nothing is recommended: its expected reward is {found.predicted}; are there values of very "
                "different size in the table?"
            )
        with in_numbers(EXPERIMENTS):
            sure = sureness(objective, found)
        action = dict(zip(self.task.actions, found.action.tolist(), strict=True))
        second: dict[str, Any] = {}
        if sure.runner_up is not None:
            other = dict(zip(self.task.actions, sure.runner_up.tolist(), strict=True))
            second = {
                "runner_up": other,
                "runner_up_predicted": sure.runner_up_predicted,
                "chance": sure.chance,
            }
        contradicted = model.contradicted()
        return Recommended(
            action, found.predicted, sure.std, tried=sure.tried, contradicted=contradicted, **second
        )

    def read(self, path: str | Path | IntoDataFrame) -> None:
        """Adds the experiments of a comma-separated file or a data frame, one per row; the columns are
        actions, nodes, ``set:NODE`` indicators, and ``state`` (`problems.trials.user_experiments`).

        A row with the settings of a pending trial, up to `tolerance`, is this trial; the others become trials
        that were not suggested. Rows equal to completed trials, to the last bit, are left out with a warning:
        reading the same file twice adds nothing. A row with its actions, and without a value of what the
        reward reads, is a pending trial unless its state says otherwise.

        Raises:
            TableError: if the file cannot be read, a column is missing, not numeric or incomplete, or a state
                is unknown.
        """
        rows, others = experiments_of(path, self.task)
        source = path if isinstance(path, str | Path) else FRAME
        outside = self.task.outside(rows)
        with self._store.changing() as log:
            log, left_out, notes = log.take(rows, others)
            self._store.keep(log)
        for note in notes:
            warnings.warn(f"{source}: {note}", TrialWarning, stacklevel=2)
        if left_out:
            warnings.warn(
                f"{source}: {left_out} of {len(rows)} rows equal trials that are completed already, and are "
                "not added again",
                TrialWarning,
                stacklevel=2,
            )
        if outside:
            more = f" (and {len(outside) - 3} more)" if len(outside) > 3 else ""
            warnings.warn(
                f"{source}: {'; '.join(outside[:3])}{more}: kept as observations, but no action will be "
                "suggested there",
                TrialWarning,
                stacklevel=2,
            )

    def to_frame(self, library: str = "pandas") -> Any:
        """The completed experiments as a data frame of pandas, polars or pyarrow (`library`), which `read`
        reads without loss: actions, nodes, and ``set:NODE`` where a node was set.
        """
        frame = self._store.fresh().table.to_frame()
        marks = [f"{SET}{name}" for name in self.task.actions]
        return in_library(frame.drop(columns=marks, errors="ignore"), library)

    def write(self, path: str | Path) -> None:
        """Writes all trials to a comma-separated file (.csv or .csv.gz) that `read` reads without loss. The
        column ``state`` is left out where all are completed; where the graph has such a name, so is what has
        failed or was abandoned.
        """
        log, frame = self._store.fresh(), self.to_frame()
        free = STATE not in self.task.graph.names
        others = log.in_states("pending", *(("failed", "abandoned") if free else ()))
        states = [{STATE: each.state} if free else {} for each in others]
        rows = [{**each.settings, **each.nodes, **state} for each, state in zip(others, states, strict=True)]
        if rows:
            frame = pd.concat([frame.assign(**{STATE: "completed"} if free else {}), pd.DataFrame(rows)])
            marks = [name for name in frame.columns if str(name).startswith(SET)]
            frame[marks] = frame[marks].fillna(0)
        content = frame.to_csv(index=False, float_format="%.17g").encode()
        write_bytes(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)

    def _fitted(self, log: TrialLog) -> CausalModel:
        self.task.check(log.table)
        with in_numbers(EXPERIMENTS):
            return self._fit(self.surrogate, self.task, log.table)

    def _case(self, log: TrialLog, held: Held) -> RehearsalCase:
        """The context of the next round; its identity counts the experiments that are completed, pending or
        failed.
        """
        identity, levels = len(log.in_states("completed", "pending", "failed")), self.task.box.levels
        return RehearsalCase(str(identity), {}, self.task.box.bounds(), levels={**levels, **held})

    def _searched(self, model: CausalModel, log: TrialLog, held: Held) -> Tensor:
        objective = aware_of_pending(self.objective, model, self._case(log, held), log)
        with in_numbers(EXPERIMENTS):
            return searched_action(objective, self.search, log, self.seed)
