"""The command lines of the pages: what they ask for exists, and those that can be made short are run.

All of them are composed, in one process, and those of `RUN` are run. Others need hardware, much time, or what
the reader puts in, or are typed by tests of their verbs.
"""

from copy import deepcopy

import pytest
import torch
from omegaconf import OmegaConf

from rehearsal_torch.user_error import UserError
from tests.house import desk
from tests.house.page_commands import Command, commands, examined, typed
from tests.scripts.typing_in import typed as run

COMMANDS = commands()
EPISODES = ["dataset.patients=60", "workers=1"]
TRAINED = ["trainer.max_epochs=1", "surrogate.member.mechanism.hidden=8", *EPISODES]
MACHINES = ["workers=1"]
KERNEL = [
    f"surrogate.{setting}" for setting in ("members=2", "blocks=4", "frequencies=50", "evidence_rows=150")
]
SCENARIOS = [
    "limit=2",
    "objective.search_scenarios=200",
    "objective.validation_scenarios=200",
    "objective.test_scenarios=100",
]
TRIALS = ["search.screened=32", "search.starts=6", "search.steps=5", "objective.draws=8"]
CHECKPOINT = "decide +experiment=sepsis checkpoint=checkpoints/sepsis"
SHARDS = "decide -m +experiment=sepsis checkpoint=checkpoints/sepsis shards=4 'shard=range(4)'"
PUBLISHED = "surrogate=transition_published reward=linear"
SEVERITIES = "dataset.confounding=0,0.5,1 limit=200 dataset.horizon=12"
CONFOUNDED = f"train -m +experiment=sepsis {PUBLISHED} {SEVERITIES}"
COMPARED = "decide -m +experiment=cbo dataset=dropwave,alpine2 decision=ucb,eifn,mcbo,excbo seed=0,1,2,3"
# What is run, and what is typed besides so that it takes seconds; where a key is typed twice, the last one
# counts.
RUN = {
    "train +experiment=sepsis": [*TRAINED, "preview=2"],
    "train +experiment=sepsis trainer.devices=2": [*TRAINED, "preview=1"],
    "train -m +experiment=sepsis seed=0,1,2 hydra/launcher=joblib": [*TRAINED, "preview=1"],
    CHECKPOINT: [*EPISODES, "limit=2"],
    f"{CHECKPOINT} parallel=dask workers=2": ["dataset.patients=60", "limit=4"],
    f"{SHARDS} hydra/launcher=joblib": [*EPISODES, "limit=4"],
    f"{CONFOUNDED} hydra/launcher=joblib": [
        "trainer.max_epochs=1",
        "surrogate.mechanism.hidden=8",
        *EPISODES,
        "limit=1",
    ],
    "decide +experiment=own_table path=table.csv dataset.task=task.yaml dataset.contexts=cases.csv": [
        *KERNEL,
        "workers=1",
    ],
    "decide path=problem.yaml": [*KERNEL, "workers=1"],
    "decide path=machines/problem.yaml": [*MACHINES, "limit=2"],
    "train +experiment=own_episodes dataset=machines limit=10": [*MACHINES, "dataset.machines=60", "limit=2"],
    "learn_graph data=table.csv context=season outcomes=customers": ["resamples=2"],
    "decide +experiment=ride_hailing": SCENARIOS,
    "decide +experiment=bermuda_online search.tau=0.5": SCENARIOS,
    "decide +experiment=bermuda_online decision=qwz23_success": SCENARIOS,
    "decide +experiment=cbo dataset=dropwave": [*TRIALS, "limit=2"],
    "train +experiment=dropwave_recovery": [
        *TRIALS,
        "trainer.max_epochs=2",
        "dataset.size.initial=20",
        "workers=1",
    ],
    f"{COMPARED} hydra/launcher=joblib": ["limit=1", "decision=ucb,eifn", "seed=0", *TRIALS[:3]],
}


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with the files that pages name, as the current one."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    return desk.laid_out(tmp_path)


@pytest.fixture
def files_are_parsed_once(monkeypatch):
    """Composing reads the same few files again and again; what it reads is kept."""
    load, known = OmegaConf.load, {}

    def kept(file):
        name = str(file if isinstance(file, str) else file.name)
        if name not in known:
            known[name] = load(file)
        return deepcopy(known[name])

    monkeypatch.setattr(OmegaConf, "load", kept)


@pytest.mark.slow
def test_all_commands_of_the_pages_compose(there, files_are_parsed_once):
    desk.with_killed_run(there)
    (there / "mimic-table.csv").write_text("a stand-in: only that it exists is looked at\n")
    wrong = []
    for command in COMMANDS:
        try:
            examined(command)
        except (AssertionError, UserError, SystemExit) as error:
            wrong.append(f"{command.page}: {command.text}: {error}")
    assert wrong == []


def test_what_is_run_stands_on_a_page():
    texts = [command.text for command in COMMANDS]
    assert [key for key in RUN if key not in texts] == []


@pytest.mark.slow
@pytest.mark.parametrize("text", RUN, ids=str)
def test_a_command_runs(text, there):
    (command,) = [each for each in COMMANDS if each.text == text]
    script, *arguments = command.words
    if script == "learn_graph":
        desk.with_stores(there)
    answer = run(there, script, *arguments, *RUN[text], "out=run")
    assert answer.code == 0, f"{answer.out[-2000:]}\n{answer.err[-4000:]}"
    assert "Traceback" not in answer.err
    written = [path.name for path in (there / "run").rglob("*")]
    assert ("graphs.yaml" if script == "learn_graph" else "decisions.jsonl") in written


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("python scripts/lern.py +experiment=sepsis", "there is no scripts/lern.py"),
        ("rehearsal decide +experiment=cbo decision=none_such", "there is no decision called"),
        ("rehearsal learn-graph daat=table.csv", "learn_graph has no such option"),
        ("python benchmarks/gone.py", "there is no benchmarks/gone.py"),
        ("make tset", "no tset"),
    ],
)
def test_what_does_not_exist_is_found(line, told, there):
    with pytest.raises((AssertionError, UserError), match=told):
        examined(Command(typed(line), "page.md"))
