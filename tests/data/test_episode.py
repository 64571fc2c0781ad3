import pytest
import torch

from rehearsal_torch.data.episode import Episode, next_name, transitions


def episode(identity: str = "7", horizon: int = 3, names: tuple[str, ...] = ("a", "b")) -> Episode:
    return Episode(identity, names, torch.arange(2.0 * horizon).reshape(horizon, 2))


def test_an_episode_knows_its_columns_and_its_beginning():
    assert episode().horizon == 3
    assert episode().columns(("b",)).tolist() == [[1], [3], [5]]
    assert episode().first(2).values.tolist() == [[0, 1], [2, 3]]
    assert episode().first(2).identity == "7"


def test_transitions_pair_each_step_with_the_next_and_never_cross_episodes():
    table = transitions(
        [episode(horizon=3), Episode("8", ("a", "b"), torch.tensor([[10.0, 11.0], [20.0, 21.0]]))]
    )
    assert table.names == ("a", "b", "a'", "b'")
    assert table.values.tolist() == [[0, 1, 2, 3], [2, 3, 4, 5], [10, 11, 20, 21]]
    assert not table.altered.any()
    assert next_name("SOFA") == "SOFA'"


def test_episodes_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="at least one episode"):
        transitions([])
    with pytest.raises(ValueError, match="episode 9 has other columns than episode 7"):
        transitions([episode(), episode("9", names=("a", "c"))])


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (torch.zeros(1, 2), "T >= 2"),
        (torch.zeros(3, 3), "T >= 2, 2"),
        (torch.tensor([[0.0, float("nan")], [0.0, 0.0]]), r"episode 7: columns \['b'\]"),
        (torch.tensor([[float("inf"), 0.0], [0.0, 0.0]]), r"episode 7: columns \['a'\]"),
    ],
)
def test_broken_episodes_are_refused_by_name(values: torch.Tensor, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Episode("7", ("a", "b"), values)
