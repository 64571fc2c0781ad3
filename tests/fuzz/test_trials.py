"""Sequences of ask, tell, fail, abandon, forget, save, load, read and write with strange values, in memory
and with a file that is damaged."""

import math

import numpy as np
import torch
import yaml

from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.optimiser import CausalOptimiser
from tests.fuzz.commanded import LIMITS, PROCESSES, deciding, typed_in
from tests.fuzz.decisions import TRIALS, bound, experiments, quick, rows_of, search
from tests.fuzz.mutations import NUMBERS, OTHERS, TEXTS, damaged, rows_changed, source, text_of
from tests.fuzz.verdicts import FaultError, begun, sentence, worded
from tests.toys.causal_toys import WrittenLaw, WrittenModel

STRANGE = [
    *NUMBERS,
    *TEXTS,
    *OTHERS,
    1j,
    b"a",
    object(),
    range(3),
    ...,
    np.float32(0.5),
    np.nan,
    np.array([0.1, 0.2]),
    torch.tensor(0.5),
    torch.tensor([0.1, 2.0]),
]
CALLS = [
    "ask",
    "ask",
    "tell",
    "tell",
    "tell",
    "tell",
    "strange",
    "strange",
    "fail",
    "abandon",
    "forget",
    "save",
    "load",
    "read",
    "write",
    "recommend",
    "damage",
    "count",
]


def system(rng, action):
    x = action["a"] ** 2 + 0.02 * rng.random()
    return {"X": x, "Y": 1 - (x - 0.3) ** 2 - (action["b"] - 1.2) ** 2}


def known(optimiser):
    """Whether what a session knows is consistent: states, finite numbers, pending ones that may be set."""
    ids = [trial.id for trial in optimiser.trials]
    if ids != sorted(set(ids)):
        raise FaultError(f"numbers of trials: {ids}")
    if not bool(optimiser.table.values.isfinite().all()):
        raise FaultError(f"the table holds what is no number: {optimiser.table.values}")
    if len(optimiser.table) != sum(trial.state == "completed" for trial in optimiser.trials):
        raise FaultError("the table has other rows than there are completed trials")


def usable(optimiser, action):
    values = [action[name] for name in optimiser.task.actions]
    if not all(map(math.isfinite, values)):
        raise FaultError(f"asked for what is no number: {action}")
    optimiser.task.check_action(torch.tensor(values, dtype=torch.float64))


class Written(WrittenModel):
    """A model that learns nothing."""

    def __init__(self, task):
        super().__init__(
            task,
            {
                "X": WrittenLaw(lambda inputs: inputs[..., 0] ** 2, lambda inputs: inputs.sum(-1)),
                "Y": WrittenLaw(
                    lambda inputs: -(inputs - 0.5).square().sum(-1), lambda inputs: inputs.sum(-1)
                ),
            },
        )

    def parts(self, table):
        self.tried = table.columns(self.task.actions)
        return iter(())


class Session:
    """One sequence of calls."""

    def __init__(self, rng, task, folder, file):
        self.rng, self.task, self.folder, self.file, self.refused = rng, task, folder, file, 0
        # Most sessions learn nothing, which takes no time.
        self.method = (quick, bound, search) if rng.random() < 0.15 else (Written, PosteriorMean, search)
        self.optimiser = self.made(task)

    def made(self, task):
        return CausalOptimiser(task, *self.method, initial=5, file=self.file)

    def strange(self, like):
        rng = self.rng
        return (
            rng.choice(STRANGE)
            if rng.random() < 0.6
            else {**like, **{rng.choice([*like, "c", 0, None, ""]): rng.choice(STRANGE)}}
            if isinstance(like, dict)
            else like
        )

    def call(self, name):
        rng, optimiser = self.rng, self.optimiser
        pending = optimiser.pending
        action = rng.choice(pending) if pending else {"a": rng.random(), "b": rng.random()}
        if name in ("ask", "count"):
            for each in optimiser.ask(rng.choice([1, 1, 2, 3]) if name == "ask" else rng.choice(STRANGE)):
                usable(optimiser, each)
        elif name == "tell":
            if rng.random() < 0.15:
                optimiser.tell(
                    optimiser.trials[0] if optimiser.trials else action, {"X": rng.random() * 1e9, "Y": -1e12}
                )
            else:
                optimiser.tell(action, system(rng, action), altered=["X"] if rng.random() < 0.1 else ())
        elif name == "strange":
            nodes = {"X": 0.3, "Y": 1.0}
            which = rng.randrange(6)
            if which == 0:
                optimiser.tell(self.strange(dict(action)), nodes)
            elif which == 1:
                optimiser.tell(action, self.strange(nodes))
            elif which == 2:
                optimiser.tell(action, nodes, altered=rng.choice([*STRANGE, ["X"], ["a"], "X", {"X": 1}]))
            elif which == 3:
                optimiser.tell(None, nodes, ran=self.strange({"a": 0.1, "b": 0.2}))
            elif which == 4:
                optimiser.fail(self.strange(dict(action)), rng.choice(STRANGE), nodes=self.strange(nodes))
            else:
                optimiser.abandon(self.strange(dict(action)), rng.choice(STRANGE))
        elif name in ("fail", "abandon"):
            getattr(optimiser, name)(action, "broken")
        elif name == "forget":
            optimiser.forget()
        elif name == "save":
            optimiser.save(self.folder / "copy.json")
        elif name == "load":
            self.optimiser = CausalOptimiser.load(
                rng.choice([self.folder / "copy.json", self.file or self.folder / "none.json"]),
                None,
                *self.method,
            )
        elif name == "read":
            (self.folder / "past.csv").write_text(
                text_of(rows_changed(rng, rows_of(experiments(6)))), encoding="utf-8", errors="replace"
            )
            optimiser.read(self.folder / "past.csv")
        elif name == "write":
            optimiser.write(self.folder / "past.csv")
            optimiser.read(self.folder / "past.csv")
        elif name == "recommend":
            action, worth = optimiser.recommend()
            usable(optimiser, action)
            if not math.isfinite(worth):
                raise FaultError(f"recommended with the worth {worth}")
        elif name == "damage":
            file = self.file if self.file is not None and rng.random() < 0.5 else self.folder / "copy.json"
            if file.exists():
                file.write_bytes(damaged(rng, file.read_bytes()))

    def step(self, name):
        """A call; refused, it has changed nothing."""
        before = self.optimiser.trials
        begun()
        try:
            self.call(name)
        except Exception as error:
            said = sentence(error)
            if said is None:
                raise
            worded(said)
            self.refused += 1
            if self.optimiser.trials != before and self.file is None:
                raise FaultError(f"{name} was refused ({said}) and has changed the trials") from None
        known(self.optimiser)


def test_trials(number, judged, tmp_path):
    rng = source("trials", number)
    calls = [rng.choice(CALLS) for _ in range(rng.randint(8, 22))]

    def work():
        session = Session(
            rng, rng.choice(TRIALS), tmp_path, tmp_path / "trials.json" if rng.random() < 0.4 else None
        )
        if rng.random() < 0.5:
            session.step("write") if rng.random() < 0.1 else [
                session.step(call) for call in ("ask", "tell") * 6
            ]
        for call in calls:
            session.step(call)
        return "refused" if session.refused else "accepted"

    judged(work, calls)


def test_trials_command(number, judged, tmp_path):
    rng = source("trials as commands", number)
    rows = rows_of(experiments(rng.choice([3, 6, 9])))
    rows = rows_changed(rng, rows) if rng.random() < 0.9 else rows
    (tmp_path / "table.csv").write_text(text_of(rows), encoding="utf-8", errors="replace")
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(rng.choice(TRIALS)), encoding="utf-8")
    more = rng.choice(
        [
            [],
            ["seed=3"],
            ["decision=ucb"],
            ["objective.beta=1e308"],
            ["objective.beta=-1"],
            ["objective.beta=nan"],
            ["search.steps=0"],
            ["search.screened=1e9"],
        ]
    )
    judged(
        lambda: typed_in("decide", [*deciding("own_system"), *more], number < PROCESSES),
        [rows, more],
        **LIMITS,
    )
