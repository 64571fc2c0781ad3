"""Episodes on disk: their numbers one after the other in a file, read again in blocks of transitions.

    the steps of all episodes, row by row, d numbers of 8 bytes each (`row_spool`)

A block holds the transitions of successive whole episodes, about `ROWS` of them.

Source: ours.
"""

from array import array
from pathlib import Path

import numpy as np
import torch

from rehearsal_torch.data.episode import Episode, next_name
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import ROWS, Blocks
from rehearsal_torch.data.tables.row_spool import RowSpool


class EpisodeSpool:
    """Episodes of the same columns on disk.

    The file is gone with this object and its blocks, or with the process.

    Args:
        names: The d columns.
        scratch: The folder for the file; None for the system's own folder of temporary files.

    Raises:
        OSError: if the file cannot be written.
    """

    def __init__(self, names: tuple[str, ...], scratch: str | Path | None = None) -> None:
        self._steps = RowSpool(names, scratch)
        self.close = self._steps.close
        self.names, self.file = names, self._steps.file
        self.horizons = array("q")

    def append(self, episodes: list[Episode]) -> None:
        """Adds episodes to the end.

        Raises:
            OSError: if they cannot be written, as on a full disk.
        """
        if not episodes:
            return
        self._steps.append(torch.cat([each.values for each in episodes]))
        self.horizons.extend(each.horizon for each in episodes)

    def transitions(self, rows: int = ROWS) -> Blocks[Table]:
        """The transitions of all episodes, as `data.episode.transitions` gives them, in blocks.

        Args:
            rows: Transitions after which a block ends, with the episode that is complete by then.
        """
        horizons = np.frombuffer(self.horizons, dtype=np.int64).copy()
        ends = np.cumsum(horizons)
        ready = np.cumsum(horizons - 1)
        # Episodes before each block: an episode belongs to the block in which its first transition lies.
        block = (ready - (horizons - 1)) // rows
        firsts = np.flatnonzero(np.r_[True, block[1:] != block[:-1]]) if len(block) else np.zeros(0, np.int64)
        lasts = np.r_[firsts[1:], len(horizons)].astype(np.int64) if len(firsts) else firsts
        begins = ends - horizons

        def make(place: int) -> Table:
            first, last = int(firsts[place]), int(lasts[place])
            return self._read(int(begins[first]), horizons[first:last])

        counts = [
            int(ready[last - 1] - (ready[first] - horizons[first] + 1))
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
        ]
        return Blocks(counts, make)

    def _read(self, begin: int, horizons: np.ndarray) -> Table:
        """The transitions of successive episodes, of which the first starts at row `begin`."""
        steps = int(horizons.sum())
        values = self._steps.read(begin, steps)
        last = torch.zeros(steps, dtype=torch.bool)
        last[torch.from_numpy(np.cumsum(horizons) - 1)] = True
        first = torch.cat([last.new_ones(1), last[:-1]])
        names = (*self.names, *(next_name(name) for name in self.names))
        return Table.observed(names, torch.cat([values[~last], values[~first]], -1))
