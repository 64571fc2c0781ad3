"""Shared by the functions of the Python API: compose a method's configuration, fit its surrogate, decide.

A fit and a decision seed the global random states, as networks and samplers take no generator, and set the
number of threads. Called within `undisturbed`, they leave the caller's as they were (those of a GPU apart).
"""

import platform
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig

from rehearsal_torch.checkpoint import check_usable
from rehearsal_torch.claims.abstention_rules import Claims
from rehearsal_torch.data.table import Table
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.files.package_paths import commit
from rehearsal_torch.methods.hydra_config import composed, options, with_settings
from rehearsal_torch.methods.instantiate import seed_and_use_one_thread
from rehearsal_torch.methods.run_parts import Method, Run, fitted, suits
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.round_record import Round
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.tipping_strength import Overturning
from rehearsal_torch.user_error import RequestError, UserError, as_user_error, did_you_mean

PACKAGES = ("rehearsal-torch", "torch", "numpy")


@contextmanager
def in_words() -> Iterator[None]:
    """Raises a `UserError` as a `RequestError`, and a ValueError without the library's error that caused
    it.
    """
    try:
        yield
    except UserError as error:
        raise RequestError(str(error)) from None
    except ValueError as error:
        raise error from None


@contextmanager
def undisturbed(seeds: bool = True) -> Iterator[None]:
    """Restores torch's number of threads and, unless `seeds` is false, all global random states."""
    threads, states = torch.get_num_threads(), (random.getstate(), np.random.get_state())  # noqa: NPY002
    with torch.random.fork_rng(devices=[], enabled=seeds):
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            if seeds:
                random.setstate(states[0])
                np.random.set_state(states[1])  # noqa: NPY002


def configuration(
    method: str,
    settings: Mapping[str, object],
    groups: Sequence[str],
    seed: int = 0,
    experiment: str | None = None,
    reward: str | None = None,
) -> DictConfig:
    """The configuration of a method, a file in ``conf/decision``. A RequestError for settings of other
    groups, a UserError for unknown keys or options and values of another type.

    Args:
        settings: Dotted key to value, or group to an option, such as ``surrogate`` to ``nested_ridge_cg``.
        groups: The configuration groups in which settings are allowed.
        experiment: The name of a file in ``conf/experiment``; None for none.
        reward: The name of a file in ``conf/reward``; None for that of the method.
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
    choices = {key: str(value) for key, value in settings.items() if isinstance(value, str) and options(key)}
    choices |= {} if reward is None else {"reward": reward}
    for group, option in choices.items():
        if option not in (known := options(group)):
            raise UserError(
                f"there is no {group} called {option!r}",
                remedy=did_you_mean(option, known) or f"See the folder conf/{group}",
            )
    config = composed(experiment, decision=method, **choices)
    return with_settings(
        config, {"seed": seed, **{key: value for key, value in settings.items() if key not in choices}}
    )


def refuse_arguments(settings: Mapping[str, object], taken: Mapping[str, str]) -> None:
    """Refuses settings that are arguments: key to the argument's name."""
    for key, argument in taken.items():
        if key in settings:
            raise RequestError(f"{key!r} is the argument `{argument}`: give it there")


def provenance(seed: int, rows: Table) -> dict[str, Any]:
    """The origin of a model, for its card."""
    return {
        "seed": seed,
        "commit": commit(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "data_fingerprint": rows.fingerprint(),
    }


def learnt(run: Run, workers: int = 1) -> Surrogate:
    """The fitted surrogate of a run, as ``rehearsal decide`` fits it; nothing is written."""
    surrogate = run.surrogate()
    suits(run, surrogate)
    with as_user_error("training"):
        surrogate = fitted(run, None, surrogate, workers=workers).surrogate
    check_usable(surrogate)
    return surrogate


def decided(
    problem: Problem,
    surrogate: Surrogate,
    method: Method,
    seed: int,
    workers: int = 1,
    claims: Claims | None = None,
    overturning: Overturning | None = None,
) -> list[Round]:
    """The rounds of all cases, in order; `claims` replace those of the method, which None keeps."""
    suits(method, surrogate)
    if method.search.draws:
        seed_and_use_one_thread(seed)
    else:
        torch.set_num_threads(1)
    with as_user_error("deciding"):
        return list(
            rounds(
                problem,
                surrogate,
                method.objective,
                method.search,
                claims=claims,
                seed=seed,
                workers=workers,
                overturning=overturning,
            )
        )
