"""The location of the package and its configuration: a checkout of the repository, or an installed wheel.

A checkout has the configuration beside the package (``conf``); a wheel contains it
(``rehearsal_torch/conf``). Nothing else is read from outside the package.
"""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(str(files(__name__.partition(".")[0])))


# What `rehearsal explore` needs, which is installed with the extra `app`.
APP = ("fastapi", "uvicorn")


def has_app() -> bool:
    """Whether what `rehearsal explore` needs is installed."""
    return all(find_spec(name) is not None for name in APP)


def checkout(package: Path = _PACKAGE) -> Path | None:
    """The root of the repository that the package is imported from; None if it is installed."""
    root = package.parent
    inside = (package / "conf" / "config.yaml").is_file()
    beside = (root / "conf" / "config.yaml").is_file() and (root / "pyproject.toml").is_file()
    return root if beside and not inside else None


def conf_folder(package: Path = _PACKAGE) -> Path:
    """The folder with ``config.yaml``: that of the checkout, otherwise the installed one."""
    root = checkout(package)
    return package / "conf" if root is None else root / "conf"
