"""The numbers that every derivation gives: results can be repeated for as long as these stay."""

import random

import numpy as np
import pytest
import torch

from rehearsal_torch import seeding
from tests.places import modules


def two(generator):
    if isinstance(generator, np.random.Generator):
        return generator.random(2).tolist()
    return torch.rand(2, generator=generator, dtype=torch.float64).tolist()


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (seeding.paired_seed(4, 9), 1490648017792436024),
        (seeding.paired_generator(2, 5).initial_seed(), 5427724551688137788),
        (seeding.epoch_seed(0, 0), 4470810117544037453),
        (seeding.epoch_seed(41, 7), 2409168830100504360),
        (seeding.epoch_seed(-5, 2), 3003132996938026806),
        (seeding.round_seed(0, "0"), 1096851793),
        (seeding.round_seed(7, "another 12"), 908529610),
        (seeding.stream(3, "p7").initial_seed(), 2827566682090801621),
        (seeding.spaced_generator(2, 17).initial_seed(), 2_000_023),
        (seeding.split_position(5, "patient 3"), 0.2674752487795256),
    ],
)
def test_seeds_are_what_they_were(seed, expected):
    assert seed == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (seeding.generator(12), [0.7254998427494742, 0.6217684142051493]),
        (seeding.numpy_generator(12), [0.2508244581084461, 0.9467529428594246]),
        (seeding.stream(3, "p7"), [0.2836236956724255, 0.05276946526343518]),
        (seeding.spaced_generator(2, 17), [0.44547914698985225, 0.766022190688241]),
        (seeding.numpy_generator(6, 2, 11), [0.920943050304005, 0.9076494250705993]),
        (seeding.numpy_generator(6, 200), [0.19689856417375085, 0.01674507521043922]),
        (seeding.numpy_generator(8, 3), [0.9604897085844083, 0.4221238131190037]),
        (seeding.numpy_generator(seeding.COMMON_NOISE), [0.6064151551960757, 0.3791458414559964]),
    ],
)
def test_draws_are_what_they_were(made, expected):
    assert two(made) == expected


def test_the_first_stretch_of_seeds_reaches_below_zero():
    assert two(seeding.spaced_generator(0, -1))[0] == 0.9503951604874923


def test_even_draws_are_what_they_were():
    first, second = seeding.sobol(3).draw(2, dtype=torch.float64).tolist()
    assert first == [0.47510719299316406, 0.592523992061615, 0.4944792091846466]
    assert second == [0.6355292368680239, 0.17165081854909658, 0.8551316680386662]
    assert seeding.sobol(3, 9).draw(1, dtype=torch.float64).tolist() == [
        [0.5331161618232727, 0.2320396900177002, 0.8208925127983093]
    ]


def test_the_global_states_are_what_they_were():
    before, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        seeding.seed_everything(2**32 + 5)
        drawn = random.random(), np.random.rand(), torch.rand(1, dtype=torch.float64).item()  # noqa: NPY002
    random.setstate(before)
    np.random.set_state(legacy)  # noqa: NPY002
    assert drawn == (0.15727238718789782, 0.22199317108973948, 0.6420150066280941)


def test_pairs_of_seed_and_epoch_have_seeds_of_their_own():
    assert len({seeding.epoch_seed(seed, epoch) for seed in range(100) for epoch in range(100)}) == 10_000
    assert all(0 <= seeding.epoch_seed(seed, 0) < 2**63 for seed in (-5, 0, 2**40))


@pytest.mark.parametrize(
    "derivation",
    [
        "Generator().manual_seed",
        "default_rng(",
        "SeedSequence(",
        "scramble=True",
        "np.random.seed(",
        "default_generator.",
    ],
)
def test_seeds_are_derived_nowhere_else(derivation):
    found = [path.name for path in modules() if derivation in path.read_text(encoding="utf-8")]
    assert found == ["seeding.py"]


def test_nothing_seeds_all_devices():
    assert [each.name for each in modules() if "torch.manual_seed(" in each.read_text(encoding="utf-8")] == []


def test_seeding_leaves_the_random_states_of_gpus_as_they_are(monkeypatch):
    def refused(seed):
        raise AssertionError("the caller's GPUs were seeded")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", refused)
    before = torch.get_rng_state()
    with seeding.seeded(3):
        drawn = torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        seeding.seed_everything(3)
        assert torch.equal(torch.rand(2), drawn)
