"""Checkpoint contents of a fitted state: which tensors are stored, which are recomputed.

A part lists the buffers that it can compute from its others, with their sizes (`Part.derivable`), and
computes them (`Part.derive`) by the function of its fit: the Cholesky factor of a kernel matrix from the rows
and the ridge, for example, which has the square of their number of cells.

A buffer is left out of a file only if it is recomputed equal to the last bit (`checkpoint.save`): one that
was fitted on another device, or edited, is written. Loading bounds the total size before it computes anything
and leaves stored buffers unchanged.
"""

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from rehearsal_torch.data.trainable_part import Part


class DerivationError(ValueError):
    """A derived buffer cannot be computed; the message names it and the reason."""


def derived_names(module: nn.Module) -> list[str]:
    """Dotted names of the buffers that a fitted module's parts can compute from the others."""
    return [f"{path}{name}" for path, part in _fitted_parts(module) for name in part.derivable()]


def source_names(module: nn.Module) -> list[str]:
    """Dotted names of the buffers that serve to compute derived ones alone; some may be empty."""
    return [f"{path}{name}" for path, part in _parts(module) for name in part._sources]


def with_absent(module: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state with empty tensors for missing derived buffers and sources."""
    names = [f"{path}{name}" for path, part in _parts(module) for name in (*part._derived, *part._sources)]
    return {name: torch.empty(0, dtype=torch.float64) for name in names if name not in state} | dict(state)


def without_derived(module: nn.Module, state: Mapping[str, Tensor], largest: int) -> dict[str, Tensor]:
    """The tensors to write: a state without derived ones that are recomputed equal, and empty sources."""
    omitted = set(derived_names(module))
    empty = {name for name in source_names(module) if state[name].shape == (0,)}
    while omitted:
        written = {name: tensor for name, tensor in state.items() if name not in omitted | empty}
        module.load_state_dict(with_absent(module, written))
        try:
            compute_derived(module, largest)
        except DerivationError:
            break
        computed = module.state_dict()
        different = {name for name in omitted if not torch.equal(computed[name].cpu(), state[name].cpu())}
        if not different:
            return written
        omitted -= different
    module.load_state_dict(dict(state))
    return {name: tensor for name, tensor in state.items() if name not in empty}


def derived_bytes(module: nn.Module) -> int:
    """The bytes that the empty derived buffers will have."""
    return sum(math.prod(size) * 8 for *_, size in _empty_derived(module))


def compute_derived(
    module: nn.Module,
    largest: int,
    written: Mapping[str, Tensor] | None = None,
    known: nn.Module | None = None,
) -> None:
    """Computes empty derived buffers, or shares those of a `known` module with all `written` tensors, bit for
    bit. DerivationError if they need more than `largest` bytes in total or a source is damaged.
    """
    total = derived_bytes(module)
    if total > largest:
        expected = f"expected tensors that are left out of at most {largest / 2**30:.1f} GiB in total"
        raise DerivationError(f"{expected}; got {total / 2**30:.1f}")
    state = {} if known is None else known.state_dict()
    identical = known is not None and all(
        name in state and state[name].dtype == value.dtype and torch.equal(state[name].cpu(), value)
        for name, value in (written or {}).items()
    )
    for path, part, name, size in _empty_derived(module):
        try:
            with torch.no_grad():
                value = state[path + name].cpu() if identical else part.derive(name)
        except (RuntimeError, ValueError, LookupError) as error:
            reason = f"{path}{name} cannot be computed from the other tensors"
            raise DerivationError(f"{reason}: {' '.join(str(error).split())}") from error
        if tuple(value.shape) != tuple(size):
            expected = f"{path}{name}: expected the size {tuple(size)}"
            raise DerivationError(f"{expected}; got {tuple(value.shape)} from the other tensors")
        submodule_path, _, buffer = name.rpartition(".")
        # Laid out as tensors that are read, so that all later sums have the same bits.
        setattr(part.get_submodule(submodule_path), buffer, value.contiguous())


def _parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    """Every part with its path and a dot, outer parts first."""
    for path, part in module.named_modules():
        if isinstance(part, Part):
            yield f"{path}." if path else "", part


def _empty_derived(module: nn.Module) -> Iterator[tuple[str, Part, str, tuple[int, ...]]]:
    """Path, part, name and size of each empty derived buffer, tested as it is reached."""
    for path, part in _fitted_parts(module):
        for name, size in part.derivable().items():
            if not part.get_buffer(name).numel():
                yield path, part, name, size


def _fitted_parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    return ((path, part) for path, part in _parts(module) if part.fitted)
