"""The episodes and models of the sepsis study: one model per Lipschitz constant, fitted once and kept.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from rehearsal_torch.checkpoint import card
from rehearsal_torch.cli.build import plain
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import fit
from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.job import configured
from rehearsal_torch.studies.sepsis.episode_rows import Case
from rehearsal_torch.studies.sepsis.searches import REWARD, search
from rehearsal_torch.surrogates.transition import TransitionModel

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem

# The parts of a configuration that determine a fitted model.
_DECISIVE = ("seed", "dataset", "surrogate", "trainer")


@dataclass(frozen=True)
class Fitted:
    """Episodes and models, as all searches of the study share them.

    Attributes:
        decision_cases: The episodes that are searched.
        models: L_h to the fitted model.
        pool: Training transitions.
        problem: The simulated cohort, which knows the true distribution.
        limit: Maximum wall-clock seconds of a search.
    """

    decision_cases: Sequence[EpisodeCase]
    models: Mapping[float, TransitionModel]
    pool: Table
    problem: SepsisSimulated
    limit: float

    def objective(self, decision_case: EpisodeCase, case: Case) -> CounterfactualReturn:
        """The counterfactual return of an episode under the model of a case.

        Args:
            decision_case: The episode.
            case: The search and its settings.
        """
        return CounterfactualReturn(
            self.models[case.constant], decision_case, LinearReward(REWARD), case.changes
        )

    def decide(self, decision_case: EpisodeCase, case: Case) -> Decision:
        """The decision of a case's search for an episode.

        Args:
            decision_case: The episode.
            case: The search and its settings.
        """
        return search(case, self.pool, self.limit)(self.objective(decision_case, case))


def models(
    conf: Path, cache: Path, problem: "Problem", constants: Sequence[float], overrides: Sequence[str]
) -> dict[float, TransitionModel]:
    """L_h to the fitted model, as ``scripts/train.py +experiment=sepsis`` fits it.

    Args:
        conf: The folder of configurations.
        cache: The folder of the kept models, each in a folder of its own.
        problem: The source of the training episodes.
        constants: The values of L_h.
        overrides: Overrides that select the experiment and its settings.

    Raises:
        UserError: if a kept model was fitted under another configuration.
    """
    found = {}
    for constant in constants:
        config = configured(conf, [*overrides, f"surrogate.mechanism.location_constant={constant}"])
        folder = RunFolder(cache / f"L_h={constant:g}")
        with folder.lock():
            _check_configuration(folder, config)
            model = fit(build(config, problem), folder)
        assert isinstance(model, TransitionModel)
        found[constant] = model
    return found


def fingerprints(cache: Path, constants: Sequence[float]) -> dict[str, str]:
    """L_h to the SHA-256 digest of the kept model's weights.

    Args:
        cache: The folder of the kept models.
        constants: The values of L_h.
    """
    return {
        f"{constant:g}": str(card(cache / f"L_h={constant:g}" / "checkpoint")["weights_sha256"])
        for constant in constants
    }


def _check_configuration(folder: RunFolder, config: DictConfig) -> None:
    """Checks that a kept model was fitted under this configuration; writes it down for a new model.

    Raises:
        UserError: if the model was fitted under another configuration.
    """
    asked: dict[str, Any] = {key: value for key, value in plain(config).items() if key in _DECISIVE}
    kept = folder.read_yaml("config.yaml")
    if kept and kept != asked:
        raise UserError(
            "a kept model was fitted under another configuration",
            str(folder.path),
            "Delete the folder, and the rows that came from it",
        )
    folder.write_yaml("config.yaml", asked)
