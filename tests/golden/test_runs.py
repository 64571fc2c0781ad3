"""The runs take every decision, every surrogate, and every world that needs no file from elsewhere."""

import pytest
import yaml

from tests.golden.names import RENAMED, Names
from tests.golden.runs import RUNS, Run
from tests.places import CONF

# The table of mimic comes from a hospital's database; outcome regressions, BoTorch's acquisition functions
# and worlds of yes/no variables, counts and classes did not exist when the old code was recorded. The own
# method of an experiment counts as taken: every run of it types another.
TOLD = {"check", "explore", "init", "report"}
ELSEWHERE = {
    "dataset": {
        *("mimic", "yes_no", "visits", "classes"),
        *("problem", "sequence", "trials", "episodes", "episode_file", "machines", "table_file"),
    },
    "experiment": {"mimic", "own_problem", "own_sequence", "own_trials", "own_episodes"},
    "decision": {"auto", "outcome_regression", "qkg", "qlogei", "qlognei", "qucb"},
    "surrogate": {"outcome_regression"},
}


def options(group):
    return {path.stem for path in (CONF / group).glob("*.yaml")}


def chosen():
    """Group to options: those typed, and those that typed experiments and decisions choose in turn."""
    names, found = Names.read(RENAMED), {}
    for run in RUNS:
        swept = [f"{key}={','.join(values)}" for key, values in run.swept.items()]
        for text in (*run.typed, *swept):
            group, _, values = names.typed(text).lstrip("+").partition("=")
            found.setdefault(group, set()).update(values.split(","))
    for group in ("experiment", "decision"):
        for option in found[group]:
            content = yaml.safe_load((CONF / group / f"{option}.yaml").read_text(encoding="utf-8"))
            for entry in content["defaults"]:
                ((key, value),) = entry.items()
                found.setdefault(key.removeprefix("override /"), set()).add(value)
    return found


@pytest.mark.parametrize("group", ["decision", "dataset", "surrogate", "experiment"])
def test_every_option_is_taken(group):
    assert options(group) - chosen()[group] == ELSEWHERE.get(group, set())


def test_every_script_with_results_is_run():
    # prepare.py reads files from elsewhere; collect.py does what ends the sweep over shards; reproduce.py
    # does what reproduce_*.py do; check.py, explore.py, init.py and report.py write sentences and pages.
    scripts = {path.stem for path in (CONF.parent / "scripts").glob("*.py")}
    assert scripts - {run.script for run in RUNS} == {"prepare", "collect", "reproduce", *TOLD}


def test_records_have_names_of_their_own():
    names = [name for run in RUNS for name in (run.name, *run.jobs)]
    assert len(set(names)) == len(names)


def test_jobs_are_named_in_the_order_of_the_sweep():
    names = Run("one", "decide", (), {"a": ("1", "2"), "b": ("x", "y")}).jobs
    assert names == ["one.1.x", "one.1.y", "one.2.x", "one.2.y"]


def test_a_checkpoint_is_typed_without_a_surrogate_beside_it():
    for run in RUNS:
        keys = {text.lstrip("+").partition("=")[0] for text in (*run.typed, *run.swept)}
        assert not {"checkpoint", "surrogate"} <= keys, run.name
