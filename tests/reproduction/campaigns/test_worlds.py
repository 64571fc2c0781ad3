"""Worlds whose optimum is known: no setting is better, and an experiment measures all nodes."""

import pytest

from rehearsal_torch.data.causal_task import CausalTask
from reproduction.campaigns.worlds import SYSTEMS


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in ("contexts", "front")])
def test_no_setting_is_better_than_the_optimum(name):
    system = SYSTEMS[name](3)
    task = system.task if isinstance(system.task, CausalTask) else CausalTask.of(system.task)
    settings = [task.shown(task.named(row)) for row in task.box.sobol(64, seed=0)]
    regrets = [system.regret(each) for each in settings if system.allowed(each)]
    assert regrets
    assert -0.005 < min(regrets) < max(regrets) < 1.05
    assert {*system.run(settings[0])} >= {*task.nodes}
