"""Splits by patient.

All episodes of a patient fall into one split, so that test patients are never learnt from. A patient's split
is determined by (seed, patient) alone, through a hash: adding or reordering patients does not change any
other patient's split.
"""

from collections.abc import Mapping, Sequence

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.problems.problem import EpisodeProblem
from rehearsal_torch.seeding import split_position

SHARES: Mapping[str, float] = {"train": 0.7, "validation": 0.1, "test": 0.2}


def split(
    patients: Sequence[str], fractions: Mapping[str, float], seed: int, called: str = "patient"
) -> dict[str, list[int]]:
    """Assigns episodes to splits. Returns split to the positions of its episodes, ascending.

    Args:
        patients: The patient of each episode.
        fractions: Split to its share of the patients; the shares sum to 1.
        called: What a unit is called in messages.

    Raises:
        ValueError: if a share is negative, the shares do not sum to 1, or a split with a positive share is
            empty.
    """
    if any(share < 0 for share in fractions.values()) or abs(sum(fractions.values()) - 1) > 1e-9:
        raise ValueError(f"expected shares of at least 0 that sum to 1; got {dict(fractions)}")
    found: dict[str, list[int]] = {name: [] for name in fractions}
    for position, patient in enumerate(patients):
        found[split_of(patient, fractions, seed)].append(position)
    empty = [name for name, share in fractions.items() if share > 0 and not found[name]]
    if empty:
        raise ValueError(
            f"no {called} fell into split {empty} of {len(set(patients))} {called}s: use more {called}s, "
            "larger shares or another seed"
        )
    return found


def split_of(patient: str, fractions: Mapping[str, float], seed: int) -> str:
    """The split of one patient.

    Args:
        fractions: Split to its share; the shares sum to 1.
    """
    draw, total = split_position(seed, patient), 0.0
    for name, share in fractions.items():
        total += share
        if draw < total:
            return name
    return next(reversed([name for name, share in fractions.items() if share > 0]))


class SplitEpisodes(EpisodeProblem):
    """Episodes that are split by unit, those of one split being the cases.

    Args:
        episodes: All of them.
        units: The unit of each.
        seed: Seed of the split.
        cases: The split that the cases come from.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        called: What a unit is called in messages.

    Attributes:
        chosen: The episodes to decide on; there may be none.

    Raises:
        ValueError: if a split is empty.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        units: Sequence[str],
        seed: int,
        cases: str,
        horizon: int | None,
        called: str = "patient",
    ) -> None:
        self.all = episodes
        self.splits = split(units, SHARES, seed, called)
        chosen = self.episodes(cases)
        if horizon is not None:
            chosen = [episode.first(horizon) for episode in chosen if episode.horizon >= horizon]
        self.chosen = chosen

    def episodes(self, split: str = "train") -> list[Episode]:
        """The episodes of a split."""
        return [self.all[place] for place in self.splits[split]]

    def count(self) -> int:
        """The number of episodes to decide on."""
        return len(self.chosen)


def check_split(name: str) -> str:
    """The name of a split.

    Raises:
        ValueError: if there is none.
    """
    if name not in SHARES:
        raise ValueError(f"expected split train, validation or test; got {name!r}")
    return name
