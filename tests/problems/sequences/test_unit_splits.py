"""Splits: by patient, reproducible, and stable under growth."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.sequences.unit_splits import split

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=150, max_size=250), st.integers(0, 5))
def test_every_episode_has_one_place_and_a_patients_episodes_stay_together(
    counts: list[int], seed: int
) -> None:
    patients = [str(patient) for patient, count in enumerate(counts) for _ in range(count)]
    found = split(patients, SHARES, seed)
    assert sorted(place for places in found.values() for place in places) == list(range(len(patients)))
    homes = {name: {patients[place] for place in places} for name, places in found.items()}
    assert not homes["train"] & homes["test"]
    assert not homes["train"] & homes["validation"]
    assert not homes["validation"] & homes["test"]


def test_shares_are_met_and_growth_moves_nobody() -> None:
    patients = [str(number) for number in range(5000)]
    small, large = split(patients[:1000], SHARES, 0), split(patients, SHARES, 0)
    for name, share in SHARES.items():
        assert abs(len(large[name]) / 5000 - share) < 0.02
        assert set(small[name]) <= set(large[name])
    assert split(patients, SHARES, 1) != large
