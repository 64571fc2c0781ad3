"""One run of a reinforcement learning agent in a world: the rows of its rounds.

    ddpg ppo sac cats       alter one variable per round, as the rehearsal methods do
    ..._joint               alter all variables jointly, which the numbers of Table 1 suggest for the paper;
                            the best possible probability differs accordingly
    ..._library             use the default settings of Stable-Baselines3, which hardly learn in 100 rounds,
                            and trees without shuffling
    uniform                 does not learn

A repeat has the same world as that of the rehearsal methods: same seed, contexts and noise.

Source: Qin et al. (2023), Sec. 6 and Tab. 1.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rehearsal_torch.evaluation.claim_rows import ONLINE_COLUMNS, Row
from rehearsal_torch.user_error import UserError
from reproduction.plan import study

if TYPE_CHECKING:
    from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld
    from reproduction.online.agent import Agent

WORLDS = ("ride_hailing", "ride_hailing_released", "bermuda")
AGENTS = study("online")["groups"]["agents"]
# Agent to the packages that it needs; the others need `_STABLE_BASELINES`.
_PACKAGES = {"uniform": ("gymnasium",), "cats": ("gymnasium", "vowpalwabbit")}
_STABLE_BASELINES = ("gymnasium", "stable_baselines3")


def rl_rows(world: str, agent: str, rounds: int, repeat: int) -> Iterator[Row]:
    """Plays a run; yields one row per round, in the format of `rehearsal_torch.evaluation.claim_rows`.

    Agents have no tau, no information and no bound: these cells are empty. Seconds are those of the agent
    alone, while those of a rehearsal method include some milliseconds of the world.

    Args:
        rounds: T, the number of rounds.
        repeat: The seed of world and agent.

    Raises:
        UserError: for an unknown name, less than one round, or a package that is not installed.
    """
    if world not in WORLDS or agent not in AGENTS or rounds < 1:
        raise UserError(
            f"expected a world of {', '.join(WORLDS)}, an agent of {', '.join(AGENTS)} and at least one "
            f"round; got {world}, {agent} and {rounds}"
        )
    lacking = missing(agent)
    if lacking:
        raise UserError(
            f"{agent} needs {' and '.join(lacking)}, which is not installed",
            "",
            'Type pip install "rehearsal-torch[rl]"',
        )
    from rehearsal_torch.adapters.gymnasium import RehearsalEnvironment
    from reproduction.online.played_rounds import RecordedEnvironment, truths

    made = world_of(world, rounds, repeat, joint=agent.endswith("_joint"))
    environment = RecordedEnvironment(RehearsalEnvironment(made, scored=False), rounds)
    agent_of(agent).play(environment, rounds, repeat)
    for each, true in zip(environment.played, truths(made, environment.played), strict=True):
        yield dict.fromkeys(ONLINE_COLUMNS, float("nan")) | {
            "world": world,
            "method": agent,
            "tau": "",
            "repeat": repeat,
            "round": each.round + 1,
            "target": "+".join(each.alteration.names),
            "value": "+".join(f"{value:.6g}" for value in each.alteration.values.tolist()),
            "success": int(each.success),
            "p_true": true.probability,
            "oracle": true.oracle,
            "seconds": each.seconds,
        }


def missing(agent: str) -> list[str]:
    """The packages that an agent needs and that are not installed."""
    packages = _PACKAGES.get(agent.partition("_")[0], _STABLE_BASELINES)
    return [name for name in packages if find_spec(name) is None]


def world_of(world: str, rounds: int, repeat: int, joint: bool) -> "RehearsalWorld":
    """The world of a repeat.

    Args:
        rounds: Number of contexts.
        repeat: Seed of the world.
        joint: Whether the only candidate set consists of all alterable variables.
    """
    from rehearsal_torch.problems.cases.bermuda import ACTIONABLE, Bermuda
    from rehearsal_torch.problems.cases.linear_examples import RideHailing
    from rehearsal_torch.problems.world_size import SampleSize

    size = SampleSize(rows=10, contexts=rounds)
    if world == "bermuda":
        return Bermuda("qwz23", [ACTIONABLE] if joint else None, size=size, seed=repeat)
    candidates = [("recommend", "discount")] if joint else None
    return RideHailing(
        released=world == "ride_hailing_released", candidates=candidates, size=size, seed=repeat
    )


def agent_of(name: str) -> "Agent":
    """An agent by its name.

    Args:
        name: One of `AGENTS`.
    """
    from reproduction.online.action_trees import ActionTrees
    from reproduction.online.actor_critic import Ddpg, Ppo, Sac
    from reproduction.online.agent import UniformAgent

    kind, library = name.partition("_")[0], "_library" in name
    if kind == "uniform":
        return UniformAgent()
    if kind == "cats":
        return ActionTrees(shuffled=not library)
    if kind == "ppo":
        return Ppo(library)
    return Ddpg(library) if kind == "ddpg" else Sac(library)
