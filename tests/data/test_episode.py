import torch

from rehearsal_torch.data.episode import Episode, following, next_name, transitions


def episode(identity: str = "7", horizon: int = 3, names: tuple[str, ...] = ("a", "b")) -> Episode:
    return Episode(identity, names, torch.arange(2.0 * horizon).reshape(horizon, 2))


def test_transitions_pair_each_step_with_the_next_and_never_cross_episodes():
    table = transitions(
        [episode(horizon=3), Episode("8", ("a", "b"), torch.tensor([[10.0, 11.0], [20.0, 21.0]]))]
    )
    assert table.names == ("a", "b", "a'", "b'")
    assert table.values.tolist() == [[0, 1, 2, 3], [2, 3, 4, 5], [10, 11, 20, 21]]
    assert not table.altered.any()
    assert next_name("SOFA") == "SOFA'"


def test_what_was_filled_in_is_set_by_no_mechanism_in_the_next_step():
    marks = torch.tensor([[1, 0], [0, 1], [1, 0]], dtype=torch.bool)
    table = transitions([Episode("7", ("a", "b"), episode().values, filled=marks), episode("8")])
    assert table.altered.int().tolist() == [[0, 0, 0, 1], [0, 0, 1, 0], [0] * 4, [0] * 4]
    found = following(table, ("b",), ("a",))
    assert found.isnan().int().tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]
    assert found[:, 1].equal(table.values[:, 0])
    assert found[1:, 0].equal(table.values[1:, 3])
    assert table.values.isfinite().all()
    assert episode().first(2).filled is None
    assert Episode("7", ("a", "b"), episode().values, filled=marks).first(2).filled.equal(marks[:2])
