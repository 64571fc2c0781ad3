"""The tasks that Hydra runs, each a function of a configuration, by the name of its command.

What a task does lies in a module of its own (`cli.verbs`), which is imported once the arguments are checked:
errors in them are answered without importing torch.
"""

import gc
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from omegaconf import DictConfig

# Overrides that belong to one command line, not to the run.
APART = ("trusted=", "parallel=", "dask.")
# What to do where the folder of a run cannot be written to.
ELSEWHERE = "Choose a folder that can be written to by out=FOLDER"
# The errors raised by a job outside a sweep. Hydra would print its own line about an error that passes
# through it.
raised: list[Exception] = []


def train(config: DictConfig) -> None:
    """One training in its run folder."""
    _carry_out("train", config)


def decide(config: DictConfig) -> None:
    """The decisions for one cohort, or one shard of it, in its run folder."""
    _carry_out("decide", config)


def cross_validate(config: DictConfig) -> None:
    """All folds of one surrogate in its run folder."""
    _carry_out("cross_validate", config)


def after_sweep(script: str, folder: Path) -> None:
    """What a command does with the folder of a sweep after its jobs."""
    if script == "cross_validate":
        import_module("rehearsal_torch.cli.verbs.cross_validate").grid(folder)


def finish(
    out: Path, jobs: list[list[str]], script: str, again: Sequence[str], trusted: Sequence[str] | None
) -> int:
    """Ends a sweep, and returns its exit code (`cli.sweep_end`)."""
    code: int = import_module("rehearsal_torch.cli.sweep_end").finish(out, jobs, script, again, trusted)
    return code


def _carry_out(script: str, config: DictConfig) -> None:
    # Of what modules load, nothing is garbage; looking for some takes a tenth of the loading, and of the fit.
    gc.disable()
    try:
        work = import_module(f"rehearsal_torch.cli.verbs.{script}").work
        carry_out = import_module("rehearsal_torch.cli.job").carry_out
        gc.freeze()
    finally:
        gc.enable()
    carry_out(script, work, config)


def recordable(overrides: Iterable[str]) -> list[str]:
    """Overrides without those for the run's location, for trust and for a cluster, which belong to one
    command line, not to the run.
    """
    return [text for text in overrides if not text.lstrip("+").startswith(("out=", "resume=", *APART))]
