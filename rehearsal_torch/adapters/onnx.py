"""ONNX files of fitted models: the transition of episodes, and the probability of success of an alteration.

    export_transition(model, "transition.onnx")                      state, action and noise to the next state
    export_surface(model.surrogate, "surface.onnx", ("price",))      context and action to a probability

Any runtime of ONNX evaluates them, without this package and without torch:

    transition   features (n, D + S + C), in units; action (n,), the number of an action; noise (n, D), in
                 scaled coordinates, 0 for the location  ->  next (n, D), in units
    surface      context (n, |X|) and action (n, k), in units  ->  probability (n,)

The metadata of a file hold the names of its columns, the version of this package and a fingerprint of the
question; `described` reads them. A surface is the estimate of a decision, without its interval and without
the rules by which a method declines (`objectives.guard`), so that whoever acts on it sees no warning.

Surfaces exist for linear Gaussian models with one outcome (``care``), where with R draws of the parameters

    P = (1/R) sum_r Phi((u - m_r(x, a)) / s_r) - Phi((l - m_r(x, a)) / s_r)

for the region [l, u]. Everything is computed in double precision, except Phi: runtimes have it in single
precision, which leaves an error of about 1e-7.

Needs ``pip install 'rehearsal-torch[onnx]'``.

Source: ours; the format is that of the ONNX project (onnx.ai), operator set 18.
"""

import json
import logging
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from rehearsal_torch.data.question import fingerprint
from rehearsal_torch.files.writing import write_bytes
from rehearsal_torch.mechanisms.sparse_effects import SparseEffects
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.transition import TransitionModel

OPERATORS = 18
MISSING = "ONNX files need further packages, which are not installed: pip install 'rehearsal-torch[onnx]'"
KINDS = "a linear Gaussian model with one outcome (method care)"


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
                "operator in ONNX: name one outcome in the region"
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


def export_transition(model: Surrogate, path: str | Path) -> Path:
    """Writes the transition of episodes as an ONNX file.

    Args:
        model: A fitted `TransitionModel`; of an ensemble, one member (``ensemble.each[0]``).
        path: The file.

    Returns:
        The file.

    Raises:
        OnnxError: if the model is another one, or the packages are missing.
    """
    if not isinstance(model, TransitionModel):
        raise OnnxError(
            "expected a TransitionModel, or one member of an ensemble (ensemble.each[0]); got a "
            f"{type(model).__name__}"
        )
    module = Transition(model)
    width, every = module.width, len(model.rescale.names)
    rows = (torch.zeros(3, every).double(), torch.zeros(3, dtype=torch.long), torch.zeros(3, width).double())
    columns = {
        "features": list(model.rescale.names),
        "action": list(model.levels.names),
        "noise": list(model.varying),
        "next": list(model.varying),
    }
    facts = {"levels": [model.levels.medians[place].tolist() for place in range(len(model.levels.names))]}
    return _written(module, rows, ("features", "action", "noise"), "next", columns, facts, model, path)


def export_surface(surrogate: Surrogate, path: str | Path, altered: Sequence[str] | None = None) -> Path:
    """Writes the probability of a desired outcome as a function of context and action as an ONNX file.

    Args:
        surrogate: A fitted model (`RehearsalModel.surrogate`).
        path: The file.
        altered: The candidate set; None takes the only one.

    Returns:
        The file.

    Raises:
        OnnxError: if there is no such set or several, the model has no surface, or the packages are missing.
    """
    if not isinstance(surrogate, LinearSurrogate):
        raise OnnxError(f"expected {KINDS}; got a {type(surrogate).__name__}")
    task = surrogate.task
    names = tuple(task.candidates[0] if altered is None and len(task.candidates) == 1 else altered or ())
    if names not in task.candidates:
        offered = ", ".join("{" + ", ".join(each) + "}" for each in task.candidates)
        raise OnnxError(f"altered: expected one of the candidate sets {offered}; got {list(names)}")
    module = LinearSurface(surrogate, names)
    rows = (torch.zeros(3, len(task.context)).double(), torch.zeros(3, len(names)).double())
    columns = {"context": list(task.context), "action": list(names), "probability": list(task.outcomes)}
    facts = {"bounds": {name: list(task.box.bounds()[name]) for name in names}}
    return _written(module, rows, ("context", "action"), "probability", columns, facts, surrogate, path)


def described(path: str | Path) -> dict[str, Any]:
    """What a file says of itself: columns, question and version.

    Raises:
        OnnxError: if this package did not write it, or the packages are missing.
    """
    onnx = _packages()
    try:
        found = {each.key: each.value for each in onnx.load(str(path)).metadata_props}
        whole = json.loads(found["rehearsal_torch"])
    except Exception as error:
        raise OnnxError(f"{path}: expected an ONNX file of this package ({type(error).__name__})") from error
    if not isinstance(whole, dict):
        raise OnnxError(f"{path}: expected an ONNX file of this package")
    return whole


def _packages() -> Any:
    """The module onnx.

    Raises:
        OnnxError: if a package is missing.
    """
    try:
        import_module("onnxscript")
        return import_module("onnx")
    except ImportError as error:
        raise OnnxError(f"{MISSING} ({error.name} is missing)") from None


@torch.no_grad()
def _written(
    module: nn.Module,
    rows: tuple[Tensor, ...],
    names: Sequence[str],
    output: str,
    columns: Mapping[str, list[str]],
    facts: Mapping[str, Any],
    surrogate: Surrogate,
    path: str | Path,
) -> Path:
    """Traces a module at some rows, and writes it with its metadata."""
    onnx = _packages()
    count = torch.export.Dim("rows", min=1)
    with TemporaryDirectory(prefix="rehearsal-") as folder, _quiet():
        draft = Path(folder) / "model.onnx"
        torch.onnx.export(
            module.eval(),
            rows,
            str(draft),
            input_names=list(names),
            output_names=[output],
            dynamic_shapes=tuple({0: count} for _ in rows),
            opset_version=OPERATORS,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        made = onnx.load(str(draft))
    question = surrogate.question()
    told = {
        "version": version("rehearsal-torch"),
        "model": type(surrogate).__name__,
        "columns": dict(columns),
        **facts,
        "question": fingerprint(question) if question is not None else "",
    }
    onnx.helper.set_model_props(made, {"rehearsal_torch": json.dumps(told, sort_keys=True)})
    onnx.checker.check_model(made)
    write_bytes(path, made.SerializeToString(deterministic=True))
    return Path(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the exporter's remarks on its own operators from the user."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
