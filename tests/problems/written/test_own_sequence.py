"""A problem file that asks for a sequence: the same as its table and task."""

from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.problems.written.own_sequence import OwnSequence
from tests.problems.written.test_sequence_file import TASK


def test_it_is_the_table_with_the_task(sequence):
    file = sequence()
    problem, table = OwnSequence(file, seed=3), EpisodeTable(file.parent / "pumps.csv", TASK, seed=3)
    assert problem.card() == table.card()
    assert problem.case(1).facts() == table.case(1).facts()
    assert problem.surrogate_settings() == table.surrogate_settings()
    assert problem.reward_settings() == table.reward_settings()
    assert problem.notes() == ("maker: its values are A, B, of which A is the reference",)
    assert problem.method_named() is None
    assert OwnSequence(sequence(method="astar")).method_named() == "astar"
