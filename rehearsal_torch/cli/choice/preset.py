"""A method in the place of another: a configuration with surrogate, objective and search of a preset."""

from copy import deepcopy
from functools import cache
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf, open_dict

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.validation import CONF

GROUPS = ("surrogate", "objective", "search", "certificate")
# The key that asks for a choice (conf/decision/auto.yaml), and the preset that has it.
CHOOSE, AUTO = "choose", "auto"


def with_method(config: DictConfig, method: str) -> DictConfig:
    """A copy of a configuration in which another method decides, with its own settings.

    Args:
        config: The whole configuration, of a problem of kind ``rehearse``.
        method: The name of a file in ``conf/decision``.
    """
    parts = _parts(method)
    made = deepcopy(config)
    with open_dict(made):
        made.pop(CHOOSE, None)
        for name, node in parts.items():
            made[name] = deepcopy(node)
    return made


@cache
def _parts(method: str) -> dict[str, Any]:
    """The groups of a method, with references to keys such as ``seed`` unresolved."""
    hydra = GlobalHydra.instance().hydra
    try:
        config, _ = composed(CONF, ["+experiment=own_table", f"decision={method}"], False, complete=False)
    finally:
        # A job of Hydra may be under way.
        GlobalHydra.instance().hydra = hydra
    names = [*GROUPS, *([CHOOSE] if CHOOSE in config else [])]
    return {name: OmegaConf.to_container(config[name], resolve=False) for name in names}
