"""Rows: which actions of simulated machines should have been others, beside PPO of stable-baselines3.

Both sides are judged by the same number: the mean true return of the same test machines, from the same first
week, under the same noise and over the same weeks; the last action stays as recorded.

    ours     four transition models of the training machines' records, then branch and bound for each test
             machine, with at most three changes of what was recorded (the default method)
    theirs   PPO with its default settings on `adapters.gymnasium`, observations and rewards
             normalised, for so many weeks with other machines of the same kind; then its most likely action
             in every week

Time is that of training and deciding together. The two do not answer the same question: PPO learns a policy
for weeks to come, by trying actions out in the true world; the package has records alone, no trials, and says
in retrospect what would have been better, knowing how each machine's weeks went. Neither can do the other's
work, so that the row is no contest of methods: it says what either costs and reaches.

A repetition is one seed of PPO, and of the fit. Machines that PPO learns from are of other seeds than those
that it is tested on.

Source: Schulman et al. (2017) (PPO); Raffin et al. (2021) (stable-baselines3); Tsirtsis and Gomez-Rodriguez
(2023), Sec. 3 (the question in retrospect).
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from torch import Tensor

from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.methods.instantiate import build, surrogate_of, trainer_of
from rehearsal_torch.problems.sequences.machine_maintenance import Machines, true_returns
from rehearsal_torch.training.surrogate_fit import fit

WEEKS, MACHINES, DECIDED, EPOCHS, SEEDS = (8_192, 32_768), 600, 24, 40, 3
ROLLOUT = 2048
OTHER_MACHINES = 1000
"""Seeds of PPO's machines begin here, far from those of the tests."""
PEER = "stable-baselines3 PPO"
NOTE = (
    "ours has the training machines' records and no trials, changes at most three recorded actions, and "
    "decides in retrospect with each machine's own noise; theirs tries actions out in the true world for so "
    "many weeks, and yields a policy for weeks to come that chooses every action without knowing the noise"
)


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    weeks, sizes = ((64,), (40, 2, 1)) if small else (WEEKS, (MACHINES, DECIDED, EPOCHS))
    for count in weeks:
        yield Job(
            "machines, k = 3",
            PEER,
            "weeks of PPO",
            count,
            partial(decided, count, *sizes),
            NOTE,
            needs="stable_baselines3",
        )


def decided(weeks: int, machines: int, count: int, epochs: int) -> Contest:
    """Decisions about some test machines, for each of several seeds."""
    world = Machines(machines)
    cases = [world.case(index) for index in range(min(count, world.count()))]
    operated = mean_return(world, cases, [recorded(world, case) for case in cases])
    reached: tuple[list[float], list[float]] = ([], [])

    def side(which: int, sequences: Callable[[int], list[Tensor]]) -> None:
        reached[which].append(mean_return(world, cases, sequences(len(reached[which]))))

    def quality(*_: object) -> Quality:
        both = min(map(len, reached))
        return Quality(
            f"mean true return, {both} seeds ({operated:.1f} as operated)",
            float(np.mean(reached[0][:both])),
            float(np.mean(reached[1][:both])),
            None,
            "they answer different questions",
        )

    return Contest(
        lambda: side(0, partial(in_retrospect, world, cases, epochs)),
        lambda: side(1, partial(by_policy, world, cases, weeks)),
        quality,
        repeat=SEEDS,
        facts=lambda *_: {
            "operated": operated,
            "ours_returns": list(reached[0]),
            "theirs_returns": list(reached[1]),
        },
        units=0,
    )


def in_retrospect(world: Machines, cases: list[EpisodeCase], epochs: int, seed: int) -> list[Tensor]:
    """The actions that the default method recommends, (T, 2) long each."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(
            "config",
            [
                "dataset=machines",
                f"seed={seed}",
                f"trainer.max_epochs={epochs}",
                "trainer.patience=5",
                "trainer.progress=false",
            ],
        )
    surrogate = surrogate_of(config, world)
    fit(surrogate, world.observations(), trainer_of(config, None), world.held_out())
    objective, search, found = build(config, "objective"), build(config, "search"), []
    for case in cases:
        asked = objective(surrogate, case)
        (decision,) = ruled(asked, [search(asked)], search.declines)
        found.append(world.actions(case.episode, decision)[1])
    return found


def by_policy(world: Machines, cases: list[EpisodeCase], weeks: int, seed: int) -> list[Tensor]:
    """The actions of a policy that PPO has learnt, (T, 2) long each."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from rehearsal_torch.adapters.gymnasium import EpisodeEnvironment, MachineUnits, machines

    # The agent's seed is that of its machines, too.
    environment = VecNormalize(DummyVecEnv([lambda: machines(seed=OTHER_MACHINES + seed)]))
    length = min(ROLLOUT, weeks)
    agent = PPO("MlpPolicy", environment, n_steps=length, seed=OTHER_MACHINES + seed, device="cpu")
    agent.learn(weeks)
    tested, found = EpisodeEnvironment(lambda _: MachineUnits(world.fleet)), []
    for case in cases:
        shown, _ = tested.reset(options={"unit": number(case)})
        chosen, over = [], False
        while not over:
            action, _ = agent.predict(environment.normalize_obs(shown), deterministic=True)
            chosen.append(torch.as_tensor(action).long())
            shown, _, over, _, _ = tested.step(action)
        found.append(torch.stack([*chosen[:-1], recorded(world, case)[-1]]))
    return found


def number(case: EpisodeCase) -> int:
    """The place of a case's machine in the fleet: machines are numbered from 1."""
    return int(case.episode.identity) - 1


def recorded(world: Machines, case: EpisodeCase) -> Tensor:
    """The recorded actions, (T, 2) long."""
    return world.fleet.actions[number(case), : case.episode.horizon]


def mean_return(world: Machines, cases: list[EpisodeCase], sequences: list[Tensor]) -> float:
    """The mean true return of sequences of actions, one for each case."""
    returns = [
        true_returns(world.fleet, number(case), actions.unsqueeze(0))
        for case, actions in zip(cases, sequences, strict=True)
    ]
    return float(torch.cat(returns).mean())
