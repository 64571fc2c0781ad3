"""A small causal system and its file of trials, as the explorer reads them."""

from functools import partial

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.explorer.trial_session import TrialSession
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel

TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": {"values": [0, 1, 2]}},
    "reward": "Y",
}
QUICK = AcquisitionSearch(screened=64, starts=4, steps=20)
PLAIN = partial(ExogenousModel, phi="homoskedastic", components=1)


def system(action):
    """What comes of an action; `unread` belongs to no node."""
    x = action["a"] ** 2
    return {"X": x, "Y": 1 - (x - 0.3) ** 2 - (action["b"] - 1.2) ** 2}


def file_of_trials(file, completed=7, pending=0):
    """A file with completed and pending trials."""
    made = quick(file)
    for _ in range(completed):
        (action,) = made.ask()
        made.tell(action, system(action))
    if pending:
        made.ask(pending)
    return file


def quick(file):
    """The optimiser of a file, with a small model and search."""
    task = None if file.exists() else TASK
    initial = None if file.exists() else 6
    return CausalOptimiser(task, surrogate=PLAIN, search=QUICK, initial=initial, file=file)


def quick_session(file):
    """The session of a file, with a small model and search."""
    return TrialSession(quick(file), file, "excbo")
