"""What the sepsis study searches in: episodes, and a model for each Lipschitz constant, fitted once and kept.

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
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, LinearReward
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.job import configured
from rehearsal_torch.studies.sepsis.episode_rows import Case
from rehearsal_torch.studies.sepsis.searches import REWARD, search
from rehearsal_torch.surrogates.transition import TransitionModel

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem

_DECISIVE = ("seed", "dataset", "surrogate", "trainer")


@dataclass(frozen=True)
class Fitted:
    """What every search of the study needs.

    Attributes:
        decision_cases: The episodes.
        models: L_h to the model.
        pool: Training transitions.
        problem: Who knows the truth.
        limit: Seconds an episode may take.
    """

    decision_cases: Sequence[EpisodeCase]
    models: Mapping[float, TransitionModel]
    pool: Table
    problem: SepsisSimulated
    limit: float

    def objective(self, decision_case: EpisodeCase, case: Case) -> CounterfactualReturn:
        """The return of an episode under a case's model.

        Args:
            decision_case: The episode.
            case: What is searched how.
        """
        return CounterfactualReturn(
            self.models[case.constant], decision_case, LinearReward(REWARD), case.changes
        )

    def decide(self, decision_case: EpisodeCase, case: Case) -> Decision:
        """What a case's search recommends for an episode.

        Args:
            decision_case: The episode.
            case: What is searched how.
        """
        return search(case, self.pool, self.limit)(self.objective(decision_case, case))


def models(
    conf: Path, cache: Path, problem: "Problem", constants: Sequence[float], overrides: Sequence[str]
) -> dict[float, TransitionModel]:
    """L_h to the fitted model, as ``scripts/train.py +experiment=sepsis`` fits it.

    Args:
        conf: The folder of configurations.
        cache: Where models are kept, a folder each.
        problem: What they are fitted to.
        constants: The values of L_h.
        overrides: The experiment, and what else differs from it.

    Raises:
        UserError: if a kept model was fitted under another configuration.
    """
    found = {}
    for constant in constants:
        config = configured(conf, [*overrides, f"surrogate.mechanism.location_constant={constant}"])
        folder = RunFolder(cache / f"L_h={constant:g}")
        with folder.lock():
            _unchanged(folder, config)
            model = fit(build(config, problem), folder)
        assert isinstance(model, TransitionModel)
        found[constant] = model
    return found


def fingerprints(cache: Path, constants: Sequence[float]) -> dict[str, str]:
    """L_h to the SHA-256 of the kept model's weights.

    Args:
        cache: Where models are kept.
        constants: The values of L_h.
    """
    return {
        f"{constant:g}": str(card(cache / f"L_h={constant:g}" / "checkpoint")["weights_sha256"])
        for constant in constants
    }


def _unchanged(folder: RunFolder, config: DictConfig) -> None:
    """Whether a kept model was fitted under this configuration; one that is not there is noted.

    Raises:
        UserError: if it was fitted under another.
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
