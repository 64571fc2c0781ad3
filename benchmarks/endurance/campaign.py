"""A campaign of experiments that is killed at random (SIGKILL), against the same one without kills.

Each process goes on with the campaign's file alone: it reports what is pending, or asks for the next trial.
By the number of a trial a tenth of all measurements fail and a twentieth of the trials are abandoned; results
take a moment and have noise, and every tenth round records a recommendation. After half of the rounds the
bounds, outside of which the optimum lay, are widened. After a kill the trials must be the first ones of the
undisturbed campaign, of which the last may wait for its report; at the end no setting may have been asked for
more often than there, and both files must be equal to the last byte.
"""

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.endurance.commands import in_child
from benchmarks.endurance.rounds import TASK, optimiser, outcome
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.data.trials.trial_store import read_campaign

FILE = Path("trials.json")
FAILED, ABANDONED = 0.1, 0.05
NARROW = {**TASK, "actions": {"a": [0, 1], "b": [0, 1]}}
RUNNING = 0.1  # Seconds of an experiment
# Rounds for each kill, and from one recommendation to the next
KILLED, KEPT = 5, 10


def trials_in(folder: Path) -> tuple[Trial, ...]:
    """The trials in the file of a folder."""
    campaign = read_campaign(folder / FILE)[0] if (folder / FILE).exists() else None
    return () if campaign is None else campaign.trials


def go_on(count: int) -> int:
    """Goes on with the campaign in the current folder up to so many trials; the exit code."""
    while len(trials := trials_in(Path())) < count or trials[-1].state == "pending":
        begun, half = len(trials) - bool(trials and trials[-1].state == "pending"), count // 2
        session = optimiser(FILE, TASK if begun >= half else NARROW)
        for number in range(begun + 1, (count if begun >= half else half) + 1):
            if number % KEPT == 1 and len(session.table) > session.initial and not session.pending:
                session.recommend()
            (action,) = session.pending or session.ask()
            time.sleep(RUNNING)
            stream = random.Random(f"trial {number}")
            if (fate := stream.random()) < FAILED:
                session.fail(action, "the pump stopped")
            elif fate < FAILED + ABANDONED:
                session.abandon(action, "no time")
            else:
                nodes = outcome(action)
                session.tell(action, {name: value + stream.gauss(0, 0.01) for name, value in nodes.items()})
    optimiser(FILE).recommend()
    return 0


def campaign(count: int, folder: Path, seed: int = 0) -> dict[str, Any]:
    """Runs the campaign without kills and with some, `seed` of their times, and returns every fault, and the
    log: a line for each trial and each kill.
    """
    shutil.rmtree(folder, ignore_errors=True)
    whole, killed = folder / "whole", folder / "killed"
    whole.mkdir(parents=True)
    killed.mkdir()
    began = time.monotonic()
    if os.waitpid(in_child(partial(go_on, count), whole), 0)[1] != 0:
        raise RuntimeError(f"the campaign failed: see {whole / 'said.log'}")
    seconds, expected = time.monotonic() - began, trials_in(whole)
    stream, faults, kills = random.Random(seed), list[str](), list[dict[str, Any]]()
    while True:
        child = in_child(partial(go_on, count), killed)
        wait = stream.uniform(0, 2 * seconds * KILLED / count)
        if len(kills) < count // KILLED:
            time.sleep(wait)
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            break
        trials = trials_in(killed)
        faults += [f"after kill {len(kills) + 1}: {fault}" for fault in lost(trials, expected, kills)]
        waits = bool(trials) and trials[-1].state == "pending"
        kills.append({"seconds": round(wait, 2), "trials": len(trials), "pending": waits})
    if status:
        faults.append(f"ended with code {os.waitstatus_to_exitcode(status)}: see {killed / 'said.log'}")
    trials = trials_in(killed)
    asked, once = (Counter(tuple(trial.settings.values()) for trial in log) for log in (trials, expected))
    faults += [
        f"{settings} were asked for {times} times too often" for settings, times in (asked - once).items()
    ]
    if (whole / FILE).read_bytes() != (killed / FILE).read_bytes():
        faults.append("the file differs from that of the campaign without kills")
    best, claimed = optimiser(killed / FILE).recommend()
    return {
        "rounds": len(trials),
        **Counter(trial.state for trial in trials),
        "kills": len(kills),
        "with_a_pending_trial": sum(kill["pending"] for kill in kills),
        "true_reward": round(outcome(best)["Y"], 6),
        "claimed_reward": round(claimed, 6),
        "faults": faults,
        "log": log_of(trials, kills, count // 2),
    }


def lost(trials: Sequence[Trial], expected: Sequence[Trial], kills: Sequence[Mapping[str, Any]]) -> list[str]:
    """The faults of the trials after a kill."""
    last, faults = len(trials) - 1, list[str]()
    if kills and len(trials) < kills[-1]["trials"]:
        faults.append(f"{kills[-1]['trials']} trials became {len(trials)}")
    for index, (trial, other) in enumerate(zip(trials, expected, strict=False)):
        waits = index == last and trial.state == "pending" and trial.asked == other.asked
        if trial != other and not waits:
            faults.append(f"trial {trial.id} is another than without kills")
    return faults


def log_of(trials: Sequence[Trial], kills: Sequence[Mapping[str, Any]], half: int) -> list[str]:
    """A line for each trial, and for each kill where it happened."""
    lines = list[str]()
    for index in range(len(trials) + 1):
        # A trial that waited stands below the kill: it is reported after it.
        for kill in kills:
            if kill["trials"] - kill["pending"] == index:
                waits = f", with trial {index + 1} pending" if kill["pending"] else ""
                lines.append(f"     killed after {kill['seconds']:.2f} s{waits}")
        if index == half:
            lines.append("     the bounds are widened: b to [0, 2]")
        if index < len(trials):
            trial = trials[index]
            settings = "  ".join(f"{name} {value:.4f}" for name, value in trial.settings.items())
            reward = f"  Y {trial.nodes['Y']:.4f}" if trial.nodes else f"  {trial.reason}"
            lines.append(f"{trial.id:4d} {trial.state:9s}  {settings}{reward}")
    return lines
