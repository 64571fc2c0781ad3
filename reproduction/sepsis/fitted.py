"""The cohort and the models of the sepsis figures: one model per Lipschitz constant, fitted once and kept.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.verbs.train import fit
from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import problem_of, seed_and_use_one_thread
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.user_error import UserError
from reproduction.job import configured
from reproduction.plan import study
from reproduction.sepsis.episode_rows import Case
from reproduction.sepsis.searches import HORIZON, REWARD, search

# The parts of a configuration that determine a fitted model.
_DECISIVE = ("seed", "dataset", "surrogate", "trainer")


def overrides(options: Mapping[str, Any]) -> list[str]:
    """The overrides of every model."""
    return [*study("sepsis")["overrides"], *options["overrides"], "trainer.progress=false"]


def configuration(options: Mapping[str, Any]) -> DictConfig:
    """The configuration of the cohort whose episodes are searched."""
    return configured([*overrides(options), f"dataset.horizon={HORIZON}"])


def cohort(options: Mapping[str, Any]) -> tuple[SepsisSimulated, Sequence[EpisodeCase]]:
    """The simulated cohort, which knows the true distribution, and the episodes that are searched.

    Raises:
        UserError: if more episodes are asked for than the cohort has.
    """
    return _cohort(tuple(options["overrides"]), int(options["episodes"]))


@cache
def _cohort(typed: tuple[str, ...], count: int) -> tuple[SepsisSimulated, Sequence[EpisodeCase]]:
    config = configuration({"overrides": typed})
    seed_and_use_one_thread(int(config.seed))
    problem = problem_of(config)
    assert isinstance(problem, SepsisSimulated)
    if problem.count() < count:
        what = f"only {problem.count()} test patients stay {HORIZON} steps or more; got {count}"
        raise UserError(what, "episodes")
    return problem, [problem.case(index) for index in range(count)]


def model(options: Mapping[str, Any], constant: float) -> TransitionModel:
    """The model with L_h, as ``scripts/train.py +experiment=sepsis`` fits it.

    Raises:
        UserError: if a kept model was fitted under another configuration.
    """
    return _model(tuple(options["overrides"]), int(options["episodes"]), str(options["cache"]), constant)


@cache
def _model(typed: tuple[str, ...], count: int, kept: str, constant: float) -> TransitionModel:
    setting = f"surrogate.mechanism.location_constant={constant}"
    config = configured([*overrides({"overrides": typed}), setting])
    folder = RunFolder(Path(kept) / f"L_h={constant:g}")
    run = build(config, _cohort(typed, count)[0])
    if (folder.path / "checkpoint").is_dir():
        _check_configuration(folder, config)
        found = fit(run, folder)
    else:
        with folder.lock():
            _check_configuration(folder, config)
            found = fit(run, folder)
    assert isinstance(found, TransitionModel)
    return found


def objective(options: Mapping[str, Any], decision_case: EpisodeCase, case: Case) -> CounterfactualReturn:
    """The counterfactual return of an episode under the model of a case."""
    fitted = model(options, case.constant)
    return CounterfactualReturn(fitted, decision_case, LinearReward(REWARD), case.changes)


def decide(options: Mapping[str, Any], decision_case: EpisodeCase, case: Case) -> Decision:
    """The decision of a case's search for an episode."""
    pool = cohort(options)[0].observations()
    found = search(case, pool, float(options["limit_seconds"]))
    return found(objective(options, decision_case, case))


def _check_configuration(folder: RunFolder, config: DictConfig) -> None:
    """Checks that a kept model was fitted under this configuration; writes it down for a new model."""
    wanted: dict[str, Any] = {key: value for key, value in plain(config).items() if key in _DECISIVE}
    kept = folder.read_yaml("config.yaml")
    if kept and kept != wanted:
        raise UserError(
            "a kept model was fitted under another configuration",
            str(folder.path),
            "Delete the folder, and the rows that came from it",
        )
    if not kept:
        folder.write_yaml("config.yaml", wanted)
