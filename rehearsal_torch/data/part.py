"""Parts: modules that are fitted to examples, and the two ways to do so.

A part is *solved* where a solution of its own exists (closed form, L-BFGS on an evidence, expectation
maximisation) and *trained* where stochastic gradients on a loss are the way. A part may offer both.
Everything that fitting learns stands in the module's state, so that saving and loading it gives the same part
back.

A state can be damaged: numbers that are not finite, or buffers whose sizes do not belong together. A part
declares the sizes of its buffers (`sizes`) and whatever else must hold between them (`faults`);
`state_faults` asks all parts of a module, and checkpoints are neither written nor read while there are any.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

# Buffer to the size of each dimension: a number, or a letter that stands for one size throughout the part.
Sizes = Mapping[str, tuple[int | str, ...]]


class NotFittedError(ValueError):
    """A question to something that has not been fitted or loaded yet."""


class Part(nn.Module):
    """A module some of whose buffers take their size from data.

    Attributes:
        needed: Whether no answer can be given before it is fitted or loaded.
    """

    needed: bool = True
    _fitted: tuple[str, ...] = ()
    _unbounded: tuple[str, ...] = ()

    def register_fitted(self, *names: str, finite: bool = True) -> None:
        """Declares buffers that are empty until the part is fitted or loaded.

        Args:
            *names: The buffers.
            finite: Whether their numbers must be finite.
        """
        for name in names:
            self.register_buffer(name, torch.empty(0, dtype=torch.float64))
        self._fitted = (*self._fitted, *names)
        self._unbounded = self._unbounded if finite else (*self._unbounded, *names)

    @property
    def fitted(self) -> bool:
        """Whether the part has been fitted or loaded; true of a part without buffers that fitting fills."""
        return not self._fitted or any(self.get_buffer(name).shape != (0,) for name in self._fitted)

    def sizes(self) -> Sizes:
        """The sizes that the buffers of the fitted part have; a letter stands for the same size wherever it
        stands. None are declared by default.
        """
        return {}

    def faults(self) -> list[str]:
        """What is wrong with the fitted part's state besides numbers that are not finite; by default, sizes
        that do not belong together.
        """
        found, known = [], dict[str, int]()
        for name, expected in self.sizes().items():
            got = tuple(self.get_buffer(name).shape)
            resolved = tuple(known.get(size, size) if isinstance(size, str) else size for size in expected)
            if len(got) != len(resolved) or any(
                isinstance(size, int) and size != own for size, own in zip(resolved, got, strict=True)
            ):
                found.append(f"{name}: expected the size ({', '.join(map(str, resolved))}); got {got}")
                continue
            known |= {size: own for size, own in zip(expected, got, strict=True) if isinstance(size, str)}
        kinds = {name: self.get_buffer(name).dtype for name in self._fitted}
        return found + [
            f"{name}: expected floating-point numbers, float32 or float64; got {kind}"
            for name, kind in kinds.items()
            if kind not in (torch.float32, torch.float64)
        ]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in self._fitted:
            value = state_dict.get(prefix + name)
            if value is not None:
                setattr(self, name, torch.empty_like(value, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class Solved(Part, ABC):
    """A part with a solution of its own."""

    @abstractmethod
    def solve(self, *examples: Tensor) -> None:
        """Fits the part to examples, each (n, ...)."""


class Trained(Part, ABC):
    """A part that is fitted by stochastic gradients."""

    @abstractmethod
    def loss(self, *examples: Tensor) -> Tensor:
        """Mean loss over the examples, each (n, ...) -> ()."""

    @abstractmethod
    def finish(self) -> None:
        """Puts the part into the form in which it is used and saved, once training is over."""

    @property
    def judged_by_held_out(self) -> bool:
        """Whether held-out rows may end the training and choose the weights. Parts whose loss is an evidence
        of all rows replace it.
        """
        return True


def outer_parts(module: nn.Module, path: str = "") -> Iterator[tuple[str, Part]]:
    """The parts of a module that stand in no other part, each with its dotted name."""
    for name, child in module.named_children():
        if isinstance(child, Part):
            yield path + name, child
        else:
            yield from outer_parts(child, f"{path}{name}.")


def unfitted_parts(module: nn.Module) -> list[str]:
    """The names of the outer parts that have not been fitted or loaded, of those that an answer needs."""
    return [name for name, part in outer_parts(module) if part.needed and not part.fitted]


def state_faults(module: nn.Module) -> list[str]:
    """Everything that is wrong with a fitted module's state, each fault with the dotted name of the tensor or
    part; empty where nothing is.
    """
    free = {
        f"{path}.{name}"
        for path, part in module.named_modules()
        if isinstance(part, Part)
        for name in part._unbounded
    }
    found = []
    for name, value in module.state_dict().items():
        bad = int((~value.isfinite()).sum())
        if bad and name not in free:
            found.append(f"{name}: {bad} of {value.numel()} numbers are not finite")
    for path, part in module.named_modules():
        if isinstance(part, Part) and part.fitted:
            found += [f"{path}.{fault}" if path else fault for fault in part.faults()]
    return found
