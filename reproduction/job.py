"""One job: what ``scripts/decide.py`` does with its overrides, without a run folder."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.files.package_paths import conf_folder
from rehearsal_torch.methods.run_parts import build, cross_fitted_claims, fitted
from rehearsal_torch.problems.problem import Problem
from reproduction.calibration.interval_levels import IntervalLevels


def configured(overrides: Sequence[str]) -> DictConfig:
    """The configuration of some overrides, as typed on the command line."""
    with initialize_config_dir(str(conf_folder().resolve()), version_base="1.3"):
        return compose("config", list(overrides))


def decided_cases(
    config: DictConfig, problem: Problem | None = None, levels: Sequence[float] = ()
) -> tuple[list[dict[str, Any]], float]:
    """The decisions for all cases of a problem, as lines of ``decisions.jsonl`` with their seconds.

    Args:
        config: The whole configuration.
        problem: The problem, if already built; None builds it from the configuration.
        levels: Further levels at which claims have intervals, in the trace (`calibration.interval_levels`).

    Returns:
        The lines, and the seconds of the fit.
    """
    run = build(config, problem)
    fit = fitted(run)
    claims = cross_fitted_claims(run) if run.config.get("claims") == "cross_fitted" else None
    told = IntervalLevels(fit.surrogate, run.objective, levels, claims) if levels else claims
    lines = [
        json.loads(each.line()) | {"seconds": each.decision.seconds}
        for each in played(run, fit.surrogate, claims=told)
    ]
    return lines, fit.seconds


def decided_rounds(config: DictConfig, problem: Problem | None = None) -> Iterator[dict[str, Any]]:
    """Rounds that learn from each other: the decision of each, as a line of ``decisions.jsonl``.

    The ``seconds`` of a line are the processor time since the previous one, of everything in between.
    """
    run = build(config, problem)
    decisions = played(run, fitted(run, validated=False).surrogate)
    before = time.process_time()
    for each in decisions:
        now = time.process_time()
        yield json.loads(each.line()) | {"seconds": now - before}
        before = time.process_time()
