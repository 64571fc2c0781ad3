"""Methods as files, and checkpoints of other methods."""

import pytest

from rehearsal_torch.checkpoint import load
from rehearsal_torch.methods.hydra_config import options
from rehearsal_torch.methods.presets import methods, methods_by, methods_with
from rehearsal_torch.methods.run_parts import build, suits
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import UserError
from tests.methods.test_run_parts import configured
from tests.places import ROOT

QUESTIONS = ("rehearse", "optimise", "look_back")


def test_every_method_answers_one_question_and_the_default_stands_first():
    assert sorted(name for each in QUESTIONS for name in methods(each)) == options("decision")
    assert [methods(each)[0] for each in QUESTIONS] == ["outcome_regression", "excbo", "closed_form"]
    assert {"care", "none", "qwz23", "auto"} <= set(methods("rehearse"))
    assert {"ucb", "mcbo", "sobol_actions"} <= set(methods("optimise"))
    assert {"astar", "branch_and_bound", "greedy", "random"} <= set(methods("look_back"))


def test_methods_are_found_by_the_class_of_their_surrogate():
    assert methods_with(OutcomeRegression) == ["outcome_regression"]
    assert methods_with(NestedRidge) == ["cme", "cme_fourier", "cme_nystrom", "cme_published"]
    assert methods_with(Surrogate) == []


@pytest.mark.parametrize("decision", ["care", "qwz23_offline"])
def test_a_model_of_another_method_is_refused_with_the_methods_that_it_is_for(decision):
    model = load(ROOT / "checkpoints" / "loan")
    run = build(configured("+experiment=auf", "dataset=bank", f"decision={decision}"))
    with pytest.raises(UserError) as refused:
        suits(run, model)
    assert "decides by a" in str(refused.value)
    assert "this model is a NestedRidge. Choose decision=cme or" in str(refused.value)


def test_methods_are_found_by_what_they_maximise_and_how():
    assert methods_by(GaussianSuccess, ProjectionNewton) == ["care"]
    assert methods_by(ChanceCost, CheapestAlteration) == ["micns", "micns_online"]
    assert methods_by(GaussianSuccess, CheapestAlteration) == []
