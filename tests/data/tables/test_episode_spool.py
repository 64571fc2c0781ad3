import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.tables.episode_spool import EpisodeSpool


@given(horizons=st.lists(st.integers(2, 9), min_size=1, max_size=12), rows=st.integers(1, 30))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_blocks_are_the_transitions_of_all_episodes(horizons, rows):
    stream = torch.Generator().manual_seed(len(horizons))
    episodes = [
        Episode(str(place), ("a", "b"), torch.randn(horizon, 2, generator=stream, dtype=torch.float64))
        for place, horizon in enumerate(horizons)
    ]
    spool = EpisodeSpool(("a", "b"))
    spool.append(episodes[:1])
    spool.append([])
    spool.append(episodes[1:])
    blocks, whole = spool.transitions(rows), transitions(episodes)
    assert blocks.rows == tuple(len(block) for block in blocks)
    assert len(blocks) == len(whole)
    assert torch.equal(torch.cat([block.values for block in blocks]), whole.values)
    assert blocks[0].names == whole.names
    assert max(blocks.rows) < rows + max(horizons) - 1
    assert torch.equal(blocks[blocks.count - 1].values, list(blocks)[-1].values), "in any order"


def test_no_episode_is_no_block():
    assert EpisodeSpool(("a",)).transitions().count == 0


def test_a_file_that_was_cut_is_noticed(tmp_path):
    spool = EpisodeSpool(("a",), tmp_path)
    spool.append([Episode("1", ("a",), torch.zeros(3, 1, dtype=torch.float64))])
    spool.file.truncate(16)
    with pytest.raises(OSError, match="is shorter than it was written"):
        spool.transitions()[0]
