"""Rows: rounds of causal Bayesian optimisation, beside BoTorch without the graph and with it.

Dropwave from its start design of six experiments on: a round fits, finds the next action and runs it. The
reference is BoTorch's `SingleTaskGP` of the rewards with qLogNEI and `optimize_acqf` (512 raw samples, 10
restarts) on actions and rewards alone; in the rows called `nodes`, qLogNEI of one `SingleTaskGP` for each
node, composed by sampling (`suite.plain.node_processes`). A repetition is one seed; both sides have the same
start design and the same noise. Time is that of a round; quality is the best expected reward tried so far,
below the optimum.

The package learns intermediate variables, fits one process per node and its noise distribution, and so does
more in a round than a process of the rewards; whether that pays is the regret's to say, and few seeds say it
roughly.

Source: Ren et al. (2025) (the world and decision=excbo); Balandat et al. (2020) and Ament et al. (2023)
(BoTorch and qLogNEI).
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality, Timed
from benchmarks.suite.plain.black_box import by_botorch
from benchmarks.suite.plain.node_processes import by_node_processes
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.training.surrogate_fit import fit

ROUNDS, SEEDS = 6, 3
PEER = "BoTorch SingleTaskGP, qLogNEI"
NOTE = "ours learns from the intermediate variable too; theirs sees actions and rewards alone"
NODES = "BoTorch SingleTaskGP per node, qLogNEI"
OF_NODES = "both learn from the intermediate variable; theirs takes the noise of each node to be normal"
APART = "the two sides learn different models and try different actions, and few seeds do not tell them apart"


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    count, seeds = (1, 1) if small else (ROUNDS, SEEDS)
    for method in ("ucb",) if small else ("excbo", "ucb"):
        alone, nodes = (partial(played, method, way, count, seeds) for way in (by_botorch, by_node_processes))
        yield Job(f"causal round, {method}", PEER, "rounds", count, alone, NOTE)
        yield Job(f"causal round, {method}, nodes", NODES, "rounds", count, nodes, OF_NODES)


def played(method: str, other: Callable[[CausalWorld, int], list[float]], count: int, seeds: int) -> Contest:
    """So many rounds for each of several seeds, beside another way to play them."""
    regrets: tuple[list[float], list[float]] = ([], [])

    def side(which: int, play: Callable[[CausalWorld, int], list[float]]) -> Timed:
        seed = len(regrets[which])
        world = Dropwave(seed=seed, size=Rounds(count))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            tried = play(world, seed)
            seconds = (time.process_time() - began) / count
        regrets[which].append(world.optimal_value - max(tried))
        return Timed(None, seconds)

    def quality(*_: object) -> Quality:
        both = min(map(len, regrets))
        regret = (float(np.mean(each[:both])) for each in regrets)
        return Quality(f"mean simple regret, {both} seeds", *regret, None, APART, higher=False)

    return Contest(
        lambda: side(0, partial(by_network, method)),
        lambda: side(1, other),
        quality,
        repeat=seeds,
        facts=lambda *_: {"ours_regrets": list(regrets[0]), "theirs_regrets": list(regrets[1])},
        units=count,
    )


def by_network(method: str, world: CausalWorld, seed: int) -> list[float]:
    """The expected reward of each action that a method of the configuration tries."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", [f"seed={seed}", f"decision={method}"])
    surrogate = instantiate(config.surrogate, task=world.task.to_plain(), _convert_="all")
    fit(surrogate, world.observations())
    objective, search = instantiate(config.objective), instantiate(config.search)
    made = rounds(world, surrogate, objective, search, learn=True, seed=seed)
    return [float(each.score["expected"]) for each in made]
