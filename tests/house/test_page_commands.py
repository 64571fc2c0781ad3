"""The command lines of the pages: what they ask for exists, and those that can be made short are run.

`make test` composes all of them, in one process; `make pages` runs those of `RUN`. What is not run, and why,
stands in `NOT_RUN`.
"""

import re
from copy import deepcopy
from fnmatch import fnmatchcase

import pytest
import torch
from omegaconf import OmegaConf

from rehearsal_torch.cli.errors import UserError
from tests.house import desk
from tests.house.page_commands import Command, commands, examined, lines, typed
from tests.scripts.typing_in import typed as run

COMMANDS = commands()
EPISODES = ["dataset.patients=60", "workers=1"]
TRAINED = ["trainer.max_epochs=1", "surrogate.member.mechanism.hidden=8", *EPISODES]
OWN = "+experiment=own_episodes"
MACHINES = ["trainer.max_epochs=1", "surrogate.member.mechanism.hidden=8", "workers=1"]
ANY_EFFECT = (
    "surrogate.member.effects=dense surrogate.member.mechanism.location_constant=1.5 "
    "trainer.learning_rate=0.01 trainer.max_epochs=100 trainer.patience=20"
)
ESTIMATOR = ("members=1", "features=100", "direction_rows=150", "width_rows=150")
KERNEL = [f"surrogate.indicator.estimator.{setting}" for setting in ESTIMATOR]
SCENARIOS = [
    "limit=2",
    "objective.search_scenarios=200",
    "objective.validation_scenarios=200",
    "objective.test_scenarios=100",
]
FILES = "dataset.task=task.yaml dataset.contexts=cases.csv"
TRIALS = [
    "search.screened=32",
    "search.starts=6",
    "search.steps=5",
    "objective.draws=8",
    "objective.evaluation_draws=16",
]
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
    "train +experiment=sepsis trainer.max_epochs=5 seed=1": [*TRAINED, "preview=2"],
    "train +experiment=sepsis trainer.devices=2": [*TRAINED, "preview=1"],
    "train -m +experiment=sepsis seed=0,1,2 hydra/launcher=joblib": [*TRAINED, "preview=1"],
    CHECKPOINT: [*EPISODES, "limit=2"],
    f"{CHECKPOINT} parallel=dask workers=2": ["dataset.patients=60", "limit=4"],
    f"{CHECKPOINT} decision=greedy objective.changes=5": [*EPISODES, "limit=2"],
    f"{CHECKPOINT} reward=linear 'objective.reward.weights={{MeanBP: 0.1, GCS: 0.5}}'": [
        *EPISODES,
        "limit=2",
    ],
    f"{SHARDS} hydra/launcher=joblib": [*EPISODES, "limit=4"],
    f"{CONFOUNDED} hydra/launcher=joblib": [
        "trainer.max_epochs=1",
        "surrogate.mechanism.hidden=8",
        *EPISODES,
        "limit=1",
    ],
    "train +experiment=auf dataset=bermuda dataset.size.rows=16000 dataset.size.contexts=10": [
        *KERNEL,
        "dataset.size.rows=60",
        "workers=1",
    ],
    "decide +experiment=auf dataset=bank": [*KERNEL, "dataset.size.rows=200", "limit=2", "workers=1"],
    "decide +experiment=own_table path=table.csv dataset.task=task.yaml dataset.contexts=cases.csv": [
        *KERNEL,
        "workers=1",
    ],
    f"decide +experiment=own_table dataset=table_file path=rows.parquet {FILES} decision=cme_nystrom": [
        "surrogate.estimator.rank=20",
        "workers=1",
    ],
    "decide path=problem.yaml": [*KERNEL, "workers=1"],
    f"decide {ANY_EFFECT} path=machines/problem.yaml": [*MACHINES, "limit=2"],
    f"train {OWN} path=machines/machines.csv dataset.task=machines/machines.yaml {ANY_EFFECT}": [
        *MACHINES,
        "preview=2",
    ],
    f"train {OWN} dataset=episode_file path=machines/machines.parquet dataset.task=machines/machines.yaml": [
        *MACHINES,
        "preview=2",
    ],
    f"train dataset=machines limit=10 {ANY_EFFECT}": [
        *MACHINES,
        "dataset.machines=60",
        "limit=2",
    ],
    "learn_graph data=table.csv context=season outcomes=customers": ["resamples=2"],
    "decide +experiment=ride_hailing": SCENARIOS,
    "decide +experiment=bermuda_online search.tau=0.5": SCENARIOS,
    "decide +experiment=bermuda_online decision=qwz23_success": SCENARIOS,
    "decide +experiment=cbo dataset=dropwave": [*TRIALS, "limit=2"],
    "decide +experiment=own_system path=experiments.csv dataset.task=task.yaml": [*TRIALS, "workers=1"],
    "train +experiment=dropwave_recovery": [
        *TRIALS,
        "trainer.max_epochs=2",
        "dataset.size.initial=20",
        "workers=1",
    ],
    f"{COMPARED} hydra/launcher=joblib": ["limit=1", "decision=ucb,eifn", "seed=0", *TRIALS[:3]],
}
# What is not run, by pattern, and why.
NOT_RUN = {
    "--*": "tests/test_program.py types it",
    "* --help": "tests/scripts/test_answers.py types it",
    "options *": "tests/cli/options/test_listing.py lists every experiment",
    "VERB *": "is the grammar, no command",
    "train +experiment=auf dataset=bank decision=cme *": "tests/checkpoints fits it again",
    "train +experiment=two_stores *": "tests/checkpoints fits it again",
    "train path=...": "has a placeholder, which the reader fills in",
    "cross_validate *": "tests/scripts/test_runs.py runs folds; the grid takes an hour",
    "train +experiment=sepsis surrogate=transition_published *": "tests/golden trains it",
    "train +experiment=sepsis decision=greedy seed=1": "differs from what is run in the decision alone",
    "train +experiment=sepsis surrogate.member.mechanism.hidden=100": "the same, smaller, which is run",
    "train -m +experiment=sepsis seed=0,1,2": "the same with a launcher, which is run",
    "make": "prints the help; the test below looks at the targets",
    "make *": "sets an environment up and calls scripts, which are run under their own names",
    "benchmarks *": "takes minutes, and its figures mean nothing when it is shortened",
    "explore *": "serves until it is interrupted; tests/scripts/test_explore.py types it",
    "report *": "needs finished runs; tests/cli/verbs/test_report.py types it",
    "collect FOLDER": "needs shards; tests/scripts/test_runs.py types it",
    "prepare machines *": "tests/cli/verbs/test_prepare.py types it",
    "train +experiment=sepsis trainer=gpu": "needs a GPU",
    "decide -m +experiment=sepsis * hydra/launcher=batches_slurm *": "tests/slurm types it on SLURM",
    "train +experiment=sepsis logger=wandb": "tests/training trains with it where its library is installed",
    "train resume=*": "needs a run that was killed; tests/scripts/test_runs.py kills runs and resumes them",
    "train +experiment=sepsis dataset=mimic path=mimic-table.csv": "needs a table with restricted access",
    "check*": "tests/cli/verbs/test_check.py types it",
    "init*": "tests/cli/verbs/test_init.py types it",
    "learn_graph data=table.csv": "the same as with roles, which is run",
    "decide +experiment=own_table * graphs=graphs.yaml": "tests/cli/test_graph_members.py runs it",
    "decide +experiment=own_episodes * path=table.csv": "tests/scripts/test_own_episodes.py types it",
    "decide * decision=auto *": "as below",
    "decide decision=auto *": "fits every method six times; tests/cli/choice/test_settled.py types it",
    "decide *=[A-Z][A-Z]*": "has a placeholder, which the reader fills in",
}


def reasons(command: Command) -> list[str]:
    """Every entry of the two tables that speaks of a command."""
    named = [key for key in RUN if key == command.text]
    return named + [key for key in NOT_RUN if fnmatchcase(command.text, key)]


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
            examined(command, there)
        except (AssertionError, UserError, SystemExit) as error:
            wrong.append(f"{command.page}: {command.text}: {error}")
    assert wrong == []


def test_each_command_is_run_or_there_is_a_reason():
    unclear = {command.text: found for command in COMMANDS if len(found := reasons(command)) != 1}
    assert unclear == {}, "a command stands in exactly one of RUN and NOT_RUN"
    texts = [command.text for command in COMMANDS]
    assert [key for key in RUN if key not in texts] == [], "no page shows these any more"
    assert [key for key in NOT_RUN if not any(fnmatchcase(text, key) for text in texts)] == []


@pytest.mark.pages
@pytest.mark.parametrize("text", RUN, ids=str)
def test_a_command_runs(text, there):
    (command,) = [each for each in COMMANDS if each.text == text]
    script, *arguments = command.words
    if script == "learn_graph":
        desk.with_stores(there)
    if "+experiment=own_system" in arguments:
        desk.with_experiments(there)
    answer = run(there, script, *arguments, *RUN[text], "out=run")
    assert answer.code == 0, f"{answer.out[-2000:]}\n{answer.err[-4000:]}"
    assert "Traceback" not in answer.err
    written = [path.name for path in (there / "run").rglob("*")]
    assert ("graphs.yaml" if script == "learn_graph" else "decisions.jsonl") in written


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (".venv/bin/python scripts/train.py  +experiment=sepsis   # words", ("train", "+experiment=sepsis")),
        ("rehearsal learn-graph data=table.csv", ("learn_graph", "data=table.csv")),
        ("rehearsal decide 'a={b: 1}'", ("decide", "a={b: 1}")),
        ("rehearsal --help", ("--help",)),
        ("OMP_NUM_THREADS=1 python benchmarks/search.py", ("benchmarks", "search.py")),
        ("scripts/learn_graph.py data=table.csv", ("learn_graph", "data=table.csv")),
        ("make train ARGS='seed=1'", ("make", "train", "ARGS=seed=1")),
        ("makes the tables", ()),
        ("rehearsal_torch.search", ()),
        ("python3 -m venv .venv", ()),
    ],
)
def test_commands_are_told_from_other_code(line, words):
    assert typed(line) == words


def test_lines_come_from_shell_blocks_and_spans():
    page = "`make a` and `b\nc`\n```python\nd\n```\n```\ne \\\nf\ng\n```\n```yaml\nh\n```\n"
    assert [" ".join(line.split()) for line in lines(page)] == ["e f", "g", "make a", "b c"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("python scripts/lern.py +experiment=sepsis", "there is no scripts/lern.py"),
        ("rehearsal deside +experiment=sepsis", "there is no scripts/deside.py"),
        ("rehearsal decide +experiment=cbo decision=none_such", "there is no decision called"),
        ("rehearsal decide +experiment=cbo seed=one", "expected a whole number"),
        ("rehearsal decide +experiment=cbo serch.screened=3", "there is no key"),
        (
            "rehearsal decide +experiment=own_table path=gone.csv dataset.task=task.yaml",
            "there is no such file",
        ),
        ("rehearsal learn-graph daat=table.csv", "learn_graph has no such option"),
        ("rehearsal prepare mashines", "has no verb mashines"),
        ("python benchmarks/gone.py", "there is no benchmarks/gone.py"),
        ("make tset", "No rule to make target"),
        ("make train EXPP=auf", "no variable EXPP"),
        ("make train EXP=gone", "there is no experiment called 'gone'"),
    ],
)
def test_what_does_not_exist_is_found(line, told, there):
    with pytest.raises((AssertionError, UserError), match=told):
        examined(Command(typed(line), "page.md"), there)


EXISTING = ["rehearsal learn-graph data=table.csv", "rehearsal --help", "make docs", "make EXP=auf train"]


@pytest.mark.parametrize("line", EXISTING)
def test_what_exists_passes(line, there):
    examined(Command(typed(line), "page.md"), there)


def test_the_help_of_make_names_every_target():
    text = (desk.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE)[1].split()
    shown = re.findall(r'@echo "make ([a-z0-9-]+)', text)
    assert sorted(shown) == sorted(set(targets) - {"help"})
