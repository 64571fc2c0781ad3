"""Which job each method of the configuration does, and how others are refused."""

import yaml

from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.verbs.methods import job_of, methods_for

JOBS = ("rehearse", "optimise", "look_back")


def test_every_method_does_one_job_and_the_default_stands_first():
    found = [name for job in JOBS for name in methods_for(job)]
    assert sorted(found) == sorted(path.stem for path in (CONF / "decision").glob("*.yaml"))
    assert [methods_for(job)[0] for job in JOBS] == ["cme_stack", "excbo", "branch_and_bound"]
    assert {"care", "none", "qwz23"} <= set(methods_for("rehearse"))
    assert {"ucb", "mcbo", "sobol_actions"} <= set(methods_for("optimise"))
    assert {"astar", "greedy", "random"} <= set(methods_for("look_back"))


def test_the_job_is_that_of_the_surrogates_class():
    from hydra.utils import get_class

    from rehearsal_torch.surrogates.network.causal_model import CausalModel
    from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
    from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

    kinds = {"rehearse": RehearsalSurrogate, "optimise": CausalModel, "look_back": EpisodeSurrogate}
    for path in sorted((CONF / "decision").glob("*.yaml")):
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["defaults"]
        option = next(entry["override /surrogate"] for entry in entries if "override /surrogate" in entry)
        node = {}
        while "_target_" not in node:
            node = yaml.safe_load((CONF / "surrogate" / f"{option}.yaml").read_text(encoding="utf-8"))
            option = next((each for each in node.get("defaults", []) if each != "_self_"), None)
        assert issubclass(get_class(node["_target_"]), kinds[job_of(path.stem)]), path.stem
