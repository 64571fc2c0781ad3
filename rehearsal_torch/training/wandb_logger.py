"""Losses of a training for Weights & Biases, kept in the run folder.

Every training of a part is a run of its own, below the folder of the part:

    <part>/wandb/offline-run-<time>-<id>/run-<id>.wandb        sent later by ``wandb sync FOLDER``

A run holds the losses of each epoch, the settings that determine the training, the versions of Python and of
the library, and the operating system; it holds neither the command, the code, its repository, the user, the
machine, the list of packages nor a key. A key is read by the library alone, from ``WANDB_API_KEY`` or from
where ``wandb login`` keeps it, and only if losses are sent at once. The library's reports about itself are
turned off, unless ``WANDB_ERROR_REPORTING`` says otherwise. A training that is resumed starts a further run,
of the epochs since.

Needs ``pip install 'rehearsal-torch[loggers]'``.

Source: ours; the format is that of the library (docs.wandb.ai), which Lightning's logger writes.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import WandbLogger

from rehearsal_torch.training.callbacks import require

# What the library would otherwise record of its surroundings, or print.
SETTINGS: dict[str, Any] = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "email": "",
    "host": "",
    "program": "",
    "save_code": False,
    "silent": True,
    "symlink": False,
    "username": "",
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}


class PartLogger(WandbLogger):
    """A logger whose run ends with the training, so that the next part's losses get a run of their own."""

    def finalize(self, status: str) -> None:
        """Ends the run, and removes the library's notes on itself, which hold paths of this machine.

        Args:
            status: "success", or how else the training has ended.
        """
        super().finalize(status)
        run = self._experiment
        if run is None:
            return
        notes = Path(run.settings.log_dir)
        run.finish(exit_code=0 if status == "success" else 1)
        if notes.name == "logs":
            shutil.rmtree(notes, ignore_errors=True)


def wandb(folder: Path, project: str = "rehearsal-torch", offline: bool = True) -> WandbLogger:
    """Losses for Weights & Biases under ``folder/wandb``; nothing is sent unless `offline` is false.

    Args:
        folder: The folder of one part's training.
        project: The name of the project.
        offline: Whether to keep the losses on this machine; ``wandb sync`` sends them later.

    Raises:
        ModuleNotFoundError: if the library is not installed.
        ValueError: if the library cannot start a run, as without a key where losses are to be sent.
    """
    require("wandb", "loggers")
    # Read when the library starts, hence set before it is imported.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    from wandb import Error, Settings, init

    folder.mkdir(parents=True, exist_ok=True)
    try:
        run = init(
            project=project,
            name=folder.name,
            dir=folder,
            mode="offline" if offline else "online",
            reinit="create_new",
            settings=Settings(**SETTINGS),
        )
    except Error as error:
        raise ValueError(
            f"logger.wandb: the library cannot start a run ({' '.join(str(error).split())}): type wandb "
            "login or set WANDB_API_KEY, or keep the losses here with logger.wandb.offline=true"
        ) from error
    run.define_metric("trainer/global_step")
    run.define_metric("*", step_metric="trainer/global_step", step_sync=True)
    return PartLogger(name=folder.name, project=project, save_dir=folder, experiment=run)
