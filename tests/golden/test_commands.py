"""The three jobs as they are typed: ``rehearsal VERB``, and a few scripts in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from rehearsal_torch.console_command import main
from tests.golden import inputs
from tests.golden.recorded import losses, of_folder
from tests.places import ROOT

pytestmark = pytest.mark.slow
SCRIPT = str(ROOT / "scripts" / "decide.py")
LONE = ("workers=1", "quiet=true", "out=run")


def run(verb, *typed):
    """What is recorded of a command in this process."""
    assert main([verb, *typed, *LONE]) == 0
    return of_folder(Path("run"))


def process(*typed):
    """The same of one in a process of its own, on one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    place = {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, *typed, *LONE]
    subprocess.run(command, env={**os.environ, **one, **place}, check=True, capture_output=True)
    return of_folder(Path("run"))


WORLDS = ["bank", "lin_syn1", "nhanes", "manage", "bermuda", "market"]


@pytest.mark.parametrize("world", WORLDS)
def test_auf(golden, world):
    golden(run("decide", "+experiment=auf", f"dataset={world}", "dataset.size.rows=200", "limit=3"))


def test_problem_file(golden):
    inputs.written(table_csv=inputs.rates(), problem_yaml=inputs.CURRENT)
    golden(process("-m", "rehearsal_torch", "decide", "problem.yaml"))


def test_own_table(golden):
    """A script, and rows that are held out."""
    inputs.written(table_csv=inputs.rates(), task_yaml=inputs.RATES)
    golden(process(SCRIPT, "+experiment=own_table", "path=table.csv", "dataset.task=task.yaml", "limit=4"))


def test_loan_checkpoint(golden):
    kept = f"checkpoint={ROOT / 'checkpoints' / 'loan'}"
    golden(run("decide", "+experiment=auf", "decision=cme", kept, "limit=3"))


@pytest.mark.parametrize("decision", ["qwz23", "qwz23_online", "qwz23_published", "qwz23_success"])
def test_ride_hailing(golden, decision):
    typed = ("limit=3", f"decision={decision}", "certificate=pac_bound")
    golden(run("decide", "+experiment=ride_hailing", *typed))


@pytest.mark.parametrize("certificate", ["none", "credible_bound"])
def test_certificate(golden, certificate):
    golden(run("decide", "+experiment=ride_hailing", "limit=2", f"certificate={certificate}"))


def test_bermuda_online(golden):
    golden(run("decide", "+experiment=bermuda_online", "limit=2"))


def test_two_stores(golden):
    """The world changes after two rounds."""
    golden(run("decide", "+experiment=two_stores", "limit=4", "dataset.change=2"))


def test_drifting_market(golden):
    typed = ("dataset.drift=true", "learn=true", "dataset.size.rows=60", "limit=4", "decision=micns_online")
    golden(run("decide", "+experiment=auf", "dataset=market", *typed))


def test_start_design(golden):
    """What is left of it after three experiments."""
    inputs.written(experiments_csv=inputs.experiments(3), problem_yaml=inputs.TRIALS_FILE)
    assert main(["decide", "problem.yaml", *LONE]) == 0
    golden({"asked": pd.read_csv("run/start_design.csv").to_dict("records")})


def test_next_experiment(golden):
    """One of twelve waits for its result."""
    table = inputs.experiments(12)
    table.loc[11, ["X", "Y"]] = None
    inputs.written(experiments_csv=table, problem_yaml=inputs.TRIALS_FILE)
    golden(run("decide", "problem.yaml"))


def test_own_system(golden):
    inputs.written(experiments_csv=inputs.experiments(12), task_yaml=inputs.TRIALS)
    golden(process(SCRIPT, "+experiment=own_system", "path=experiments.csv", "dataset.task=task.yaml"))


TRIED = ["excbo", "excbo_paper", "ucb", "eicf", "eifn", "mcbo", "random_actions", "sobol_actions"]


@pytest.mark.parametrize("decision", TRIED)
def test_cbo(golden, decision):
    few = ("dataset=dropwave", f"decision={decision}", "limit=2")
    golden(run("decide", "+experiment=cbo", *few))


FEW = ("dataset.patients=80", "trainer.max_epochs=2", "limit=1")
TRAINED = {
    "grad_rh": ("+experiment=auf", "decision=grad_rh", "dataset.size.rows=100", *FEW[1:]),
    "ensemble": ("+experiment=sepsis", "surrogate.count=2", *FEW),
    "published": ("+experiment=sepsis", "surrogate=transition_published", "reward=linear", *FEW),
    "dropwave_recovery": (
        "+experiment=dropwave_recovery",
        "dataset.size.initial=60",
        "trainer.max_epochs=10",
    ),
}


@pytest.mark.parametrize("name", TRAINED)
def test_losses(golden, name):
    assert main(["train", *TRAINED[name], "trainer.progress=false", *LONE]) == 0
    golden({"losses": losses(Path("run"))})
