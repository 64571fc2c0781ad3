"""A small fitted model of machines and the run folder that holds it, as the explorer reads them."""

import atexit
import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import yaml

from rehearsal_torch.api.fit_and_decide import undisturbed
from rehearsal_torch.checkpoint import save
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.run_summary import described
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.training.surrogate_fit import fit

TYPED = (
    "dataset=machines",
    "reward=weights_score_costs",
    "dataset.machines=60",
    "dataset.horizon=10",
    "objective.changes=2",
    "surrogate.count=4",
    "surrogate.member.mechanism.hidden=8",
    "trainer.max_epochs=2",
    "trainer.progress=false",
)
# A reward without costs of actions: the last one can change nothing.
FREE = ("reward=linear", "objective.reward.weights={wear: -1}")
DECIDED = 3


def episodes_run(folder: Path, *typed: str) -> Path:
    """Writes a run that has decided for three machines.

    Args:
        folder: Where to.
        typed: Further overrides of the method; the model is the same.
    """
    return Path(shutil.copytree(_made(typed), folder))


def without_times(folder: Path) -> Path:
    """Takes out of the records of a run at which time of the table its episodes begin."""
    record = json.loads((folder / "run.json").read_text())
    del record["words"]["first"]
    (folder / "run.json").write_text(json.dumps(record))
    return folder


@cache
def _made(typed: tuple[str, ...]) -> Path:
    home = Path(mkdtemp(prefix="explored-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    folder = home / "run"
    method = typed or ("decision=branch_and_bound",)
    with undisturbed():
        config, _ = composed([*method, *TYPED], multirun=False)
        written = yaml.safe_dump(plain(config))
        run = build(config)
        surrogate = run.surrogate()
        fit(surrogate, run.problem.observations(), run.trainer(None))
        save(surrogate, run.config["surrogate"], folder / "checkpoint")
        every = rounds(run.problem, surrogate, run.objective, run.search, range(DECIDED))
        lines = [made.line() for made in every]
    record = {"kind": "look_back", "choices": {"decision": method[0].partition("=")[2]}, "script": "decide"}
    (folder / "run.json").write_text(json.dumps(record))
    described(run.problem, RunFolder(folder), True, run.config)
    (folder / "config.yaml").write_text(written)
    (folder / "decisions.jsonl").write_text("\n".join(lines) + "\n")
    return folder
