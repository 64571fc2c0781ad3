"""Which job each method of the configuration does, and how others are refused."""

from rehearsal_torch.api.methods import methods_for
from rehearsal_torch.cli.validation import CONF

JOBS = ("rehearse", "optimise", "look_back")


def test_every_method_does_one_job_and_the_default_stands_first():
    found = [name for job in JOBS for name in methods_for(job)]
    assert sorted(found) == sorted(path.stem for path in (CONF / "decision").glob("*.yaml"))
    assert [methods_for(job)[0] for job in JOBS] == ["cme_stack", "excbo", "branch_and_bound"]
    assert {"care", "none", "qwz23"} <= set(methods_for("rehearse"))
    assert {"ucb", "mcbo", "sobol_actions"} <= set(methods_for("optimise"))
    assert {"astar", "greedy", "random"} <= set(methods_for("look_back"))
