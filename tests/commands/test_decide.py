"""What to type next: the same data, decided in another way that fits it."""

import pytest

from rehearsal_torch.commands.decide import _another
from rehearsal_torch.datasets.loan import Loan
from rehearsal_torch.history import RunFolder
from tests.foresight import Market


@pytest.fixture
def after(tmp_path):
    def run(decision, overrides, problem):
        folder = RunFolder(tmp_path)
        folder.write_json("run.json", {"overrides": overrides, "choices": {"decision": decision}})
        return _another(folder, problem, "runs/x/checkpoint")

    return run


def test_episodes_are_decided_again_with_the_same_checkpoint(after):
    kept = ["+experiment=sepsis", "objective.changes=2"]
    assert after("branch_and_bound", [*kept, "shard=0", "search.leaves=3"], Market()) == [*kept, "decision=greedy", "checkpoint=runs/x/checkpoint"]
    assert "decision=branch_and_bound" in after("greedy", [*kept, "decision=greedy"], Market())


@pytest.mark.parametrize(("decision", "other"), [("cme", "care"), ("care", "cme"), ("none", "care"), ("grad_rh", "care")])
def test_in_foresight_another_method_fits_a_surrogate_of_its_own(after, decision, other):
    overrides = ["+experiment=auf", f"decision={decision}", "surrogate.task=null", "objective.caution=1", "search=refrain", "checkpoint=there", "seed=3"]
    assert after(decision, overrides, Loan(rows=30)) == ["+experiment=auf", "seed=3", f"decision={other}"]
