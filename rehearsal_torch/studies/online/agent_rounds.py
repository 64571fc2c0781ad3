"""One run of a reinforcement learning agent in a world: the rows of its rounds.

    ddpg ppo sac cats       alter one variable per round, as the rehearsal methods do
    ..._joint               alter all variables jointly, which the figures of Table 1 suggest for the paper;
                            the oracle differs accordingly
    ..._library             use the default settings of Stable-Baselines3, which hardly learn in 100 rounds,
                            and trees without shuffling
    uniform                 does not learn

The worlds are those of the rehearsal methods with the same repeat: same seed, same contexts, same noise.

Source: Qin et al. (2023), Sec. 6 and Tab. 1.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.evaluation.online_rows import COLUMNS, Row

if TYPE_CHECKING:
    from rehearsal_torch.problems.rehearsal.world import RehearsalWorld
    from rehearsal_torch.studies.online.agent import Agent

WORLDS = ("ride_hailing", "ride_hailing_released", "bermuda")
BARE = ("uniform", "ddpg", "ppo", "sac", "cats", "ddpg_library", "ppo_library", "sac_library", "cats_library")
AGENTS = (*BARE, *(f"{name}_joint" for name in BARE))
NEEDED = {"uniform": ("gymnasium",), "cats": ("gymnasium", "vowpalwabbit")}
NONE = float("nan")


def rl_rows(world: str, agent: str, rounds: int, repeat: int) -> Iterator[Row]:
    """Plays so many rounds; yields a row a round, as `online_rows` says. Agents have no tau, no information
    and no bound.

    Seconds are the agent's alone: a rehearsal method's include what the world takes, some milliseconds a
    round.

    Args:
        world: One of `WORLDS`.
        agent: One of `AGENTS`.
        rounds: T.
        repeat: The seed of world and agent.

    Raises:
        UserError: for an unknown name, no rounds, or a package that is not installed.
    """
    if world not in WORLDS or agent not in AGENTS or rounds < 1:
        raise UserError(
            f"expected a world of {', '.join(WORLDS)}, an agent of {', '.join(AGENTS)} and a round; got "
            f"{world}, {agent} and {rounds}"
        )
    lacking = missing(agent)
    if lacking:
        raise UserError(
            f"{agent} needs {' and '.join(lacking)}, which is not installed",
            "",
            'Type pip install "rehearsal-torch[rl]"',
        )
    from rehearsal_torch.adapters.gymnasium import RecordedEnvironment, RehearsalEnvironment, truths

    made = world_of(world, rounds, repeat, joint=agent.endswith("_joint"))
    environment = RecordedEnvironment(RehearsalEnvironment(made, scored=False), rounds)
    agent_of(agent).play(environment, rounds, repeat)
    for each, true in zip(environment.played, truths(made, environment.played), strict=True):
        told = (
            "+".join(each.alteration.names),
            "+".join(f"{value:.6g}" for value in each.alteration.values.tolist()),
        )
        row = (
            world,
            agent,
            "",
            repeat,
            each.round + 1,
            *told,
            int(each.success),
            true.probability,
            true.oracle,
            NONE,
            NONE,
            NONE,
            each.seconds,
        )
        yield dict(zip(COLUMNS, row, strict=True))


def missing(agent: str) -> list[str]:
    """The packages that an agent needs and that are not installed."""
    kind = agent.removesuffix("_joint")
    return [
        name
        for name in NEEDED.get(kind.removesuffix("_library"), ("gymnasium", "stable_baselines3"))
        if find_spec(name) is None
    ]


def world_of(world: str, rounds: int, repeat: int, joint: bool) -> "RehearsalWorld":
    """The world of a repeat.

    Args:
        world: One of `WORLDS`.
        rounds: How many contexts it has.
        repeat: Its seed.
        joint: Whether all variables are altered at once.
    """
    from rehearsal_torch.problems.rehearsal.bermuda import ACTIONABLE, Bermuda
    from rehearsal_torch.problems.rehearsal.ride_hailing import RideHailing

    if world == "bermuda":
        return Bermuda("qwz23", [ACTIONABLE] if joint else None, rows=10, contexts=rounds, seed=repeat)
    both = [("recommend", "discount")] if joint else None
    return RideHailing(
        released=world == "ride_hailing_released", candidates=both, rows=10, contexts=rounds, seed=repeat
    )


def agent_of(name: str) -> "Agent":
    """The agent of a name in `AGENTS`."""
    from rehearsal_torch.studies.online.action_trees import ActionTrees
    from rehearsal_torch.studies.online.actor_critic import Ddpg, Ppo, Sac
    from rehearsal_torch.studies.online.agent import UniformAgent

    kind, library = name.removesuffix("_joint").removesuffix("_library"), "_library" in name
    if kind == "uniform":
        return UniformAgent()
    if kind == "cats":
        return ActionTrees(shuffled=not library)
    if kind == "ppo":
        return Ppo(library)
    return Ddpg(library) if kind == "ddpg" else Sac(library)
