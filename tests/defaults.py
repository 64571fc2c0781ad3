"""Whether the defaults of a class or function are those of its configuration file."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import yaml

from tests.places import CONF


def off_defaults(name: str, target: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The settings of a configuration file that differ from the defaults, as (default, configured).

    Args:
        name: The file below ``conf``, without its suffix, such as ``search/astar``.
        target: What it configures.

    Raises:
        KeyError: if it has a setting that `target` does not take.
    """
    conf = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    defaults = {key: each.default for key, each in signature(target).parameters.items()}
    plain = {key: value for key, value in conf.items() if not key.startswith("_")}
    return {key: (defaults[key], value) for key, value in plain.items() if defaults[key] != value}
