"""The derived part of a fitted state: what files leave out, and loading computes again.

A part says which of its buffers it can compute from the others, and of what sizes they are
(`Part.derivable`), and computes them (`Part.derive`) by the function that its fit uses: the Cholesky factor
of a kernel matrix from the rows and the ridge, for example. The factor has the square of the number of rows
or features, its sources a few columns of them.

Whether a buffer comes out equal to the last bit is tried before a file leaves it out (`checkpoint.save`): one
that was fitted on another device, or edited, is written. The sizes are added up before anything is computed.
Buffers that a file does have are taken as they are.
"""

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from rehearsal_torch.data.part import Part


class DerivationError(ValueError):
    """Derived buffers that cannot be computed; the message names the buffer, and says why."""


def derived_names(module: nn.Module) -> list[str]:
    """The buffers of a fitted module that its parts can compute from the others, as dotted names."""
    return [f"{path}{name}" for path, part in _fitted_parts(module) for name in part.derivable()]


def source_names(module: nn.Module) -> list[str]:
    """The buffers from which derived ones alone are computed, as dotted names; some may be empty."""
    return [f"{path}{name}" for path, part in _parts(module) for name in part._sources]


def with_absent(module: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state with empty tensors for the derived buffers and sources that it does not have."""
    names = [f"{path}{name}" for path, part in _parts(module) for name in (*part._derived, *part._sources)]
    return {name: torch.empty(0, dtype=torch.float64) for name in names if name not in state} | dict(state)


def without_derived(module: nn.Module, state: Mapping[str, Tensor], largest: int) -> dict[str, Tensor]:
    """What to write of a state: without the derived tensors that come out equal to the last bit, as is tried
    here by a module with this state, and without sources that are empty.
    """
    out = set(derived_names(module))
    empty = {name for name in source_names(module) if state[name].shape == (0,)}
    while out:
        written = {name: tensor for name, tensor in state.items() if name not in out | empty}
        module.load_state_dict(with_absent(module, written))
        try:
            compute_derived(module, largest)
        except DerivationError:
            break
        computed = module.state_dict()
        different = {name for name in out if not torch.equal(computed[name].cpu(), state[name].cpu())}
        if not different:
            return written
        out -= different
    module.load_state_dict(dict(state))
    return {name: tensor for name, tensor in state.items() if name not in empty}


def derived_bytes(module: nn.Module) -> int:
    """The memory of the derived buffers that are empty, once they have been computed."""
    return sum(
        math.prod(size) * 8
        for path, part in _fitted_parts(module)
        for name, size in part.derivable().items()
        if not part.get_buffer(name).numel()
    )


def compute_derived(
    module: nn.Module,
    largest: int,
    written: Mapping[str, Tensor] | None = None,
    known: nn.Module | None = None,
) -> None:
    """Computes the derived buffers of a loaded module that are empty, of at most `largest` bytes in total.
    They are taken over from a `known` module, not copied, if it has all that was `written`, to the last bit.

    Raises:
        DerivationError: if they would have more, or one cannot be computed: its sources are damaged.
    """
    total = derived_bytes(module)
    if total > largest:
        raise DerivationError(
            f"expected tensors that are left out of at most {largest / 2**30:.1f} GiB in total; got "
            f"{total / 2**30:.1f}"
        )
    state = {} if known is None else known.state_dict()
    same = known is not None and all(
        name in state and state[name].dtype == value.dtype and torch.equal(state[name].cpu(), value)
        for name, value in (written or {}).items()
    )
    for path, part in _fitted_parts(module):
        for name, size in part.derivable().items():
            if part.get_buffer(name).numel():
                continue
            try:
                with torch.no_grad():
                    value = state[path + name].cpu() if same else part.derive(name)
            except (RuntimeError, ValueError, LookupError) as error:
                raise DerivationError(
                    f"{path}{name} cannot be computed from the other tensors: {' '.join(str(error).split())}"
                ) from error
            if tuple(value.shape) != tuple(size):
                raise DerivationError(
                    f"{path}{name}: expected the size {tuple(size)}; got {tuple(value.shape)} from the other "
                    "tensors"
                )
            inner, _, own = name.rpartition(".")
            # Laid out as tensors that are read, so that all later sums have the same bits.
            setattr(part.get_submodule(inner), own, value.contiguous())


def _parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    """Every part with its path and a dot, outer parts before those inside them."""
    for path, part in module.named_modules():
        if isinstance(part, Part):
            yield f"{path}." if path else "", part


def _fitted_parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    return ((path, part) for path, part in _parts(module) if part.fitted)
