"""Methods as files, and checkpoints of other methods."""

import pytest

from rehearsal_torch.checkpoint import load
from rehearsal_torch.cli.methods import (
    all_methods,
    methods_by,
    methods_with,
    surrogate_class,
    weighs_costs,
)
from rehearsal_torch.cli.run import build, suits
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.outcome.stacked import StackedRegression
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import UserError
from tests.cli.test_run import configured
from tests.places import CONF, ROOT


def test_every_decision_is_a_method_with_a_surrogate():
    assert list(all_methods()) == sorted(path.stem for path in (CONF / "decision").glob("*.yaml"))
    assert all(issubclass(surrogate_class(name), Surrogate) for name in all_methods())


def test_methods_are_found_by_the_class_of_their_surrogate():
    assert methods_with(StackedRegression) == ["cme_stack"]
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


def test_a_model_of_the_same_method_is_taken():
    run = build(configured("+experiment=auf", "dataset=bank", "decision=cme"))
    suits(run, load(ROOT / "checkpoints" / "loan"))


def test_methods_are_found_by_what_they_maximise_and_how():
    assert methods_by(GaussianSuccess, ProjectionNewton) == ["care"]
    assert methods_by(ChanceCost, CheapestAlteration) == ["micns", "micns_online"]
    assert methods_by(GaussianSuccess, CheapestAlteration) == []


def test_which_methods_weigh_costs():
    rehearsal = [
        name for name in all_methods() if name != "auto" and surrogate_class(name).kind == "rehearse"
    ]
    others = [name for name in rehearsal if not weighs_costs(name)]
    assert others == ["grad_rh", "micns", "micns_online", "qwz23", "qwz23_online", "qwz23_published"]
