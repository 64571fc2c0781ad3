"""Loggers: where Lightning writes losses besides the history.

Each takes the folder of one part's training and makes a logger that writes there. Lightning is imported when a
logger is made, not when a configuration is read.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger


def csv(folder: Path) -> "Logger":
    """Losses as ``folder/csv/metrics.csv``."""
    from lightning.pytorch.loggers import CSVLogger

    return CSVLogger(folder, name="", version="csv")


def tensorboard(folder: Path) -> "Logger":
    """Losses for TensorBoard under ``folder/tensorboard``.

    Raises:
        ModuleNotFoundError: if TensorBoard is not installed.
    """
    from importlib.util import find_spec

    from lightning.pytorch.loggers import TensorBoardLogger

    if find_spec("tensorboard") is None:
        raise ModuleNotFoundError("expected the package tensorboard; it is not installed: pip install 'rehearsal-torch[tensorboard]' or choose logger=csv")
    return TensorBoardLogger(folder, name="", version="tensorboard")
