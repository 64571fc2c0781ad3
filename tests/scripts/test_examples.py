"""The sample files of examples/: they are what docs/start.md says of them."""

import csv
import importlib.util
import math

import pytest

import rehearsal_torch as rt
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from tests.places import ROOT

EXAMPLES = ROOT / "examples"


def plant():
    spec = importlib.util.spec_from_file_location("plant", EXAMPLES / "plant/plant.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_patients_have_no_faults_and_the_columns_of_scikit_learn():
    from sklearn.datasets import load_diabetes

    problem = OwnProblem(EXAMPLES / "patients/problem.yaml")
    assert (len(problem.every), problem.count()) == (442, 2)
    assert problem.case(0).present == {"bmi": 30.0, "bp": 100.0}
    frame = load_diabetes(as_frame=True, scaled=False).frame
    assert sorted(problem.every.columns(("bmi",))[:, 0].tolist()) == sorted(frame["bmi"].tolist())


def test_the_experiments_are_those_of_the_plant():
    made = plant()
    lines = (EXAMPLES / "plant/experiments.csv").read_text().splitlines()
    for number, line in enumerate(lines[1:], 1):
        valve, dose, *_ = line.split(",")
        assert made.main([f"valve={valve}", f"dose={dose}", f"number={number}"]) == line
    optimiser = rt.CausalOptimiser(EXAMPLES / "plant/problem.yaml")
    assert len(optimiser.trials) == len(lines) - 1 == 8
    assert next(csv.reader(lines)) == ["valve", "dose", "ambient", "temperature", "yield"]


@pytest.mark.parametrize(("valve", "dose"), [(0.6, 2), (0.5, 2), (0.6, 4)])
def test_the_mean_yield_is_the_one_that_the_plant_prints(valve, dose):
    # The temperature is normal with variance 2^2 + 1, and the yield a Gaussian curve of it.
    off, width = 15 + 45 * valve - 42, 9**2 + 2 * (2**2 + 1)
    peak = 5 * dose * math.exp(1 - dose / 2) * 9 / math.sqrt(width)
    found = float(plant().main([f"valve={valve}", f"dose={dose}"]))
    assert found == pytest.approx(peak * math.exp(-(off**2) / width), abs=0.02)
    assert found <= 9.44
