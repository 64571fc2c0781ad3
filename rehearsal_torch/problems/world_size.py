"""Size of a simulated world: its observations and cases, or its experiments and rounds.

A rehearsal world draws a sample of N observations, and has a number of cases to decide on (`SampleSize`).
A causal world begins with a start design of experiments and continues for T rounds of one experiment each
(`Rounds`). A world takes one of these records as its argument `size`; a configuration names it by `_target_`.

Source: Du et al. (2026), Sec. 4.1 (observations and contexts); Sussex et al. (2023), the start design of
2 (k + 1) experiments.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from rehearsal_torch.data import causal_task, rehearsal_task
from rehearsal_torch.data.size_limits import NUMBERS, bounded

Setting = TypeVar("Setting")


@dataclass(frozen=True)
class SampleSize:
    """The number of observations and cases of a rehearsal world.

    Attributes:
        rows: N, number of observations, at least 10.
        contexts: Number of cases, at least 1; of a world that changes over time, number of rounds.
    """

    rows: int = 1000
    contexts: int = 20

    def __post_init__(self) -> None:
        bounded("size.rows", self.rows, NUMBERS, rehearsal_task.MIN_ROWS)
        bounded("size.contexts", self.contexts, NUMBERS)


@dataclass(frozen=True)
class Rounds:
    """The number of experiments of a causal world.

    Attributes:
        rounds: T, number of rounds after the start design, at least 1.
        initial: Number of experiments in the start design, at least 5; None for 2 (k + 1), of k actions.
    """

    rounds: int = 100
    initial: int | None = None

    def __post_init__(self) -> None:
        bounded("size.rounds", self.rounds, NUMBERS)
        if self.initial is not None:
            bounded("size.initial", self.initial, NUMBERS, causal_task.MIN_ROWS)

    def start(self, actions: int) -> int:
        """Number of experiments in the start design for k actions."""
        return 2 * (actions + 1) if self.initial is None else self.initial


def setting(key: str, value: Any, kind: type[Setting]) -> Setting:
    """An argument that must be an object of a dataclass, such as a world's size; ValueError if it is not."""
    if not isinstance(value, kind):
        *names, last = (f"{key}.{name}" for name in kind.__annotations__)
        fields = f"in a configuration {', '.join(names)} and {last}"
        raise ValueError(f"{key}: expected a {kind.__name__}, {fields}; got {value!r}")
    return value


def is_number(value: object) -> bool:
    """Whether a value is a number, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
