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
