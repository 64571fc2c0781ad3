"""Asking and telling: causal Bayesian optimisation of experiments that are run elsewhere.

    optimiser = CausalOptimiser(task)
    (action,) = optimiser.ask()
    optimiser.tell(action, {"X": 0.3, "Y": 1.2})

`ask` answers from the experiments told so far, the seed, and what was asked and not yet told; nothing else is remembered, so that a
table written to a file and read again goes on as if there had been no break. The first actions are points of a Sobol sequence. Then each
ask fits the model afresh and looks for the action that is worth most to try.

Several actions are asked for one after the other: each pending action is believed to come out at its posterior mean, which removes
what is not known of the laws near it, and the next one is looked for under that belief. Hyper-parameters stay as they are meanwhile.

Source: Ren et al. (2025), Alg. 1; pending points at their posterior mean: Ginsbourger et al. (2010) ("kriging believer").
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import LEAST_ROWS, CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.situation import Foresight
from rehearsal_torch.data.table import Table
from rehearsal_torch.datasets.experiment_table import SET, experiments_of
from rehearsal_torch.datasets.number_columns import table_file
from rehearsal_torch.objectives.causal_objective import CausalObjective
from rehearsal_torch.objectives.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.posterior_mean import PosteriorMean
from rehearsal_torch.search.acquisition import AcquisitionSearch
from rehearsal_torch.search.candidate_region import CandidateRegion
from rehearsal_torch.search.recommendation import recommend
from rehearsal_torch.search.search import Search
from rehearsal_torch.surrogates.causal_model import CausalModel
from rehearsal_torch.surrogates.exogenous_model import ExogenousModel
from rehearsal_torch.training.fit import fit

Action = dict[str, float]


class CausalOptimiser:
    """Suggests experiments and learns from them.

    Args:
        task: Who follows from whom, what may be set, what is wanted; plain data or a CausalTask.
        surrogate: Makes an unfitted causal model of a task.
        objective: Makes the objective of (model, situation).
        search: Finds the action.
        initial: Experiments before the first model; None for 2 (k + 1) with k actions.
        seed: Decides the first actions.

    Raises:
        ValueError: if the task cannot be used (a cyclic graph, an unknown name, ...), or `initial` is below 5.
    """

    def __init__(
        self,
        task: CausalTask | Mapping[str, Any],
        surrogate: Callable[[CausalTask], CausalModel] = ExogenousModel,
        objective: Callable[..., CausalObjective] = ConfidenceBound,
        search: Search[Any] | None = None,
        initial: int | None = None,
        seed: int = 0,
    ) -> None:
        self.task = CausalTask.of(task)
        self.initial = max(LEAST_ROWS, 2 * (len(self.task.actions) + 1)) if initial is None else initial
        if self.initial < LEAST_ROWS:
            raise ValueError(f"expected at least {LEAST_ROWS} initial experiments; got {initial}: a model needs so many")
        self.surrogate, self.objective, self.seed = surrogate, objective, seed
        self.search: Search[Any] = AcquisitionSearch(seed=seed) if search is None else search
        self._names = (*self.task.actions, *self.task.nodes)
        self._table = Table.observed(self._names, torch.zeros(0, len(self._names), dtype=torch.float64))
        self._pending: list[Tensor] = []

    @property
    def table(self) -> Table:
        """All experiments told so far, actions first."""
        return self._table

    @property
    def pending(self) -> list[Action]:
        """Actions that were asked for and not told yet."""
        return [self._named(each) for each in self._pending]

    def ask(self, count: int = 1) -> list[Action]:
        """The next actions to try, name to value.

        Args:
            count: q, how many; they are pending until they are told, or `forget` is called.

        Raises:
            ValueError: if count is below 1, or nothing can be learnt from what was told (a constant node, say).
        """
        if count < 1:
            raise ValueError(f"expected to be asked for at least 1 action; got {count}")
        made: list[Action] = []
        while len(made) < count and len(self._table) + len(self._pending) < self.initial:
            made.append(self._asked(self._first(len(self._table) + len(self._pending))))
        if len(made) < count:
            model = self._believing()
            while len(made) < count:
                decision = self._decided(model)
                assert decision.alteration is not None
                action = decision.alteration.values[[decision.alteration.names.index(name) for name in self.task.actions]]
                made.append(self._asked(action))
                if len(made) < count:
                    self._believe(model)
        return made

    def tell(self, action: Mapping[str, float], nodes: Mapping[str, float], altered: Collection[str] = ()) -> None:
        """Adds an experiment.

        Args:
            action: What was set, name to value.
            nodes: What came out, for every node that can reach the reward; others are not read.
            altered: Nodes that were set by hand as well (hard interventions): the experiment says nothing of how they come about.

        Raises:
            ValueError: if a value is missing, is no finite number, or an action lies outside its bounds or limits.
        """
        for what, given, wanted in (("action", action, self.task.actions), ("node", nodes, self.task.nodes)):
            missing = [name for name in wanted if name not in given]
            if missing:
                raise ValueError(f"no value for {what} {missing}; got {sorted(given)}: every {what} is needed, take it out of the task if it is not measured")
        strange = [name for name in altered if name not in self.task.nodes]
        if strange:
            raise ValueError(f"altered {strange} are no nodes of the task; it has {list(self.task.nodes)}")
        values = torch.tensor([float(action[name]) for name in self.task.actions] + [float(nodes[name]) for name in self.task.nodes], dtype=torch.float64)
        wrong = {name: value for name, value in zip(self._names, values.tolist(), strict=True) if not np.isfinite(value)}
        if wrong:
            raise ValueError(f"expected finite numbers; got {wrong}: measure again, or leave the experiment out")
        done = values[: len(self.task.actions)]
        self.task.check_action(done)
        marks = torch.tensor([True] * len(done) + [name in altered for name in self.task.nodes])
        self._table = self._table + Table(self._names, values.unsqueeze(0), marks.unsqueeze(0))
        told = [place for place, each in enumerate(self._pending) if bool(((each - done).abs() <= 1e-9 + 1e-6 * self.task.box.width).all())]
        if told:
            del self._pending[told[0]]

    def forget(self) -> None:
        """Gives up the pending actions: they will not be tried."""
        self._pending.clear()

    def model(self) -> CausalModel:
        """The model of what was told so far, fitted afresh.

        Raises:
            ValueError: if nothing can be learnt from it.
        """
        self.task.check(self._table)
        return fit(self.surrogate(self.task), self._table)

    def recommend(self) -> tuple[Action, float]:
        """The action with the largest posterior mean of the reward, and that mean.

        Raises:
            ValueError: if nothing can be learnt from what was told.
        """
        found = recommend(PosteriorMean(self.model(), self._situation(), seed=self.seed), self.seed)
        return self._named(found.action), found.predicted

    def read(self, path: str | Path) -> None:
        """Takes up experiments of a comma-separated file, after those told so far; the columns are actions, nodes, and ``set:NODE`` marks.

        Raises:
            TableError: if the file cannot be read, or a column is missing, no number or incomplete.
            ValueError: if a node is constant, there are fewer than 5 rows, or an action lies outside its bounds.
        """
        self._table = self._table + experiments_of(table_file(path), self.task, str(path))

    def write(self, path: str | Path) -> None:
        """Writes the experiments to a comma-separated file that `read` takes up again without loss."""
        frame = pd.DataFrame(self._table.values.numpy(), columns=list(self._names))
        for place, name in enumerate(self._names):
            if name in self.task.nodes and bool(self._table.altered[:, place].any()):
                frame[f"{SET}{name}"] = self._table.altered[:, place].int().numpy()
        frame.to_csv(path, index=False, float_format="%.17g")

    def _situation(self) -> Foresight:
        """The round's identity is the number of experiments, told or pending."""
        return Foresight(str(len(self._table) + len(self._pending)), {}, self.task.box.bounds())

    def _first(self, number: int) -> Tensor:
        """A point of the start design."""
        region = CandidateRegion.within(self.task.box.lower, self.task.box.upper, self.task.limits)
        return region.units(region.spread(self.initial, self.seed)[number])

    def _decided(self, model: CausalModel) -> Decision:
        return self.search(self.objective(model, self._situation()))

    def _believing(self) -> CausalModel:
        """The model, pending actions taken for experiments that came out as expected."""
        model = self.model()
        if self._pending:
            self._believe(model)
        return model

    def _believe(self, model: CausalModel) -> None:
        """Lets a model take the pending actions for experiments; what is expected of them follows from what was told alone."""
        model.condition(self._table)
        model.condition(self._table + self._expected(model))

    def _expected(self, model: CausalModel) -> Table:
        """Pending actions with every node at its best guess, under the mean of its noise.

        Where the model does not speak of a node (it ignores the graph), the node is that of the nearest experiment told; it is read by nobody, unless
        the model is one of the reward alone and the reward is a function of several nodes.
        """
        actions, done = torch.stack(self._pending), self._table.columns(self.task.actions)
        nearest = torch.cdist(actions / self.task.box.width, done / self.task.box.width).argmin(-1)
        nodes = dict(zip(self.task.nodes, self._table.columns(self.task.nodes)[nearest].unbind(-1), strict=True))
        network, reward = model.network(), self.task.reward
        with torch.no_grad():
            guessed, _ = network.propagate(actions, model.draws(1024, 0).mean(0, keepdim=True))
            believed = dict(zip(network.task.nodes, guessed[:, 0].unbind(-1), strict=True))
            total = network.reward(guessed)[:, 0]
        nodes |= {name: value for name, value in believed.items() if name in nodes}
        if isinstance(reward, WeightedSum) and len(reward.names) == 1 and reward.names[0] not in believed:
            nodes[reward.names[0]] = total / reward.weights[reward.names[0]]
        values = torch.cat([actions, torch.stack([nodes[name] for name in self.task.nodes], -1)], -1)
        marks = torch.zeros_like(values, dtype=torch.bool)
        marks[:, : actions.shape[-1]] = True
        return Table(self._names, values, marks)

    def _asked(self, action: Tensor) -> Action:
        self._pending.append(action.detach().to("cpu", torch.float64))
        return self._named(self._pending[-1])

    def _named(self, action: Tensor) -> Action:
        return dict(zip(self.task.actions, action.tolist(), strict=True))
