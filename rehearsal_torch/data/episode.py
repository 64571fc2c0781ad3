"""Episodes: the observations of one unit at T successive time steps, and their transitions.

An episode is tau = {(s_t, a_t)}, t = 0 ... T-1: states and actions, here as named columns in their own units,
so that a surrogate selects what it needs (varying states, static and contextual features, doses) by name.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.data.records import positions
from rehearsal_torch.files.bounded_yaml import is_tensor

if TYPE_CHECKING:
    from torch import Tensor

    from rehearsal_torch.data.table import Table


@dataclass(frozen=True, init=False, eq=False)
class Episode:
    """T successive observations of the unit `identity` over d columns, as a tensor and as an array of NumPy
    (`values`, `rows`). An action followed the last state if `acts_last`; else those of its row stand for
    none. A ValueError if there are fewer than two, the shapes disagree, or a value is missing.
    """

    identity: str
    names: tuple[str, ...]
    acts_last: bool
    marks: Tensor | np.ndarray | None  # `filled`, as it was given

    def __init__(
        self,
        identity: str,
        names: Sequence[str],
        values: Tensor | np.ndarray,
        acts_last: bool = True,
        filled: Tensor | np.ndarray | None = None,
    ) -> None:
        shape, names = tuple(values.shape), tuple(names)
        cells = {"values" if is_tensor(values) else "rows": values}
        fields = {"identity": identity, "names": names, "acts_last": acts_last, "marks": filled}
        for name, value in (cells | fields).items():
            object.__setattr__(self, name, value)
        where = f"episode {identity}"
        if len(shape) != 2 or shape[1] != len(names) or shape[0] < 2:
            raise ValueError(f"{where}: expected values of shape (T >= 2, {len(names)}); got {shape}")
        complete = np.isfinite(self.rows).all(0).tolist()
        if gaps := [name for name, finite in zip(names, complete, strict=True) if not finite]:
            raise ValueError(
                f"{where}: columns {gaps} hold missing or infinite values; impute or drop them first"
            )

    @property
    def horizon(self) -> int:
        """T, the number of observed time steps."""
        return len(self.rows)

    @cached_property
    def values(self) -> Tensor:
        """(T, d), one row per time step, each column in its own unit."""
        import torch

        return torch.from_numpy(self.rows)

    @cached_property
    def rows(self) -> np.ndarray:
        """`values` as an array of NumPy."""
        return self.values.detach().cpu().numpy()

    @cached_property
    def filled(self) -> Tensor | None:
        """(T, d), true where a value was filled in that no model is to learn; None for nowhere."""
        import torch

        return None if self.marks is None else torch.as_tensor(self.marks)

    def columns(self, names: Sequence[str]) -> Tensor:
        """The named columns, (T, len(names))."""
        return self.values[:, positions(self.names, names)]

    def changed(self, **changes: Any) -> Episode:
        """With other arguments."""
        arguments = {
            name: getattr(self, name) for name in ("identity", "names", "values", "acts_last", "filled")
        }
        return Episode(**arguments | changes)

    def first(self, horizon: int) -> Episode:
        """Its first `horizon` time steps."""
        acts = self.acts_last or horizon < self.horizon
        filled = None if self.filled is None else self.filled[:horizon].clone()
        return self.changed(values=self.values[:horizon].clone(), acts_last=acts, filled=filled)


def transitions(episodes: Sequence[Episode]) -> Table:
    """All transitions between successive time steps: sum(T - 1) rows over 2 d columns, those of the next step
    with a prime ("SOFA'"), and the episode's number as unit; cells that were filled in next are marked
    altered. A ValueError without episodes, or if their columns differ.
    """
    if not episodes:
        raise ValueError("expected at least one episode; got none: loosen the filters of the data set")
    import torch

    from rehearsal_torch.data.table import Table

    names = episodes[0].names
    if differing := [episode.identity for episode in episodes if episode.names != names]:
        than = f"than episode {episodes[0].identity}"
        raise ValueError(f"episode {differing[0]} has other columns {than}; all must share {names}")
    width = len(names)
    # Written in place: the rows of either time step, and both side by side, would be twice the memory.
    values = episodes[0].values.new_empty(sum(episode.horizon - 1 for episode in episodes), 2 * width)
    torch.cat([episode.values[:-1] for episode in episodes], out=values[:, :width])
    torch.cat([episode.values[1:] for episode in episodes], out=values[:, width:])
    lengths = torch.tensor([episode.horizon - 1 for episode in episodes])
    units = torch.arange(len(episodes)).repeat_interleave(lengths).to(values.device)
    altered = torch.zeros_like(values, dtype=torch.bool)
    for begin, episode in zip((lengths.cumsum(0) - lengths).tolist(), episodes, strict=True):
        if episode.filled is not None:
            altered[begin : begin + episode.horizon - 1, width:] = episode.filled[1:]
    return Table((*names, *(next_name(name) for name in names)), values, altered, units=units)


def following(table: Table, names: Sequence[str], beside: Sequence[str] = ()) -> Tensor:
    """The next step's columns `names`, NaN where altered, and this step's `beside`, (n, columns)."""
    import torch

    ahead = [next_name(name) for name in names]
    values = table.columns([*ahead, *beside])
    values[:, : len(ahead)].masked_fill_(table.altered[:, positions(table.names, ahead)], torch.nan)
    return values


def next_name(name: str) -> str:
    """The name of a column at the next time step."""
    return f"{name}'"
