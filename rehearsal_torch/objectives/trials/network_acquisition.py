"""BoTorch acquisition functions of a causal network under fixed draws.

The expected reward of an action a uses fixed draws u_1 ... u_S of the noise of the learnt network, common to
all candidates of a round (common random numbers), so that candidates are comparable and the function is
smooth. The posterior mean of the reward,

    E[r | a] = 1/S sum_s r(x(a, u_s)),     x_i = m_i(w_i, u_i)  in topological order,

is the predicted reward of an action (`ExpectedReward`).

Epistemic draws. A mechanism is known up to a posterior standard deviation: x_i = m_i + e_i s_i with e_i ~
N(0, 1). One draw e of all nodes, the same for every input, noise draw and candidate, is one plausible
network, and

    f_e(a) = E_u[r(x(a, u, e))]

its expected reward. Mean and standard deviation of f_e over e are the posterior mean and the epistemic
uncertainty of E[r | a]; the noise of a single experiment (the spread over u) is averaged out.

A `NetworkAcquisition` maps single candidates (..., 1, k + further) to values (...); the next action to try is
its maximiser, which `optimize_acqf` finds with q=1. A candidate is an action in its units, followed by
further coordinates in [-1, 1] if the function optimises some jointly. It has no parameters and no state, and
does not take pending points: as BoTorch's analytic functions, it refuses them.

Source: Ren et al. (2025), Sec. 5.1, Eq. 5 (one node; with beta = 0 the posterior mean); Balandat et al.
(2020), Sec. 3 (acquisition functions, common random numbers, normal Sobol draws); Astudillo and Frazier
(2021), Sec. 4.2 (one fixed draw per node and sample).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from rehearsal_torch.data.sizes import require
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.surrogates.network.causal_model import CausalNetwork, Perturbation
from rehearsal_torch.surrogates.network.network_model import REWARD, NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import plausible_values


def standard_draws(count: int, width: int, seed: int) -> Tensor:
    """Normal draws (count, width) with mean 0 and variance 1 in every column: scrambled Sobol points, each
    followed by its antithetic counterpart.

    Raises:
        ValueError: if `count` is odd or below 2.
    """
    require(count >= 2 and count % 2 == 0, "an even number of draws, in antithetic pairs", count=count)
    half = torch.zeros(count // 2, 0, dtype=torch.float64)
    if width:
        half = draw_sobol_normal_samples(width, count // 2, seed=seed, dtype=torch.float64)
    both = torch.stack([half, -half], 1).flatten(0, 1)
    return both / both.square().mean(0).sqrt().clamp_min(1e-12)


def mean_reward(
    network: CausalNetwork, actions: Tensor, noise: Tensor, perturbation: Perturbation | None = None
) -> Tensor:
    """E[r] over draws of the noise, (..., k), (S, N) -> (...), in the units of actions and reward; each node
    is perturbed from its posterior mean by so many posterior standard deviations.
    """
    values, _ = network.propagate(actions, noise, perturbation)
    return network.reward(values).mean(-1)


def plausible_rewards(network: CausalNetwork, actions: Tensor, noise: Tensor, epistemic: Tensor) -> Tensor:
    """f_e(a) for every draw e, (..., k), (S, N), (E, N) -> (..., E)."""

    def read(values: Tensor) -> Tensor:
        return network.reward(values).unsqueeze(-1)

    return plausible_values(network, actions.unsqueeze(-2), noise, epistemic, read)[..., 0, 0].movedim(0, -1)


def candidate_bounds(box: Box, further: int) -> Tensor:
    """(2, k + further), lower and upper bounds of a candidate: those of its action, and [-1, 1]."""
    wide = torch.ones(further, dtype=torch.float64)
    return torch.stack([torch.cat([box.lower, -wide]), torch.cat([box.upper, wide])])


@dataclass(frozen=True)
class DrawnNetwork:
    """A fitted network with fixed draws.

    Attributes:
        network: The network of N nodes.
        noise: Draws of the noise, (S, N), as `CausalModel.draws` returns them.
        epistemic: Draws e, (E, N), normal with mean 0 and variance 1; of zeros, the network of posterior
            means.

    Raises:
        ValueError: if a shape is another one.
    """

    network: CausalNetwork
    noise: Tensor
    epistemic: Tensor

    def __post_init__(self) -> None:
        nodes = len(self.network.mechanisms)
        for name, draws in (("noise", self.noise), ("epistemic", self.epistemic)):
            if draws.ndim != 2 or not len(draws) or draws.shape[-1] != nodes:
                raise ValueError(
                    f"{name}: expected at least one draw, (draws, {nodes}), a column for each of "
                    f"{list(self.network.task.nodes)}; got {tuple(draws.shape)}"
                )

    @classmethod
    def of(cls, model: "NetworkModel | DrawnNetwork") -> "DrawnNetwork":
        """The network of a BoTorch model, with its noise draws and members.

        Raises:
            ValueError: if the model's output is not the reward alone, it has a batch shape, or it transforms
                inputs or outputs.
        """
        if isinstance(model, DrawnNetwork):
            return model
        transforms = [name for name in ("input_transform", "outcome_transform") if name in model._modules]
        if model.outputs != (REWARD,) or model.batch_shape or transforms:
            raise ValueError(
                f"model: expected outputs=({REWARD!r},), no batch shape and no transforms; got "
                f"outputs={model.outputs}, batch_shape={tuple(model.batch_shape)} and {transforms}: the "
                "function is one of the expected reward and of actions in their units; for others use "
                "BoTorch's own acquisition functions"
            )
        return cls(model.network, model.noise, model.epistemic)


class NetworkAcquisition(AcquisitionFunction, ABC):
    """A function of one candidate under fixed draws, for any optimiser of BoTorch. The model is a
    `NetworkModel` whose output is the reward, or the draws themselves.

    Raises:
        ValueError: if the model is not one of the reward alone (see `DrawnNetwork.of`).
    """

    def __init__(self, model: NetworkModel | DrawnNetwork) -> None:
        # Without a model of BoTorch there is nothing to register.
        super().__init__(model if isinstance(model, NetworkModel) else None)  # type: ignore[arg-type]
        # BoTorch's optimisers read it.
        self.X_pending = None  # type: ignore[assignment]
        self.drawn = DrawnNetwork.of(model)
        self.network, self.noise = self.drawn.network, self.drawn.noise

    @property
    def further(self) -> int:
        """Number of coordinates in [-1, 1] that follow the action in a candidate; 0 by default."""
        return 0

    @property
    def bounds(self) -> Tensor:
        """(2, k + further), lower and upper bounds of a candidate, by the bounds of the task's actions."""
        return candidate_bounds(self.network.task.box, self.further).to(self.noise)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Refuses pending points, as BoTorch's analytic acquisition functions do.

        Raises:
            UnsupportedError: if there are any.
        """
        if X_pending is not None:
            raise UnsupportedError(
                f"{type(self).__name__} does not account for X_pending: condition the model on imputed "
                "outcomes of pending points, or use a function of samples such as qLogNEI"
            )

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates (..., 1, k + further), (...).

        Raises:
            ValueError: if X has the wrong width.
        """
        names = self.network.task.actions
        if X.shape[-1] != len(names) + self.further:
            raise ValueError(
                f"X: expected the shape (..., 1, {len(names) + self.further}), a column for each of "
                f"{list(names)} and {self.further} in [-1, 1]; got {tuple(X.shape)}"
            )
        return self.value(X.squeeze(-2))

    @abstractmethod
    def value(self, points: Tensor) -> Tensor:
        """The values of candidates (..., k + further), (...)."""


@final
class ExpectedReward(NetworkAcquisition):
    """The posterior mean E[r | a], in the reward's unit."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        return mean_reward(self.network, points, self.noise)
