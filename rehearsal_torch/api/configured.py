"""Methods built from their configuration: the interface between the verbs and the command line's modules.

A method is configured exactly as by ``rehearsal decide``: the same files of ``conf``, the same checks of keys
and values, the same order of construction. In addition, global state is restored afterwards: the random
states of Python, NumPy and torch, torch's number of threads and Hydra's state.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, open_dict

from rehearsal_torch.api.methods import RequestError
from rehearsal_torch.cli.batch_decisions import Method, method_of, suits
from rehearsal_torch.cli.build import plain, seed_and_use_one_thread, tasked
from rehearsal_torch.cli.cross_fitting import cross_fitted_claims
from rehearsal_torch.cli.graph_members import fitted_under, judged_by_graphs
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.cli.verbs.fitting import fitted
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.claims import CrossFittedClaims
    from rehearsal_torch.data.decision import Decision
    from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
    from rehearsal_torch.loop import Claims
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.round_line import Round
    from rehearsal_torch.surrogates.overturning import Overturning
    from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
    from rehearsal_torch.surrogates.surrogate import Surrogate

__all__ = [
    "Method",
    "configuration",
    "decided",
    "decisions",
    "in_words",
    "judged",
    "learnt",
    "method_of",
    "over_graphs",
    "plain",
    "under_graph",
    "undisturbed",
]

# The names of the files of conf.
OPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@contextmanager
def in_words() -> Iterator[None]:
    """Re-raises errors of the configuration and the data with their message alone, without chained library
    errors.

    Raises:
        ValueError: `RequestError` in place of the command line's `UserError`; others unchanged.
    """
    try:
        yield
    except UserError as error:
        raise RequestError(str(error)) from None
    except ValueError as error:
        raise error from None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Restores the caller's random states, number of threads and Hydra state."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  deciding seeds the global state
    threads, hydra = torch.get_num_threads(), GlobalHydra.instance().hydra
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002
            torch.set_num_threads(threads)
            GlobalHydra.instance().hydra = hydra


def configuration(
    overrides: Sequence[str], settings: Mapping[str, object], groups: Sequence[str]
) -> DictConfig:
    """The configuration of a method.

    Args:
        overrides: Overrides as on the command line, such as ``decision=cme``.
        settings: Further overrides, dotted key to plain value, or group to the name of one of its options,
            such as ``surrogate`` to ``nested_ridge_cg``.
        groups: The configuration groups in which settings are allowed.

    Raises:
        RequestError: if a setting belongs to another group, or is another data set.
        UserError: if a key does not exist, or a value has another type than the one that it replaces.
    """
    unknown = [key for key in settings if key.partition(".")[0] not in groups]
    if unknown:
        raise RequestError(
            f"{', '.join(map(repr, unknown))} cannot be set here: expected settings of {', '.join(groups)}, "
            f"with dots, such as **{{{groups[0] + '.KEY'!r}: VALUE}}"
        )
    if "dataset" in settings:
        raise RequestError(
            "'dataset' cannot be chosen here: the rows are an argument; its settings have dots, such as "
            "**{'dataset.validation': 0.25}"
        )
    typed = [*overrides, *(f"{key}={_chosen(value, key)}" for key, value in settings.items())]
    config, _ = composed(CONF, typed, multirun=False)
    with open_dict(config):
        del config["hydra"]
    return config


def _chosen(value: object, key: str) -> str:
    """A value; the name of an option of a group without quotes."""
    if isinstance(value, str) and OPTION.fullmatch(value) and (CONF / key / f"{value}.yaml").is_file():
        return value
    return _written(value, key)


def _written(value: object, key: str) -> str:
    """A plain value in Hydra's grammar."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | Path):
        # Hydra reads a backslash as an escape before a quote, and nowhere else.
        quoted = re.sub(r"(\\*)('|\Z)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), str(value))
        return f"'{quoted}'"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_key(name)}:{_written(item, key)}" for name, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(_written(item, key) for item in value) + "]"
    raise RequestError(
        f"{key}: expected a number, a string, true or false, None, or lists and mappings of these; got a "
        f"{type(value).__name__}"
    )


def _key(name: object) -> str:
    """A mapping's key, with the special characters of Hydra's grammar escaped."""
    return "".join(f"\\{char}" if char in "\\()[]{}:=, \t" else char for char in str(name))


def learnt(
    config: DictConfig, problem: "Problem", method: Method | None = None, workers: int = 1
) -> "Surrogate":
    """The fitted surrogate of a problem, exactly as ``rehearsal decide`` fits it.

    Args:
        config: The configuration; the problem's task is written into it.
        problem: The problem whose observations it is fitted to.
        method: The method that will decide with it; None for that of the configuration.
        workers: The number of processes that share the fits.

    Raises:
        UserError: if surrogate, method and data are incompatible.
    """
    tasked(config, problem)
    with TemporaryDirectory(prefix="rehearsal-") as folder:
        return fitted(config, RunFolder(folder), problem, method, workers)


def judged(config: DictConfig, problem: "Problem", method: Method, workers: int = 1) -> "CrossFittedClaims":
    """Claims from rows that did not choose, exactly as ``rehearsal decide claims=cross_fitted`` makes them.

    Args:
        config: The configuration, as `learnt` left it.
        workers: The number of processes that share the folds.

    Raises:
        UserError: if a fold cannot be fitted to.
    """
    run = build(config, problem)
    run = replace(run, objective=method.objective, search=method.search)
    return cross_fitted_claims(run, workers=workers)


def over_graphs(
    config: DictConfig,
    problem: "Problem",
    method: Method,
    surrogate: "Surrogate",
    graphs: object,
    claims: "CrossFittedClaims | None",
) -> "Claims | None":
    """The claims, followed by the graphs under which the decisions stand, as ``rehearsal decide graphs=FILE``
    finds them.

    Args:
        config: The configuration, as `learnt` left it.
        graphs: The graphs that may be true (`graphs.graph_class`); None for none.
        claims: Replaces the claims of the decisions; None keeps the method's own.

    Raises:
        UserError: if the graphs cannot be used.
    """
    if graphs is None:
        return claims
    run = build(config, problem)
    run = replace(run, objective=method.objective, search=method.search)
    return judged_by_graphs(run, surrogate, graphs, claims)


def under_graph(
    config: DictConfig, problem: "Problem", method: Method, graph: "RehearsalGraph"
) -> "RehearsalSurrogate":
    """The surrogate of a problem, fitted under another graph of its variables.

    Args:
        config: The configuration, as `learnt` left it.
    """
    run = build(config, problem)
    return fitted_under(replace(run, objective=method.objective, search=method.search), graph)


def decisions(
    problem: "Problem",
    surrogate: "Surrogate",
    method: Method,
    seed: int,
    workers: int = 1,
    claims: "Claims | None" = None,
    overturning: "Overturning | None" = None,
) -> "list[Decision]":
    """A decision for each case of a problem, in order.

    Args:
        workers: The number of processes that share the cases.
        claims: Replaces the claims of the decisions; None keeps the method's own.

    Raises:
        UserError: if the method does not suit the surrogate, or the surrogate yields non-finite numbers.
    """
    return [each.decision for each in decided(problem, surrogate, method, seed, workers, claims, overturning)]


def decided(
    problem: "Problem",
    surrogate: "Surrogate",
    method: Method,
    seed: int,
    workers: int = 1,
    claims: "Claims | None" = None,
    overturning: "Overturning | None" = None,
) -> "list[Round]":
    """The rounds of all cases of a problem, in order: what `decisions` returns, with cases and trajectories.

    Raises:
        UserError: see `decisions`.
    """
    from rehearsal_torch.loop import rounds

    suits(method, surrogate)
    seed_and_use_one_thread(seed)
    with as_user_error("deciding"):
        found = rounds(
            problem,
            surrogate,
            method.objective,
            method.search,
            claims=claims,
            seed=seed,
            workers=workers,
            overturning=overturning,
        )
        return list(found)
