"""The stage of the study that plays reinforcement learning agents in the same worlds.

Rows of 100 rounds stand in rl.csv, those of T rounds in rl_T.csv. An agent's repeat is done where the file
holds all its rounds; what was torn is dropped and played anew.

Source: Qin et al. (2023), Sec. 6 and Tab. 1.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.evaluation.online_rows import COLUMNS, NUMBERS, WHOLE
from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.files.rows import read_rows, torn
from rehearsal_torch.studies.qwz23.agent_rounds import rl_rows
from rehearsal_torch.studies.record import append, replace

PAPER = 100
Key = tuple[str, str, str]


def rl_file(folder: Path, rounds: int | None = None) -> Path:
    """Where the rows of so many rounds stand; None for the paper's number."""
    return folder / ("rl.csv" if rounds in (None, PAPER) else f"rl_{rounds}.csv")


def played(
    folder: Path,
    worlds: Sequence[str],
    agents: Sequence[str],
    rounds: int,
    repeats: int,
    deadline: float | None,
    say: Callable[[str], None],
) -> int:
    """Plays what is not done.

    Args:
        folder: The study's.
        worlds: In which worlds.
        agents: Which agents, as `rl_rows` knows them.
        rounds: T, of each repeat.
        repeats: How many, from 0 on.
        deadline: On `time.monotonic`'s clock, after which no repeat begins; None for none.
        say: Is told of every repeat.

    Returns:
        How many repeats are left.

    Raises:
        UserError: for an unknown name, or a package that is not installed.
    """
    file = rl_file(folder, rounds)
    lines = played_lines(file)
    counts = Counter(_key(line) for line in lines)
    done = {key for key, count in counts.items() if count == rounds}
    if len(done) != len(counts) or torn(file):
        replace(file, written([line for line in lines if _key(line) in done], COLUMNS))
    planned = [
        (world, agent, str(repeat)) for repeat in range(repeats) for world in worlds for agent in agents
    ]
    todo, left = [key for key in planned if key not in done], 0
    say(f"rl: {len(todo)} of {len(planned)} repeats of {rounds} rounds to do")
    for number, (world, agent, repeat) in enumerate(todo, 1):
        if deadline is not None and time.monotonic() >= deadline:
            left = len(todo) - number + 1
            break
        rows = list(rl_rows(world, agent, rounds, int(repeat)))
        if len(rows) != rounds:
            raise UserError(
                f"{agent} played {len(rows)} rounds of {rounds}",
                world,
                "Choose another agent, or another number of rounds",
            )
        append(file, rows, COLUMNS)
        say(
            f"rl {number}/{len(todo)}  {world} {agent} repeat={repeat}: "
            f"{sum(row['p_true'] for row in rows) / rounds:.3f}"
        )
    return left


def played_lines(file: Path) -> list[dict[str, str]]:
    """The rounds that agents played, a row each.

    Raises:
        PlainFileError: if the file is damaged.
    """
    return read_rows(file, COLUMNS, NUMBERS, WHOLE)


def _key(line: dict[str, str]) -> Key:
    return line["world"], line["method"], line["repeat"]
