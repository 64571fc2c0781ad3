"""Parts: modules that are fitted to examples, by a solver or by gradient descent, and checks of their state.

A part is *solved* if it has its own solver (closed form, L-BFGS on the evidence, expectation maximisation)
and *trained* if it is fitted by stochastic gradient descent on a loss; it may offer both. All fitted values
are part of the module's state, so that saving and loading it restores the same part.

A state can be damaged: non-finite numbers, or buffers of inconsistent sizes. A part declares the sizes of its
buffers (`sizes`) and any further invariants (`faults`); `state_faults` checks all parts of a module, and
checkpoints with faults are neither written nor read.

Some fitted values are functions of others: a Cholesky factor, of the rows and the ridge. A part registers
them as *derived*, and computes each by `derive`. Files leave them out (`surrogates.state_file`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

Examples = tuple[Tensor, ...]  # What a part is fitted to: tensors (n, ...) with the same n.
# Buffer to the size of each dimension: a number, or a symbol that denotes the same size throughout the part.
Sizes = Mapping[str, tuple[int | str, ...]]


class NotFittedError(ValueError):
    """A part or surrogate was used before it has been fitted or loaded."""


class Part(nn.Module):
    """A module with buffers whose sizes depend on the data; it may be `needed`, fitted or loaded, for use."""

    needed: bool = True
    _fitted: tuple[str, ...] = ()
    _unbounded: tuple[str, ...] = ()
    _derived: tuple[str, ...] = ()
    _sources: tuple[str, ...] = ()
    _sizes: Sizes = {}  # noqa: RUF012

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Tensor:
            """A buffer."""

    def register_fitted(
        self,
        *names: str,
        finite: bool = True,
        derived: bool = False,
        source: bool = False,
        **sizes: tuple[int | str, ...],
    ) -> None:
        """Declares buffers that are empty until the part is fitted or loaded, by name or with their sizes.

        Args:
            finite: Whether their numbers must be finite.
            derived: Whether they can be computed from others (`derive`), so that files may leave them out.
            source: Whether a state may lack them, since it has what is derived from them.
        """
        names, self._sizes = (*names, *sizes), {**self._sizes, **sizes}
        self._derived = (*self._derived, *names) if derived else self._derived
        self._sources = (*self._sources, *names) if source else self._sources
        for name in names:
            self.register_buffer(name, torch.empty(0, dtype=torch.float64))
        self._fitted = (*self._fitted, *names)
        self._unbounded = self._unbounded if finite else (*self._unbounded, *names)

    @property
    def fitted(self) -> bool:
        """Whether the part has been fitted or loaded; true for a part without fitted buffers."""
        return not self._fitted or any(self.get_buffer(name).shape != (0,) for name in self._fitted)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The derived buffers that the state allows, also of inner parts, in order, to their sizes."""
        return {}

    def derive(self, name: str) -> Tensor:
        """A derived buffer as in the fit; ValueError or RuntimeError if the state is that of no fit."""
        raise LookupError(f"{type(self).__name__} derives no {name}")

    def sizes(self) -> Sizes:
        """The sizes of the fitted buffers that the state has; a symbol is the same size everywhere."""
        absent = [name for name in self._sources if self.get_buffer(name).shape == (0,)]
        return {name: size for name, size in self._sizes.items() if name not in absent}

    def faults(self) -> list[str]:
        """Faults of the fitted part's state other than non-finite numbers; by default, inconsistent sizes."""
        faults, lengths = [], dict[str, int]()
        for name, expected in self.sizes().items():
            shape = tuple(self.get_buffer(name).shape)
            resolved = tuple(lengths.get(size, size) if isinstance(size, str) else size for size in expected)
            consistent = len(shape) == len(resolved) and all(
                isinstance(size, str) or size == length for size, length in zip(resolved, shape, strict=True)
            )
            if consistent:
                lengths |= {size: n for size, n in zip(expected, shape, strict=True) if isinstance(size, str)}
            else:
                faults.append(f"{name}: expected the size ({', '.join(map(str, resolved))}); got {shape}")
        kinds = {name: self.get_buffer(name).dtype for name in self._fitted}
        expected_kind = "expected floating-point numbers, float32 or float64"
        invalid = {name: kind for name, kind in kinds.items() if kind not in (torch.float32, torch.float64)}
        return faults + [f"{name}: {expected_kind}; got {kind}" for name, kind in invalid.items()]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        for name in self._fitted:
            value = state_dict.get(prefix + name)
            if value is not None:
                setattr(self, name, torch.empty_like(value, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *arguments)


class Solved(Part, ABC):
    """A part with its own solver."""

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
        """Brings the part into the form in which it is used and saved, after training."""

    @property
    def uses_held_out(self) -> bool:
        """Whether held-out rows stop the training and select the weights; not if the loss is an evidence."""
        return True


def outer_parts(module: nn.Module, path: str = "") -> Iterator[tuple[str, Part]]:
    """The parts of a module that are not inside another part, each with its dotted name."""
    for name, child in module.named_children():
        if isinstance(child, Part):
            yield path + name, child
        else:
            yield from outer_parts(child, f"{path}{name}.")


def unfitted_parts(module: nn.Module) -> list[str]:
    """The names of the outer parts that must be fitted or loaded before use, and have not been."""
    return [name for name, part in outer_parts(module) if part.needed and not part.fitted]


def forget(module: nn.Module) -> None:
    """Empties the fitted buffers of a module's parts, in place: they are as before the fit."""
    for part in module.modules():
        if isinstance(part, Part):
            for name in part._fitted:
                setattr(part, name, part.get_buffer(name).new_empty(0))


def non_finite(module: nn.Module) -> list[str]:
    """The tensors of a module's state with numbers that are not finite, where they must be."""
    unbounded = {
        f"{path}.{name}"
        for path, part in module.named_modules()
        if isinstance(part, Part)
        for name in part._unbounded
    }
    faults = []
    for name, value in module.state_dict().items():
        count = int((~value.isfinite()).sum())
        if count and name not in unbounded:
            faults.append(f"{name}: {count} of {value.numel()} numbers are not finite")
    return faults


def shared_faults(module: nn.Module, state: Mapping[str, Tensor]) -> list[str]:
    """Tensors with several names and differing numbers in a state: loading would take the last."""
    faults, names = [], dict[int, str]()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if name not in state:
            continue
        first_name = names.setdefault(id(tensor), name)
        first, second = state[first_name], state[name]
        equal = first.shape == second.shape and first.dtype == second.dtype
        if not (equal and bool(((first == second) | (first.isnan() & second.isnan())).all())):
            faults.append(f"{name} differs from {first_name}: expected the same numbers, which are shared")
    return faults


def state_faults(module: nn.Module) -> list[str]:
    """All faults of a fitted module's state, each with the dotted name of the tensor or part."""
    faults = non_finite(module)
    for path, part in module.named_modules():
        if isinstance(part, Part) and part.fitted:
            faults += [f"{path}.{fault}" if path else fault for fault in part.faults()]
    return faults


def in_words(name: str) -> str:
    """A part of a surrogate as sentences have it: ``models.1.mechanism`` is model 2 of the ensemble."""
    steps = name.split(".")
    if steps[0] == "models" and len(steps) > 1 and steps[1].isdecimal():
        return f"model {int(steps[1]) + 1} of the ensemble"
    names = [step for step in steps if step not in ("", "part", "mechanism", "blind")]
    return f"the part {'.'.join(names)} of the model" if names else "the model"
