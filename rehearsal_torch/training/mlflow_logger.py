"""Losses of a training for MLflow, kept in files of the run folder or in a store of one's own.

    <part>/mlflow/<experiment>/<run>/metrics/train_loss        a line an epoch: time, loss, step

A run holds the losses of each epoch and the settings that determine the training; it holds neither the
command, the code, its repository, the user nor the machine, which Lightning's logger would add. A training
that is resumed starts a further run, of the epochs since. The library's reports about its use are turned off,
unless ``MLFLOW_DISABLE_TELEMETRY`` says otherwise, and so is its refusal of files as a store, unless
``MLFLOW_ALLOW_FILE_STORE`` does.

Needs ``pip install 'rehearsal-torch[loggers]'``, and for a data base as the store the whole of MLflow, or
``sqlalchemy`` and ``alembic``.

Source: ours; the formats are those of the library (mlflow.org), which Lightning's logger writes.
"""

import os
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from lightning.pytorch.loggers import MLFlowLogger

from rehearsal_torch.training.callbacks import require

SECRETS = ("key", "pass", "pwd", "secret", "token")


def mlflow(folder: Path, uri: str | None = None, experiment: str = "rehearsal-torch") -> MLFlowLogger:
    """Losses for MLflow.

    Args:
        folder: The folder of one part's training.
        uri: The tracking store: ``sqlite:///FILE`` or the address of a server; None keeps files under
            ``folder/mlflow``, whatever ``MLFLOW_TRACKING_URI`` says. The library reads a name and a password
            for a server from ``MLFLOW_TRACKING_USERNAME`` and ``MLFLOW_TRACKING_PASSWORD``.
        experiment: The name of the experiment; made if the store has none of this name.

    Raises:
        ModuleNotFoundError: if the library is not installed.
        ValueError: if the address holds a name, a password or a key, as a run's configuration is written to
            its folder, or if the library cannot use the store.
    """
    if uri is not None and _secret(uri):
        raise ValueError(
            "logger.mlflow.uri: expected an address without a name, a password or a key, as the "
            "configuration of a run is written to its folder: set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD in the environment instead"
        )
    require("mlflow", "loggers")
    # Read when the library is imported.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    if uri is None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    store = (folder / "mlflow").resolve().as_uri() if uri is None else uri
    try:
        client = MlflowClient(store)
        known = client.get_experiment_by_name(experiment)
        place = client.create_experiment(experiment) if known is None else known.experiment_id
        # Made here: Lightning's logger would add the user, the script and the commit of the repository.
        run = client.create_run(place, run_name=folder.name)
    except (ImportError, MlflowException) as error:
        raise ValueError(
            f"logger.mlflow.uri: the library cannot use {store} ({' '.join(str(error).split())}): a data "
            "base needs pip install sqlalchemy alembic, and a server must be running; without an address, "
            "the losses are kept in files of the run folder"
        ) from error
    return MLFlowLogger(experiment_name=experiment, tracking_uri=store, run_id=run.info.run_id)


def _secret(uri: str) -> bool:
    """Whether an address holds a name, a password or a key."""
    parts = urlsplit(uri)
    named = (name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return "@" in parts.netloc or any(word in name for name in named for word in SECRETS)
