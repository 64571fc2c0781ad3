"""Losses for MLflow: what the library is asked for, and what a store of it holds."""

import os
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from rehearsal_torch.data.part import Trained
from rehearsal_torch.training import mlflow_logger
from rehearsal_torch.training.descent import Descent


class Line(Trained):
    """A line through zero."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def loss(self, *examples):
        return (examples[0] * self.weight - examples[1]).square().mean()

    def finish(self):
        pass


def rows(seed=0):
    inputs = torch.randn(40, generator=torch.Generator().manual_seed(seed))
    return inputs, 3 * inputs


class RefusedError(Exception):
    """Stands in for the library's error."""


class Client:
    """Stands in for the library's client of a store."""

    stores: dict

    def __init__(self, uri):
        if uri.startswith("http://nobody"):
            raise RefusedError("no answer\nafter 7 tries")
        self.uri = uri
        self.runs = self.stores.setdefault(uri, {})

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id=name) if name in self.runs else None

    def create_experiment(self, name):
        self.runs[name] = []
        return name

    def create_run(self, experiment, run_name):
        self.runs[experiment].append(run_name)
        return SimpleNamespace(info=SimpleNamespace(run_id=f"{experiment}-{len(self.runs[experiment])}"))


@pytest.fixture
def stores(monkeypatch):
    """The stores that a stand-in for the library is asked for."""
    monkeypatch.setattr(mlflow_logger, "require", lambda *names: None)
    monkeypatch.setattr("lightning.pytorch.loggers.mlflow._MLFLOW_AVAILABLE", True)
    tracking = SimpleNamespace(MlflowClient=Client)
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(tracking=tracking))
    monkeypatch.setitem(sys.modules, "mlflow.tracking", tracking)
    monkeypatch.setitem(sys.modules, "mlflow.exceptions", SimpleNamespace(MlflowException=RefusedError))
    monkeypatch.setattr(Client, "stores", {}, raising=False)
    for name in ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_ALLOW_FILE_STORE"):
        # Set first, so that what the logger sets is taken back.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://elsewhere.org")
    return Client.stores


def test_without_the_library_it_is_said_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"^expected the package mlflow; it is not installed: pip install "
        r"'rehearsal-torch\[loggers\]' or choose logger=csv$",
    ):
        mlflow_logger.mlflow(tmp_path)


def test_losses_are_kept_in_the_folder_whatever_the_environment_says(stores, tmp_path):
    logger = mlflow_logger.mlflow(tmp_path / "part")
    assert stores == {(tmp_path / "part/mlflow").as_uri(): {"rehearsal-torch": ["part"]}}
    assert logger._run_id == "rehearsal-torch-1"
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == os.environ["MLFLOW_ALLOW_FILE_STORE"] == "true"


def test_a_store_of_ones_own_gathers_runs_of_one_experiment(stores, tmp_path):
    made = [mlflow_logger.mlflow(tmp_path / part, "sqlite:///runs.db", "trial") for part in ("a", "b")]
    assert stores == {"sqlite:///runs.db": {"trial": ["a", "b"]}}
    assert [each._run_id for each in made] == ["trial-1", "trial-2"]
    assert "MLFLOW_ALLOW_FILE_STORE" not in os.environ


@pytest.mark.parametrize(
    "uri",
    [
        "https://me:opensesame@host.org/store",
        "https://opensesame@host.org",
        "postgresql://host/runs?password=opensesame",
        "https://host.org/?access_token=opensesame",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(stores, tmp_path, uri):
    with pytest.raises(ValueError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        mlflow_logger.mlflow(tmp_path, uri)
    assert "opensesame" not in str(caught.value)
    assert stores == {}


def test_a_store_that_cannot_be_used_is_one_paragraph(stores, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"cannot use http://nobody \(no answer after 7 tries\): a data base needs",
    ):
        mlflow_logger.mlflow(tmp_path, "http://nobody")
    assert stores == {}


def test_addresses_without_secrets_are_taken(stores, tmp_path):
    uris = ["http://localhost:5000", "sqlite:////srv/runs.db?timeout=30", "file:///srv/runs"]
    for uri in uris:
        mlflow_logger.mlflow(tmp_path, uri)
    assert list(stores) == uris


@pytest.mark.slow
def test_a_store_of_the_library_holds_the_losses_and_no_surroundings(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="MLflow is an option: pip install 'rehearsal-torch[loggers]'")
    # The library sets the address in the environment, too.
    for name, value in {"DISABLE_TELEMETRY": "true", "ALLOW_FILE_STORE": "true"}.items():
        monkeypatch.setenv(f"MLFLOW_{name}", value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("USER", "somebody-i-know")
    from mlflow.tracking import MlflowClient

    how = Descent(
        max_epochs=3,
        batch_size=40,
        progress=False,
        folder=tmp_path,
        loggers={"mlflow": mlflow_logger.mlflow},
    )
    history = how.train(Line(), rows(), rows(1), "line")
    client = MlflowClient((tmp_path / "line/mlflow").as_uri())
    place = client.get_experiment_by_name("rehearsal-torch").experiment_id
    (run,) = client.search_runs([place])
    for loss in ("train_loss", "held_out_loss"):
        read = [each.value for each in client.get_metric_history(run.info.run_id, loss)]
        assert read == pytest.approx(
            [value for _, name, value in history if name == f"line/{loss}"], rel=1e-6
        )
    assert run.info.status == "FINISHED"
    assert run.data.tags == {"mlflow.runName": "line"}
    assert run.data.params["settings/learning_rate"] == "0.001"
    for path in (each for each in (tmp_path / "line/mlflow").rglob("*") if each.is_file()):
        assert "somebody-i-know" not in path.read_text()
        assert "pytest" not in path.read_text().replace(str(tmp_path), "")
