"""What ONNX files compute: the transition of episodes and surfaces of success, as modules that are traced.

Each holds all its numbers as constants and repeats the computation of its model with operators that ONNX has;
`adapters.onnx` writes them, and says what they are.

Surfaces exist for linear Gaussian models with one outcome (``care``), where with R draws of the parameters

    P = (1/R) sum_r Phi((u - m_r(x, a)) / s_r) - Phi((l - m_r(x, a)) / s_r)

for the region [l, u], and for outcome regressions (``outcome_regression``) with any region, where with D
posterior functions f_d and the residuals e_di of P points each (`surrogates.outcome.posterior_success`)

    P = (1 / D P) sum_d sum_i 1[f_d(x, u_di, v_di, a) + e_di in S].

The functions and residuals are those by which decisions are judged. They are drawn once, and are constants of
the file. Everything is computed in double precision, except Phi: runtimes have it in single precision, which
leaves an error of about 1e-7.

Source: ours.
"""

import math
from copy import deepcopy

import torch
from torch import Tensor, nn

from rehearsal_torch.mechanisms.sparse_effects import SparseEffects
from rehearsal_torch.surrogates.outcome.outcome_regression import JUDGEMENT, OutcomeRegression
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate
from rehearsal_torch.surrogates.transition import TransitionModel

# Bytes; a file of the format holds less than 2 GiB.
LARGEST = 2**30


class OnnxError(ValueError):
    """A model that cannot be exported, or a file that this package did not write; the message says why."""


class Transition(nn.Module):
    """The step of a transition model, with its scaling.

    Args:
        model: A fitted model.
    """

    inner: Tensor
    bias: Tensor
    outer: Tensor
    shift: Tensor
    lower: Tensor
    span: Tensor
    matrices: Tensor
    shifts: Tensor
    logged: Tensor
    powers: Tensor

    def __init__(self, model: TransitionModel) -> None:
        super().__init__()
        model.require_fitted()
        mechanism = model.mechanism
        networks = mechanism.networks.exact()
        inner, outer, root = networks.weights()
        self.width, self.count, self.drugs = len(model.varying), model.levels.count, len(model.levels.names)
        rescale = model.rescale
        shares = model.levels.encoded(torch.arange(model.levels.actions)) + 0.5
        matrices = shares.new_zeros(len(shares), self.width, self.width)
        shifts = shares.new_zeros(len(shares), self.width)
        self.blind = isinstance(mechanism, SparseEffects)
        if isinstance(mechanism, SparseEffects):
            matrices, shifts = mechanism.effects.maps(shares)
            self.floor = mechanism.blind.floor
        else:
            self.floor = mechanism.floor
        parts = {
            "inner": torch.cat([inner, networks.action], -1) * root,
            "bias": networks.bias * root[..., 0],
            "outer": outer * root,
            "shift": networks.shift * root[..., 0],
            "lower": rescale.lower,
            "span": rescale.width,
            "matrices": matrices,
            "shifts": shifts,
        }
        for name, value in parts.items():
            self.register_buffer(name, value.detach().to(torch.float64).clone())
        self.register_buffer("logged", rescale.logged.to(torch.float64))
        self.register_buffer("powers", self.count ** torch.arange(self.drugs - 1, -1, -1))

    def forward(self, features: Tensor, action: Tensor, noise: Tensor) -> Tensor:
        """(n, D + S + C), (n,) long, (n, D) -> (n, D)."""
        shown = features + self.logged * (
            torch.log(features.clamp_min(-1 + 1e-12) * self.logged + 1) - features
        )
        boxed = (shown - self.lower) / self.span - 0.5
        levels = torch.remainder(
            torch.div(action.unsqueeze(-1), self.powers, rounding_mode="floor"), self.count
        )
        doses = levels.to(torch.float64) / (self.count - 1) - 0.5
        parents = boxed if self.blind else torch.cat([boxed, doses], -1)
        location, raw = (
            torch.tanh(parents @ self.inner[one].mT + self.bias[one]) @ self.outer[one].mT + self.shift[one]
            for one in (0, 1)
        )
        scale = raw.clamp_min(0) + torch.log(1 + torch.exp(-raw.abs())) + self.floor
        moved = (self.matrices[action] @ boxed[:, : self.width].unsqueeze(-1)).squeeze(-1)
        after = location + moved + self.shifts[action] + scale * noise
        values = (after + 0.5) * self.span[: self.width] + self.lower[: self.width]
        logged = self.logged[: self.width]
        return values + logged * (torch.exp(values * logged) - 1 - values)


class LinearSurface(nn.Module):
    """P(Y in S | x, a) under the draws of a linear Gaussian model with one outcome.

    Args:
        surrogate: A fitted model.
        names: The altered variables.
    """

    context: Tensor
    action: Tensor
    constant: Tensor
    upper: Tensor
    lower: Tensor

    def __init__(self, surrogate: LinearSurrogate, names: tuple[str, ...]) -> None:
        super().__init__()
        task = surrogate.task
        if len(task.outcomes) != 1:
            raise OnnxError(
                f"expected one outcome; the task has {list(task.outcomes)}, whose joint probability has no "
                "operator in ONNX: name one outcome in the region, or fit method='outcome_regression'"
            )
        surrogate.require_fitted()
        models = surrogate.linear_models(names)
        found = surrogate.response(names) if models is None else models.response(task.context, task.outcomes)
        ends = task.region.offsets.to(torch.float64) / task.region.normals[:, 0].to(torch.float64)
        above, below = task.region.normals[:, 0] > 0, task.region.normals[:, 0] < 0
        scale = (found.covariance * (1 + 1e-9)).reshape(-1, 1).sqrt()
        self.register_buffer("context", found.context.reshape(-1, len(task.context)) / scale)
        self.register_buffer("action", found.action.reshape(-1, len(names)) / scale)
        self.register_buffer("constant", found.constant.reshape(-1) / scale[:, 0])
        infinite = ends.new_tensor(1e30)
        upper = ends[above].amin() if bool(above.any()) else infinite
        lower = ends[below].amax() if bool(below.any()) else -infinite
        # Beyond 40 standard deviations nothing changes, in double precision.
        self.register_buffer("upper", upper / scale[:, 0])
        self.register_buffer("lower", lower / scale[:, 0])

    def forward(self, context: Tensor, action: Tensor) -> Tensor:
        """(n, |X|), (n, k) -> (n,)."""
        mean = context @ self.context.mT + action @ self.action.mT + self.constant
        ends = [((end - mean).clamp(-40.0, 40.0) / math.sqrt(2)).float() for end in (self.upper, self.lower)]
        return 0.5 * (torch.erf(ends[0]).double() - torch.erf(ends[1]).double()).mean(-1)


class RegressionSurface(nn.Module):
    """The share of desired points of an outcome regression, by the draws that judge decisions.

    Args:
        surrogate: A fitted outcome regression.
        names: The altered variables.
        draws: Number of posterior functions.
        points: Number of residuals per function.
    """

    context_location: Tensor
    context_scale: Tensor
    action_location: Tensor
    action_scale: Tensor

    def __init__(self, surrogate: OutcomeRegression, names: tuple[str, ...], draws: int, points: int) -> None:
        super().__init__()
        if min(draws, points) < 2:
            raise OnnxError(f"expected at least two draws and points; got {draws} and {points}")
        surrogate.require_fitted()
        task = surrogate.task
        which = task.candidates.index(names)
        _bounded_size(surrogate, which, draws, points)
        # A copy, filled before it is traced: what is computed while tracing must not stay in the surrogate.
        self.success = deepcopy(surrogate.success(which, draws, points, JUDGEMENT))
        for part, columns in (("context", task.context), ("action", names)):
            location, scale = surrogate.scaler.moments(columns)
            self.register_buffer(f"{part}_location", location)
            self.register_buffer(f"{part}_scale", scale)
        with torch.no_grad():
            self(torch.zeros(1, len(task.context)).double(), torch.zeros(1, len(names)).double())

    def forward(self, context: Tensor, action: Tensor) -> Tensor:
        """(n, |X|), (n, k) -> (n,)."""
        shown = (context - self.context_location) / self.context_scale
        acted = (action - self.action_location) / self.action_scale
        return self.success.share(self.success.values(shown, acted)).mean(-1)


def _bounded_size(surrogate: OutcomeRegression, which: int, draws: int, points: int) -> None:
    """Refuses a surface whose constants would be too large for a file.

    Raises:
        OnnxError: with what to do.
    """
    models = surrogate.models(which)
    parts = [part for part in (*models.outcomes, models.before, models.between) if part is not None]
    functions = sum(part.coefficients.numel() for part in parts) * draws
    outputs = sum(part.outputs for part in parts)
    # Around the mean of covariates, the features of every residual are constants.
    moved = max(part.coefficients.numel() for part in parts) if models.columns else 0
    size = 8 * (functions + draws * points * (outputs + moved))
    if size > LARGEST:
        raise OnnxError(
            f"draws, points: expected constants of at most {LARGEST // 2**20} MiB; {draws} x {points} need "
            f"about {size // 2**20}: ask for fewer points, which counts success less finely"
        )
