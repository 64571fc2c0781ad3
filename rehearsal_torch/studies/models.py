"""The models of the sepsis study: one for each Lipschitz constant, fitted once and kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from rehearsal_torch.checkpoint import card
from rehearsal_torch.cli.build import plain
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import fit
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.surrogates.transition import TransitionModel

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem

_DECISIVE = ("seed", "dataset", "surrogate", "trainer")


def configured(conf: Path, overrides: Sequence[str]) -> DictConfig:
    """The configuration of ``+experiment=sepsis``, with overrides, outside of a Hydra job."""
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        return compose("config", ["+experiment=sepsis", *overrides])


def models(
    conf: Path, cache: Path, problem: "Problem", constants: Sequence[float], overrides: Sequence[str]
) -> dict[float, TransitionModel]:
    """L_h to the fitted model, as ``scripts/train.py +experiment=sepsis`` fits it.

    Args:
        conf: The folder of configurations.
        cache: Where models are kept, a folder each.
        problem: What they are fitted to.
        constants: The values of L_h.
        overrides: What else differs from the experiment.

    Raises:
        UserError: if a kept model was fitted under another configuration.
    """
    found = {}
    for constant in constants:
        config = configured(conf, [*overrides, f"surrogate.mechanism.location_constant={constant}"])
        folder = RunFolder(cache / f"L_h={constant:g}")
        asked = {key: value for key, value in plain(config).items() if key in _DECISIVE}
        with folder.lock():
            kept = folder.read_yaml("config.yaml")
            if kept and kept != asked:
                raise UserError(
                    "a kept model was fitted under another configuration",
                    str(folder.path),
                    "Delete the folder, and the rows that came from it",
                )
            folder.write_yaml("config.yaml", asked)
            model = fit(build(config, problem), folder)
        assert isinstance(model, TransitionModel)
        found[constant] = model
    return found


def fingerprints(cache: Path, constants: Sequence[float]) -> dict[str, str]:
    """L_h to the SHA-256 of the kept model's weights."""
    return {
        f"{constant:g}": str(card(cache / f"L_h={constant:g}" / "checkpoint")["weights_sha256"])
        for constant in constants
    }
