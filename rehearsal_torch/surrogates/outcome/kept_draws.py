"""Posterior draws that are kept until what they were drawn from changes.

The draws of a fitted model are the same for every question, since their seed is part of the model: a decision
for one case would otherwise spend much of its time on drawing them. They are kept up to a number of cells,
those used last; a model that is fitted, loaded or conditioned anew has other tensors, or changed ones, and so
its draws are made anew. Copies and saved models start without any.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

Drawn = TypeVar("Drawn")


class KeptDraws(Generic[Drawn]):
    """A bounded store of draws.

    Args:
        most: Number of cells that are kept at most, over all draws.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, tuple[list[tuple[Tensor, int]], int, Drawn]] = OrderedDict()

    def get(self, key: Hashable, source: Sequence[Tensor], cells: int, make: Callable[[], Drawn]) -> Drawn:
        """The draws of a question, kept or made.

        Args:
            source: The tensors that the draws depend on.
            make: Makes them.
        """
        if torch.is_inference_mode_enabled() or any(each.is_inference() for each in source):
            # Tensors of inference mode do not tell whether they have changed, and have no gradient outside.
            return make()
        found = self._kept.pop(key, None)
        if found is None or not _unchanged(found[0], source):
            found = [(each, each._version) for each in source], cells, make()
        if cells <= self.most:
            self._kept[key] = found
        while sum(size for _, size, _ in self._kept.values()) > self.most:
            self._kept.popitem(last=False)
        return found[2]

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type["KeptDraws[Drawn]"], tuple[int]]:
        return type(self), (self.most,)


def _unchanged(known: Sequence[tuple[Tensor, int]], source: Sequence[Tensor]) -> bool:
    return len(known) == len(source) and all(
        each is own and own._version == version for (each, version), own in zip(known, source, strict=True)
    )
