"""Accuracy of the exogenous noise that a model recovers, on a causal world whose true noise is known.

For every node, on the rows that the model was fitted to and on held-out rows, the recovered noise u_hat is
compared with the standardised identifiable part of the true noise, t = (f_c(u) - E f_c(U)) / sd f_c(U):

    correlation        |corr(u_hat, t)|
    mean, std          mean and standard deviation of u_hat (0 and 1 in theory)
    dependence         normalised HSIC of u_hat and the node's inputs
    distance           Wasserstein distance between the distributions of u_hat and t, with the sign of u_hat
                       aligned to that of t

Source: Ren et al. (2025), Thm. 4.1 (mean 0, variance 1, independence, equality up to sign).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.estimators.hsic import dependence
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel, inputs_in
from rehearsal_torch.surrogates.structural_counterfactuals import recover

FITTED, HELD_OUT, POINT = "fitted", "held out", "noise"
NOISE_DRAWS = 100_000


@dataclass(frozen=True)
class RecoveryRow:
    """One measure of one node, or the recovered (value) and true noise of one observation, standardised."""

    node: str
    part: str
    quantity: str
    value: float
    true: float | str = ""


def recovery_rows(world: CausalWorld, model: CausalModel) -> list[RecoveryRow]:
    """The rows of all nodes for which a model of the world has a mechanism; none if it ignores the graph."""
    network, rows = model.network(), list[RecoveryRow]()
    if network.task.nodes != world.task.nodes:
        return []
    noise_draws = world.noise_rows(NOISE_DRAWS, numpy_generator(0))
    for part in (FITTED, HELD_OUT):
        table, noise = world.explained(held_out=part == HELD_OUT)
        recovered = recover(network, table)
        for column, node in enumerate(network.task.nodes):
            reference = world.recoverable(node, noise_draws[:, column])
            true = (world.recoverable(node, noise[:, column]) - reference.mean()) / reference.std()
            if not bool(true.isfinite().all()):
                continue  # a node without noise
            inputs = inputs_in(network.task, node, table)
            draws = (reference - reference.mean()) / reference.std()
            rows += _node_rows(node, part, recovered[:, column], true, draws, inputs)
    return rows


def _node_rows(
    node: str, part: str, recovered: Tensor, true: Tensor, noise_draws: Tensor, inputs: Tensor
) -> list[RecoveryRow]:
    # Loaded only here: most runs have no noise that is known.
    from scipy.stats import wasserstein_distance

    correlation = float(torch.corrcoef(torch.stack([recovered, true]))[0, 1])
    aligned = recovered if correlation >= 0 else -recovered
    measures = {
        "correlation": abs(correlation),
        "mean": float(recovered.mean()),
        "std": float(recovered.std()),
        "distance": float(wasserstein_distance(aligned.numpy(), noise_draws.numpy())),
    }
    if inputs.shape[-1]:
        varying = inputs[:, inputs.std(0) > 0]
        scaled = (varying - varying.mean(0)) / varying.std(0)
        measures["dependence"] = dependence(recovered, scaled).value
    rows = [RecoveryRow(node, part, name, value) for name, value in measures.items()]
    return rows + [
        RecoveryRow(node, part, POINT, value, true_noise)
        for value, true_noise in zip(aligned.tolist(), true.tolist(), strict=True)
    ]
