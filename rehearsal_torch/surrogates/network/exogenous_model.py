"""Causal models with a fitted distribution of the exogenous noise.

The structural equation x = f(w, u) of every node is learnt by a Gaussian process (the encoder), which
recovers the noise,

    u_hat = (x - mu(w)) / sigma(w),       p(U) ~ a Gaussian mixture on u_hat,       x = g(w, u_hat),

and a decoder g, in closed form or as a second Gaussian process. The baselines are special cases: they ignore
the graph (`structure`), or assume standard normal noise (`components=1`).

The mixture is fitted to leave-one-out noise, which has the scale of rows on which the process was not
conditioned.

Each node is learnt from the rows in which it was not set, by the structure that is assumed:

    graph         every node from its parents and actions,                       X_i  <-  Z_i, A_i
    independent   every node that the reward reads, from all actions alone,      X_i  <-  A
    black_box     the reward from all actions,                                   y    <-  A

Without the graph a mechanism includes everything between the actions and the node, so that rows in which an
intermediate node was set are left out. Inputs are scaled to the unit cube: actions by their bounds, other
nodes by their observed range. Values are standardised.

Source: Ren et al. (2025), Sec. 4 and 5, Alg. 1; Astudillo and Frazier (2021), Sec. 3 (a function network, and
the black box that ignores it); Sussex et al. (2023).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Question
from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.estimators import noise_models as noises
from rehearsal_torch.estimators.function_draws import FunctionDraws
from rehearsal_torch.estimators.gaussian_process import (
    BotorchProcesses,
    GaussianProcesses,
    GivenNoise,
    SolvedProcesses,
    TrainedProcesses,
)
from rehearsal_torch.estimators.gp_kernel import Kernel
from rehearsal_torch.estimators.hsic import Dependence, dependence, independent_probability
from rehearsal_torch.estimators.hyper_draws import hyper_draws, repeated
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.mechanisms import gp_mechanism
from rehearsal_torch.mechanisms.mechanism import NodeMechanism
from rehearsal_torch.mechanisms.plausible_mechanism import Drawn, PlausibleMechanism
from rehearsal_torch.seeding import sobol
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel, CausalNetwork, PlausibleNetworks
from rehearsal_torch.surrogates.surrogate import Fits

# Numbers of levels that are so few that nothing lies between them, and the units over which they are spread:
# so far apart, what one level does says little of another. Of two equal settings with four replicates each
# the better is claimed with a chance of .71 where .76 is right, and with .70 in one unit.
FEW, APART = (2, 3), 4.0
# The level of all tests of a model's residuals together, and the fewest rows that are tested.
DOUBT, TESTED = 0.01, 12
Structure = Literal["graph", "independent", "black_box"]
STRUCTURES = ("graph", "independent", "black_box")


class NodeRows:
    """The whole task as a structure reads it, and its rows."""

    def __init__(self, task: CausalTask, structure: Structure) -> None:
        if structure not in STRUCTURES:
            raise ValueError(f"expected a structure of {list(STRUCTURES)}; got {structure!r}")
        self.task, self.structure = task, structure
        self.structured_task = task
        if structure == "independent":
            self.structured_task = task.flattened()
        elif structure == "black_box":
            name = "reward"
            while name in task.actions:
                name += "_"
            self.structured_task = CausalTask(
                RehearsalGraph.of({name: task.actions}), task.box, WeightedSum({name: 1.0}), task.limits
            )
        self.inputs = tuple(self.structured_task.inputs(node) for node in self.structured_task.nodes)
        self.max_inputs = max(1, *map(len, self.inputs))

    def values(self, table: Table) -> Tensor:
        """Node values, (n, N)."""
        if self.structure == "black_box":
            return self.task.reward_of(table).unsqueeze(-1)
        return table.columns(self.structured_task.nodes)

    def kept(self, table: Table) -> Tensor:
        """The rows from which each node is learnt, (n, N) bool: it was not set, and all was measured."""
        masks = []
        for node in self.structured_task.nodes:
            own = self.task.reward.names if self.structure == "black_box" else (node,)
            between = frozenset(own)
            if self.structure != "graph":
                between = self.task.graph.ancestors(own) - set(self.task.actions)
            places = [table.names.index(name) for name in between if name in table.names]
            known = ~table.columns([*own, *self.structured_task.inputs(node)]).isnan().any(-1)
            masks.append(~table.altered[:, places].any(-1) & known)
        return torch.stack(masks, -1)

    def examples(self, table: Table) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs (n, N, p), values and used rows (n, N), no gaps; ValueError if these are few or equal."""
        columns = [
            torch.nn.functional.pad(table.columns(names).double(), (0, self.max_inputs - len(names)))
            for names in self.inputs
        ]
        inputs, values, kept = torch.stack(columns, 1), self.values(table).double(), self.kept(table)
        for node, column, rows in zip(self.structured_task.nodes, values.T, kept.T, strict=True):
            if int(rows.sum()) < MIN_ROWS:
                expected = f"{node}: expected at least {MIN_ROWS} rows in which it was not set"
                raise ValueError(f"{expected}; got {int(rows.sum())}: add observations")
            if bool((column[rows] == column[rows][0]).all()):
                raise ValueError(
                    f"{node}: all {int(rows.sum())} values that were not set are "
                    f"{float(column[rows][0]):g}: a constant says nothing"
                )
        # What was not measured stands in rows that are not kept.
        inputs, values = (torch.where(each.isnan(), each.nanmean(0), each) for each in (inputs, values))
        return inputs, values, kept


class UnitCube(Solved):
    """Offsets and widths to the unit cube, of actions by their bounds, and to standardised values."""

    def __init__(self, rows: NodeRows) -> None:
        super().__init__()
        bounds, count = rows.structured_task.box.bounds(), rows.max_inputs

        def padded(values: Callable[[str], float], rest: float) -> Tensor:
            table = [
                [values(name) for name in names] + [rest] * (count - len(names)) for names in rows.inputs
            ]
            return torch.tensor(table, dtype=torch.float64).reshape(-1, count)

        known = padded(lambda name: name in bounds, True).bool()
        lower = padded(lambda name: bounds.get(name, (0.0, 1.0))[0], 0.0)
        levels = rows.structured_task.box.levels

        def wide(name: str) -> float:
            """The range of an action; of one with few levels, the part of it that is a unit."""
            lowest, highest = bounds.get(name, (0.0, 1.0))
            return (highest - lowest) / (APART if len(levels.get(name, ())) in FEW else 1)

        width = padded(wide, 1.0)
        self.register_buffer("known", known, persistent=False)
        self.register_buffer("low", lower, persistent=False)
        self.register_buffer("wide", width, persistent=False)
        nodes, inputs = known.shape
        self.register_fitted(offset=(nodes, inputs), width=(nodes, inputs), centre=(nodes,), scale=(nodes,))

    def faults(self) -> list[str]:
        """Sizes, and widths or scales that are not positive."""
        faults = super().faults()
        if not faults and not bool((self.width > 0).all() and (self.scale > 0).all()):
            faults.append("width and scale: expected numbers above 0")
        return faults

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, N, p), values (n, N) and the mask of kept rows (n, N)."""
        inputs, values, kept = examples
        rows = kept.unsqueeze(-1)
        smallest = torch.where(rows, inputs, torch.inf).amin(0)
        largest = torch.where(rows, inputs, -torch.inf).amax(0)
        span = largest - smallest
        self.offset = torch.where(self.known, self.low, smallest)
        # A constant input has width 1.
        self.width = torch.where(self.known, self.wide, torch.where(span > 0, span, 1.0))
        count = kept.sum(0)
        self.centre = torch.where(kept, values, 0.0).sum(0) / count
        self.scale = (torch.where(kept, values - self.centre, 0.0).square().sum(0) / (count - 1)).sqrt()

    def scaled(self, inputs: Tensor) -> Tensor:
        """(n, N, p) -> (n, N, p)."""
        return (inputs - self.offset) / self.width

    def standard(self, values: Tensor) -> Tensor:
        """(n, N) -> (n, N)."""
        return (values - self.centre) / self.scale


class VisitedActions(Solved):
    """The k actions of the experiments so far."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_fitted(actions=("n", width))

    def solve(self, *examples: Tensor) -> None:
        """Stores actions (n, k)."""
        self.actions = examples[0].detach().double().clone()


Phi = Literal["mixture", "heteroskedastic", "homoskedastic"]
Decoder = Literal["closed_form", "gp"]
Fitting = Literal["solve", "train", "botorch"]
Scale = Literal["noise", "predictive"]
Hyper = Literal["drawn", "fitted"]


class ExogenousModel(CausalModel):
    """Encoders, noise distributions and decoders of all nodes. ValueError if an option is unknown, or a
    number is out of range.

    Args:
        task: Graph, actions, nodes and reward; plain data or a CausalTask.
        structure: "graph", "independent" (the reward's nodes from all actions) or "black_box" (the reward
            from all actions).
        phi: "homoskedastic", "heteroskedastic" (the noise scale may depend on the inputs, if the data support
            it), or "mixture" (in addition, the mean is fitted under the noise mixture, if the data support
            it).
        decoder: "closed_form", or "gp" for a second process on (w, u).
        components: Components of the noise mixture; "bic" selects up to 4; 1 is the standard normal
            distribution.
        scale: The denominator sigma: "noise" for the standard deviation of the noise, or "predictive" for the
            predictive one, which includes the epistemic standard deviation of the mean.
        fitting: "solve" (L-BFGS-B, warm-started), "train" (gradient descent, which needs a trainer) or
            "botorch" (`SingleTaskGP` and `fit_gpytorch_mll`).
        kernel: Kernel of encoders and decoders: "rbf", "matern52", "matern32", or "learnt": rbf or matern32,
            selected per node.
        hyper: Whether plausible networks have hyper-parameters "drawn" from their posterior, or all have
            those that were "fitted", as in plain Bayesian optimisation.
    """

    def __init__(
        self,
        task: CausalTask,
        structure: Structure = "graph",
        phi: Phi = "mixture",
        decoder: Decoder = "closed_form",
        components: noises.Components = 2,
        scale: Scale = "noise",
        fitting: Fitting = "solve",
        kernel: Kernel = "learnt",
        hyper: Hyper = "drawn",
    ) -> None:
        super().__init__(task)
        options = ((phi, Phi), (decoder, Decoder), (scale, Scale), (fitting, Fitting), (hyper, Hyper))
        for given, known in options:
            if given not in get_args(known):
                raise ValueError(f"expected one of {list(get_args(known))}; got {given!r}")
        self.rows = NodeRows(self.task, structure)
        self.phi, self.decoder, self.scale, self.fitting, self.hyper = phi, decoder, scale, fitting, hyper
        widths = [len(names) for names in self.rows.inputs]
        self.cube, self.visited_actions = UnitCube(self.rows), VisitedActions(len(self.task.actions))
        processes = {"solve": SolvedProcesses, "train": TrainedProcesses, "botorch": BotorchProcesses}[
            fitting
        ]
        self.encoder: GaussianProcesses = processes(widths, kernel)
        self.spread = noises.InputDependentNoise(widths) if phi != "homoskedastic" else None
        self.weighted = GivenNoise(widths) if phi != "homoskedastic" else None
        self.mixed = noises.MixtureRegression(widths) if phi == "mixture" and components != 1 else None
        self.first = noises.GaussianMixtures(len(widths), components) if self.mixed is not None else None
        self.decoders: GaussianProcesses | None = None
        if decoder == "gp":
            self.decoders = processes([width + 1 for width in widths], kernel, exact=True)
        self.mixtures = (
            noises.StandardNormals(len(widths))
            if components == 1
            else noises.GaussianMixtures(len(widths), components)
        )

    def parts(self, table: Table) -> Fits:
        """Scales, encoders, noises and decoders, on the rows in which each node was not set."""
        self.task.check(table)
        inputs, values, kept = self.rows.examples(table)
        yield self.visited_actions, (table.columns(self.task.actions),)
        yield self.cube, (inputs, values, kept)
        scaled, standard = self.cube.scaled(inputs), self.cube.standard(values)
        yield _fitted(self.encoder, scaled, standard, kept)
        held = self.encoder.rows
        places, targets, kept = held.inputs.transpose(0, 1), held.targets.mT, held.kept.mT

        def every(value: Tensor) -> Tensor:
            """The same in every row."""
            return value.expand(len(targets), *value.shape)

        if self.spread is not None and self.weighted is not None:
            residuals, variances = (column.mT for column in self.encoder.factors().left_out())
            yield self.spread, (places, residuals, variances, every(self.encoder.log_noises.exp()), kept)
            self.weighted.like(self.encoder)
            lengths, varies = every(self.encoder.log_lengths), every(self.spread.varies)
            yield self.weighted, (places, targets, kept, self.spread.at(places), lengths, varies)
        if self.weighted is not None and self.mixed is not None and self.first is not None:
            residual, std = self.weighted.left_out_residuals()
            noise = (residual / std).mT
            yield self.first, (noise, kept)
            mixtures = torch.stack([self.first.weights, self.first.means, self.first.variances], -2)
            lengths, variances = every(self.weighted.log_lengths), self.weighted.ratios.mT
            self.mixed.like(self.encoder)
            yield self.mixed, (places, targets, kept, variances, lengths, every(mixtures), noise)
        yield self.mixtures, (self.noise_of_rows().mT, kept)
        if self.decoders is not None:
            yield _fitted(self.decoders, self._joined(), targets, kept)

    def used(self) -> tuple[str, ...]:
        """The reward is learnt only under "black_box"; otherwise it is a known function of the nodes."""
        known = ("graph", "actions", "nodes")
        return (*known, "reward") if self.rows.structure == "black_box" else known

    def _take(self, question: Question) -> None:
        super()._take(question)
        self.rows, state = NodeRows(self.task, self.rows.structure), self.cube.state_dict()
        self.cube = UnitCube(self.rows)
        self.cube.load_state_dict(state)

    @property
    def on_graph(self) -> bool:
        """Whether every node is learnt from its parents."""
        return self.rows.structure == "graph"

    @property
    def processes(self) -> GaussianProcesses:
        """The processes of the encoders' means, under the selected noise model."""
        return next(part for part in (self.mixed, self.weighted, self.encoder) if part is not None)

    def recovered(self) -> Tensor:
        """Leave-one-out noise of the rows, (N, n): (x - mu) / sigma by a process conditioned on all other
        rows; 0 for rows that the node leaves out. In terms of the process conditioned on all rows it is (x -
        mu) / (s^2 - tau^2)^(1/2): the fitted residual, corrected for shrinkage.
        """
        residual, std = self.processes.left_out_residuals()
        return residual / std

    def noise_of_rows(self) -> Tensor:
        """The noise to which the mixture is fitted, (N, n); with the predictive scale that of the paper."""
        return self.recovered() if self.scale == "noise" else self.abducted()

    def abducted(self) -> Tensor:
        """(x - mu) / sigma by the process conditioned on all rows, (N, n); 0 for rows left out."""
        residual, std, unknown = self.processes.in_sample_residuals()
        return residual / (std if self.scale == "noise" else (std.square() + unknown.square()).sqrt())

    def _joined(self) -> Tensor:
        """The decoders' inputs, (n, N, p + 1): a node's noise follows its last input."""
        rows = self.processes.rows
        joined = torch.nn.functional.pad(rows.inputs, (0, 1)).transpose(0, 1).clone()
        for index, names in enumerate(self.rows.inputs):
            joined[:, index, len(names)] = gp_mechanism.noise_input(self.abducted()[index])
        return joined

    @torch.no_grad()
    def dependences(self) -> dict[str, Dependence]:
        """What dependence is left of each node's noise on its inputs; nodes without any are left out."""
        self.require_fitted()
        measured, rows = {}, self.processes.rows
        for index, (node, names) in enumerate(
            zip(self.rows.structured_task.nodes, self.rows.inputs, strict=True)
        ):
            if names:
                kept = rows.kept[index]
                measured[node] = dependence(
                    self.recovered()[index][kept], rows.inputs[index][kept][:, : len(names)]
                )
        return measured

    @torch.no_grad()
    def contradicted(self) -> tuple[str, ...]:
        """The nodes whose mechanisms the experiments contradict: their leave-one-out noise depends on their
        inputs, or on actions and earlier nodes that are no inputs of theirs (`hsic.independent_probability`),
        at the level `DOUBT` shared by all these tests. None with fewer than `TESTED` rows.
        """
        task, rows, noise = self.rows.structured_task, self.processes.rows, self.recovered()
        measured = dict(zip(task.nodes, self.encoder.rows.targets, strict=True)) if self.on_graph else {}
        measured |= dict(zip(self.task.actions, self.visited().mT, strict=True))
        tests = list[tuple[str, Tensor]]()
        for index, (node, names) in enumerate(zip(task.nodes, self.rows.inputs, strict=True)):
            kept = rows.kept.all(0) if self.on_graph else rows.kept[index]
            if int(kept.sum()) < TESTED:
                continue
            below = {node, *task.graph.descendants((node,))}
            others = [values[kept] for name, values in measured.items() if name not in {*below, *names}]
            varying = [(each - each.mean()) / each.std() for each in others if float(each.std()) > 0]
            groups = [rows.inputs[index][kept][:, : len(names)]] if names else []
            for group in (*groups, *([torch.stack(varying, -1)] if varying else [])):
                every = torch.ones(1, len(group), dtype=torch.bool, device=noise.device)
                given = noise[index][kept].unsqueeze(0), group.unsqueeze(0), every
                tests.append((node, independent_probability(*given)[0]))
        level = DOUBT / max(1, len(tests))
        return tuple(dict.fromkeys(node for node, probability in tests if float(probability) < level))

    @torch.no_grad()
    def network(self) -> CausalNetwork:
        """A snapshot of the model."""
        self.require_fitted()
        means, cube = self.processes.posteriors(), self.cube
        shapes = None if self.spread is None else self.spread.processes.posteriors()
        decoders = None if self.decoders is None else self.decoders.posteriors()
        mechanisms = list[NodeMechanism]()
        for index, names in enumerate(self.rows.inputs):
            level, shift, rho = self._noise(index)
            shape = None if shapes is None or not float(rho) else shapes[index]
            n = len(names)
            unit = cube.offset[index, :n], cube.width[index, :n], cube.centre[index], cube.scale[index]
            belief = means[index], gp_mechanism.Noise(level, rho, shape), shift, self.scale == "predictive"
            encoder = gp_mechanism.ClosedForm(*unit, *belief)
            mechanisms.append(encoder if decoders is None else gp_mechanism.Decoded(encoder, decoders[index]))
        return CausalNetwork(self.rows.structured_task, tuple(mechanisms))

    def _noise(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """Level, offset over its standard deviation, and rho of a node's noise, () each."""
        levels = self.processes.log_noises.exp() if self.spread is None else self.spread.level
        level, shift = levels[index], torch.zeros_like(levels[index])
        if self.mixed is not None:
            stretch = self.mixed.noise_std[index]
            level, shift = level * stretch.square(), self.mixed.noise_mean[index] / stretch
        # rho is 0 where the noise does not vary.
        return level, shift, torch.zeros_like(level) if self.spread is None else self.spread.rho[index]

    @torch.no_grad()
    def plausible(self, members: int, seed: int = 0) -> PlausibleNetworks:
        """Networks of functions drawn from the posteriors of the encoders, hyper-parameters drawn as well. Of
        a node that was fitted under another noise than a constant normal one half the functions are drawn
        from that fit, and half from the encoder under constant normal noise: the fit decided on its noise
        with the very mean that is in doubt, and is too sure.
        """
        self.require_fitted()
        require(members >= 2 and members % 2 == 0, "an even number of members", members=members)
        pairs, rows = members // 2, self.encoder.rows
        draws = hyper_draws if self.hyper == "drawn" else repeated
        hyper = draws(rows, self.encoder.hyper, pairs, seed)
        other = torch.zeros(len(self.rows.inputs), dtype=torch.bool)
        if self.spread is not None:
            other = self.spread.varies.cpu()
        if self.mixed is not None:
            other = other | self.mixed.adopted.cpu()
        mechanisms, fitted, weighted = list[PlausibleMechanism](), hyper, self.processes.rows
        if len(chosen := other.nonzero()[:, 0]):
            best = self.processes.hyper.only(chosen)
            again = draws(weighted.only(chosen), best, pairs, seed + 1, free_noise=False)
            fitted = hyper.filled(chosen, again)
        shapes = None if self.spread is None else self.spread.processes.posteriors()
        for index, names in enumerate(self.rows.inputs):
            n, kept = len(names), rows.kept[index]
            lengths, noises = hyper.log_lengths[index, :, :n].exp(), hyper.log_noises[index].exp()
            scales = hyper.scales[index] if n else torch.ones_like(noises)
            targets = rows.targets[index][kept].expand(pairs, -1)
            variances = noises.unsqueeze(-1).expand_as(targets)
            level, shift, rho = self._noise(index)
            shifts, rhos = torch.zeros_like(noises), torch.zeros_like(noises)
            levels = noises * scales.square()
            if bool(other[index]):
                # Every second pair is of the process under its own noise.
                own = torch.arange(pairs, device=noises.device) % 2 == 0
                lengths = torch.where(own.unsqueeze(-1), fitted.log_lengths[index, :, :n].exp(), lengths)
                targets = torch.where(own.unsqueeze(-1), weighted.targets[index][kept], targets)
                variances = torch.where(own.unsqueeze(-1), weighted.ratios[index][kept], variances)
                scales = torch.where(own, fitted.scales[index], scales)
                levels = torch.where(own, level, levels)
                shifts, rhos = torch.where(own, shift, shifts), torch.where(own, 0.5 * rho, rhos)
            places = rows.inputs[index][kept][:, :n]
            kind = int(self.encoder.kinds[index])
            functions = FunctionDraws.of(kind, places, lengths, targets, variances, scales, seed + 2 + index)
            unit = self.cube.offset[index, :n], self.cube.width[index, :n]
            centre, scale = self.cube.centre[index], self.cube.scale[index]
            both = levels.sqrt().repeat(2), shifts.repeat(2)
            drawn_mechanism = Drawn(*unit, centre, scale, functions, *both)
            if shapes is not None and float(rho):
                shape = FunctionDraws.certain(shapes[index])
                drawn_mechanism = replace(drawn_mechanism, shape=shape, rho=rhos.repeat(2))
            mechanisms.append(drawn_mechanism)
        return PlausibleNetworks(self.rows.structured_task, tuple(mechanisms), members)

    @torch.no_grad()
    def draws(self, count: int, seed: int = 0) -> Tensor:
        """(S, N): scrambled Sobol points mapped through the quantile functions."""
        self.require_fitted()
        unit = sobol(len(self.rows.inputs), seed).draw(count, dtype=torch.float64)
        return self.mixtures.quantile(unit.to(self.mixtures.weights))

    def visited(self) -> Tensor:
        """(n, k)."""
        self.require_fitted()
        return self.visited_actions.actions

    @torch.no_grad()
    def condition(self, table: Table) -> None:
        """Recomputes factors for a table; hyper-parameters, scales and noises are kept."""
        self.require_fitted()
        table = table.to(self.device)
        inputs, values, kept = self.rows.examples(table)
        scaled, standard = self.cube.scaled(inputs), self.cube.standard(values)
        self.visited_actions.solve(table.columns(self.task.actions))
        self.encoder.hold(scaled, standard, kept)
        if self.weighted is not None and self.spread is not None:
            self.weighted.hold(scaled, standard, kept, self.spread.at(scaled))
        if self.mixed is not None and self.spread is not None:
            self.mixed.hold(scaled, standard, kept, self.spread.at(scaled))
            self.mixed.again()
        if self.decoders is not None:
            self.decoders.hold(self._joined(), standard, kept)


def _fitted(
    part: GaussianProcesses, inputs: Tensor, targets: Tensor, kept: Tensor
) -> tuple[Solved | Trained, tuple[Tensor, ...]]:
    """A part with its examples; one that is trained also gets the number of rows."""
    if isinstance(part, Solved):
        return part, (inputs, targets, kept)
    assert isinstance(part, Trained)
    return part, (inputs, targets, kept, torch.full((len(targets),), len(targets), device=targets.device))
