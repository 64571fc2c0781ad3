"""What is claimed of trials beside what is true, in networks by seed and in small campaigns: the jobs of the
stage ``trials``, and a command for seeds below 1000, on which methods are built.

    python -m reproduction.calibration.network_claims --seeds 0 20 --rounds 10 --workers 2 --out FILE.csv

runs 20 seeds, of which FILE.csv keeps what is finished, and prints the tables (`network_tables`). In a
network (`DrawnNetwork`) experiments are proposed and told one by one. Before the first round, which has
learnt from the start design alone, and after 10, 25, 50, 100 and all rounds a row has the recommendation's
claimed expected reward and its 95 % interval (where there is none, 1.96 standard deviations to either side),
the claimed chance that it is better than the runner-up, and the truth of both; the largest true expected
reward of a tried action (``tried``) and of any (``optimum``), and the range of rewards (``reach``).
``silent`` is whether nothing in the residuals contradicts the model; ``seconds`` are the processor seconds of
a round since the row before.

The campaigns of a seed are recommended from once, and proposed in never. With m_1 and m_2 replicates of two
settings, normal noise of the known standard deviation s, and nothing known before,

    P(setting 1 is better) = Phi((mean_1 - mean_2) / (s sqrt(1 / m_1 + 1 / m_2)))

is beside the claimed chance (``exact``) in ``equal settings``, where no setting of 2 to 4 is better, and in
``few settings``, where their expected rewards differ by a normal draw of .3 to 1.5 s. In ``one dial`` an
action in [0, 1] acts on the reward through a node, as a line and a sine. They have 3 to 10 replicates of a
setting, 12 to 20 of the dial.

Source: Dawid (1982) (calibration of forecasts); the closed form is that of two means under a flat prior.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.data.trials.trial import Recommended
from rehearsal_torch.evaluation.claim_rows import Row, number
from rehearsal_torch.problems.trials.random_network import DrawnNetwork
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.user_error import UserError
from reproduction.calibration import network_tables
from reproduction.calibration.drawn_claims import REPORTED
from reproduction.calibration.network_tables import EQUAL, FEW, NETWORK, ONE, REPORT
from reproduction.plan import Job
from reproduction.record import Layout, Record
from reproduction.run import computed

TRIALS = "trials"
WORLDS = (NETWORK, EQUAL, FEW, ONE)
KEY = ("dataset", "method", "seed", "rounds")
NUMBERS = (
    *("round", "claimed", "low", "high", "true", "held", "chance", "better", "exact"),
    *("tried", "optimum", "reach", "silent", "seconds"),
)
COLUMNS = (*KEY, "traits", *NUMBERS)
# The rounds after which claims are compared with truths; how many networks of a report go on twice as long.
LOOKED, LONGER = (0, 10, 25, 50, 100), 20
CAMPAIGNS = 5  # Of each kind, of a seed.
# Purpose of the generator of a campaign.
_CAMPAIGN = 71
# An optimiser of a task, given its seed.
Make = Callable[..., CausalOptimiser]


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, and the further cells of its line.

    Raises:
        ValueError: for overrides, which an optimiser in Python has none of.
    """
    if options["overrides"]:
        raise ValueError(f"expected no overrides of trials; got {options['overrides']}")
    make = partial(CausalOptimiser, method=job.method)
    if job.world == NETWORK:
        longer = job.seed >= REPORTED and (job.seed - REPORTED) % REPORT < LONGER
        rows = network_rows(job.seed, options["rounds"] * (1 + longer), make)
    else:
        rows = [campaign_row(job.world, job.seed, place, make) for place in range(CAMPAIGNS)]
    named = {"dataset": job.world, "method": job.method, "seed": job.seed, "rounds": options["rounds"]}
    return [named | row for row in rows], {"decisions": len(rows), "no_action": 0}


def network_rows(seed: int, rounds: int, make: Make = CausalOptimiser) -> list[Row]:
    """The rows of a network, without the columns of the run.

    Args:
        seed: Of the network, its start design, its noise and the optimiser.
        rounds: Number of experiments after the start design.
        make: An optimiser of (task, seed=..., initial=...).
    """
    world = DrawnNetwork(size=Rounds(rounds), seed=seed)
    optimiser = make(world.task, seed=seed, initial=world.initial)
    design = world.observations()
    for row in design.values.tolist():
        _told(optimiser, dict(zip(design.names, row, strict=True)))
    known = {"traits": " ".join(world.traits), "optimum": world.optimal_value, "reach": world.reach}
    tried = float(world.expected(design.columns(world.task.actions)).max())
    rows: list[Row] = []
    spent, last = 0.0, 0
    for done in range(rounds + 1):
        if done in LOOKED or done == rounds:
            seconds = spent / (done - last) if done else math.nan
            row = _claimed(optimiser.recommend(), world.task.actions, world.expected)
            rows.append(row | known | {"round": done, "tried": tried, "seconds": seconds})
            spent, last = 0.0, done
        if done < rounds:
            began = time.process_time()
            (asked,) = optimiser.ask()
            spent += time.process_time() - began
            action = _settings(asked, world.task.actions)
            result = world.experiments(action, world.noise_rows(1, world.stream(2, done)))
            nodes = result.columns(world.task.nodes)[0].tolist()
            began = time.process_time()
            optimiser.tell(asked, dict(zip(world.task.nodes, nodes, strict=True)))
            spent += time.process_time() - began
            tried = max(tried, float(world.expected(action)))
    return rows


def campaign_row(kind: str, seed: int, place: int, make: Make = CausalOptimiser) -> Row:
    """The row of one of the campaigns of a seed, without the columns of the run.

    Args:
        kind: Which of the three kinds.
        seed: Of the campaign, its noise and the optimiser.
        place: Its number, from 0.
        make: As for `network_rows`.
    """
    draw = numpy_generator(seed, _CAMPAIGN, WORLDS.index(kind), place)
    noise, rewards = float(10 ** draw.uniform(-1, 1)), dict[float, list[float]]()
    bounds: Any = (0.0, 1.0)
    if kind == ONE:
        slope, size, turns, shift = draw.normal(), draw.uniform(1, 3), draw.uniform(0.5, 1.5), draw.uniform()
        settings = draw.uniform(size=int(draw.integers(12, 21))).tolist()

        def true(values: Tensor) -> Tensor:
            wave = torch.sin(2 * math.pi * (turns * values[..., 0] + shift))
            return noise * (slope * values[..., 0] + size * wave)

    else:
        levels = [float(level) for level in range(int(draw.integers(2, 5)))]
        means = noise * draw.uniform(0.3, 1.5) * draw.normal(size=len(levels)) * float(kind == FEW) + 0.0
        settings = [level for level in levels for _ in range(int(draw.integers(3, 11)))]
        bounds = {"values": levels}

        def true(values: Tensor) -> Tensor:
            return torch.from_numpy(means)[values[..., 0].long()]

    parents = {"X": ["a"], "Y": ["X"]} if kind == ONE else {"Y": ["a"]}
    task = {"graph": {"parents": parents}, "actions": {"a": bounds}, "reward": {"weights": {"Y": 1.0}}}
    optimiser = make(task, seed=seed, initial=5)
    for setting in draw.permutation(settings).tolist():
        expected = float(true(torch.tensor([setting], dtype=torch.float64)))
        x = expected + noise * float(draw.normal()) * (0.5 if kind == ONE else 1)
        y = x + noise * math.sqrt(0.75) * float(draw.normal())
        nodes = {"X": x, "Y": y} if kind == ONE else {"Y": x}
        _told(optimiser, {"a": setting, **nodes})
        rewards.setdefault(setting, []).append(nodes["Y"])
    began = time.process_time()
    found = optimiser.recommend()
    seconds = time.process_time() - began
    row = _claimed(found, ("a",), true) | {"round": 0, "seconds": seconds}
    if kind != ONE and found.runner_up is not None:
        first, second = (np.array(rewards[action["a"]]) for action in (found.action, found.runner_up))
        error = noise * math.sqrt(1 / len(first) + 1 / len(second))
        row["exact"] = float(ndtr((first.mean() - second.mean()) / error))
    return row


def _told(optimiser: CausalOptimiser, values: Mapping[str, float]) -> None:
    """Tells an experiment that was not proposed."""
    task = optimiser.task
    ran = {name: values[name] for name in task.actions}
    optimiser.tell(None, {name: values[name] for name in task.nodes}, ran=ran)


def _settings(action: Mapping[str, float], names: Sequence[str]) -> Tensor:
    return torch.tensor([[action[name] for name in names]], dtype=torch.float64)


def _claimed(found: Recommended, names: Sequence[str], expected: Callable[[Tensor], Tensor]) -> Row:
    """A recommendation beside the truth; equally good settings leave open which is better."""
    true, other = float(expected(_settings(found.action, names))), math.nan
    if found.runner_up is not None:
        other = float(expected(_settings(found.runner_up, names)))
    row = dict.fromkeys(NUMBERS, math.nan) | {
        "claimed": found.predicted,
        "low": found.low,
        "high": found.high,
        "true": true,
        "held": float(found.low <= true <= found.high),
        "silent": float(not found.contradicted),
    }
    if found.chance is not None and true != other:
        row["better"] = float(true > other)
    return row | {"chance": math.nan if found.chance is None else found.chance}


def typed(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with numbers as numbers."""
    whole = ("seed", "rounds", "round")
    return [
        {**row, **{name: number(row[name]) for name in NUMBERS}, **{name: int(row[name]) for name in whole}}
        for row in rows
    ]


def main(words: Sequence[str] | None = None) -> int:
    """The command; `words` None for those of the process."""
    parser = argparse.ArgumentParser("python -m reproduction.calibration.network_claims")
    parser.add_argument(
        "--seeds", type=int, nargs=2, required=True, help="the first one, and the one after the last"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--method", default="excbo")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--out", type=Path, required=True, help="the CSV file of the rows, which it adds to")
    given = parser.parse_args(words)
    return exit_code(lambda: _run(given), "Interrupted; type the same again to go on.")


def _run(given: argparse.Namespace) -> int:
    first, end = given.seeds
    if end > REPORTED:
        remedy = "Report with python -m reproduction.calibration stages=[trials]"
        raise UserError(f"seeds from {REPORTED} on are for reporting alone", f"{first} {end}", remedy)
    record, failed = Record(given.out.parent, {TRIALS: Layout(given.out.name, KEY, COLUMNS)}), 0
    planned = [
        Job(TRIALS, world, "", given.method, seed, key=(world, given.method, str(seed), str(given.rounds)))
        for seed in range(first, end)
        for world in given.worlds
    ]
    todo = record.todo(planned)
    options = {"rounds": given.rounds, "overrides": []}
    for count, (job, rows, line) in enumerate(computed(rows_of, options, todo, given.workers), 1):
        record.add(job, rows, line)
        failed += line["state"] != "ok"
        said = line["message"] or f"{line['seconds']:.1f} s"
        print(f"{count}/{len(todo)}  {job.world}, seed {job.seed}: {said}", file=sys.stderr, flush=True)
    keys = {job.key for job in planned}
    rows = [row for row in record.rows(TRIALS) if tuple(row[name] for name in KEY) in keys]
    print("\n\n".join("\n".join(lines) for lines in network_tables.tables(typed(rows))))
    return 1 if failed else 0


if __name__ == "__main__":
    from reproduction.calibration import network_claims

    # Worker processes find what they compute by the name of its module.
    sys.exit(network_claims.main())
