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

Surfaces exist for linear Gaussian models with one outcome (``care``) and for outcome regressions
(``outcome_regression``); `adapters.onnx_modules` has their formulas.

Needs ``pip install 'rehearsal-torch[onnx]'``.

Source: ours; the format is that of the ONNX project (onnx.ai), operator set 18.
"""

import json
import logging
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

from rehearsal_torch.adapters.onnx_modules import LinearSurface, OnnxError, RegressionSurface, Transition
from rehearsal_torch.data.question import fingerprint
from rehearsal_torch.files.writing import write_bytes
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.transition import TransitionModel

OPERATORS = 18
MISSING = "ONNX files need further packages, which are not installed: pip install 'rehearsal-torch[onnx]'"
KINDS = "a linear Gaussian model with one outcome (method care) or an outcome regression (outcome_regression)"


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
    # The constants of a file lie on the CPU, wherever the model is.
    model = model.on_cpu()
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


def export_surface(
    surrogate: Surrogate,
    path: str | Path,
    altered: Sequence[str] | None = None,
    draws: int = 64,
    points: int = 128,
) -> Path:
    """Writes the probability of a desired outcome as a function of context and action as an ONNX file.

    Args:
        surrogate: A fitted model (`RehearsalModel.surrogate`).
        path: The file.
        altered: The candidate set; None takes the only one.
        draws: D, the number of posterior functions of an outcome regression; the default, as that of
            `points`, is that of the method, which gives its estimates.
        points: P, the number of residuals per function.

    Returns:
        The file.

    Raises:
        OnnxError: if there is no such set or several, the model has no surface, the file would be larger than
            1 GiB, or the packages are missing.
    """
    if not isinstance(surrogate, LinearSurrogate | OutcomeRegression):
        raise OnnxError(f"expected {KINDS}; got a {type(surrogate).__name__}")
    task = surrogate.task
    names = tuple(task.candidates[0] if altered is None and len(task.candidates) == 1 else altered or ())
    if names not in task.candidates:
        offered = ", ".join("{" + ", ".join(each) + "}" for each in task.candidates)
        raise OnnxError(f"altered: expected one of the candidate sets {offered}; got {list(names)}")
    # The constants of a file lie on the CPU, wherever the model is.
    surrogate = surrogate.on_cpu()
    module: nn.Module
    if isinstance(surrogate, OutcomeRegression):
        module = RegressionSurface(surrogate, names, draws, points)
    else:
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
        try:
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
        except torch.onnx.OnnxExporterError as error:
            raise OnnxError(
                f"the exporter of torch {torch.__version__} cannot write this {type(surrogate).__name__} as "
                f"an ONNX file ({str(error.__cause__ or error).splitlines()[0]}): please report it"
            ) from error
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
