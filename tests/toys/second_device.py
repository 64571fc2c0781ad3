"""A second device on a machine that has none: tensors that lie in memory but count as being elsewhere.

What passes here passes on CUDA as far as placement goes: what CUDA refuses is refused. Tensors of both
devices do not meet, except that numbers of the CPU (no dimensions) may enter elementwise operations, and
indices of the CPU may pick from a tensor there; a generator of the CPU draws nothing there; an array is made
only after `.cpu()`. The arithmetic is that of the CPU, to the last bit; but eigenvectors, whose signs are
nobody's to choose, have others, and a matrix with undefined entries is no error of a Cholesky decomposition
(pytorch#64818).

The device has the name "meta", since PyTorch knows no other that needs neither hardware nor a compiled
extension; a tensor of it that is no `Elsewhere` has no values.

What is drawn there without a generator comes from a stream of its own, other than the CPU's, as on CUDA.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
aten = torch.ops.aten

COPIES = (aten._to_copy.default, aten.copy_.default, aten.copy.default, aten.lift_fresh.default)
PICKS = (aten.index.Tensor, aten._unsafe_index.Tensor)
PLACES = (aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default)
# Operations that take numbers of the CPU for what they are: tensors of another device.
STRICT = (aten.cat.default, aten.stack.default, aten.index_select.default, aten.gather.default)
READS = {
    torch.Tensor.item: torch.Tensor.item,
    torch.Tensor.tolist: torch.Tensor.tolist,
    torch.Tensor.__float__: float,
    torch.Tensor.__int__: int,
    torch.Tensor.__bool__: bool,
    torch.Tensor.__index__: int,
}
# The state of its random numbers; a GPU has one of its own as well.
_stream = torch.Generator().manual_seed(7919)
INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


class Elsewhere(Tensor):
    """A tensor of the second device.

    Attributes:
        inner: Its values, on the CPU.
    """

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=DEVICE,
        )
        made.inner = inner
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Elsewhere({self.inner!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """In a file, its values, as a file from a GPU has for who reads it on the CPU."""
        return self.detach().inner.__reduce_ex__(protocol)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in READS:
            return READS[func](args[0].detach().inner)
        if func is torch.Tensor.__format__:
            return format(args[0].detach().inner, *args[1:])
        if func is torch.Tensor.numpy or func is torch.Tensor.__array__:
            raise TypeError("can't convert a tensor of the second device to numpy: use Tensor.cpu() first")
        if func == torch.Tensor.data.__set__ and isinstance(args[1], Elsewhere):
            args[0].inner = args[1].inner
        if func in INDEXING:
            args = (args[0], _index(args[1]), *args[2:])
        if func is torch.Tensor.new_tensor:
            return _made(*args[1:], **{"dtype": args[0].dtype, "device": DEVICE, **(kwargs or {})})
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _placed(func, args, kwargs or {})


class _Made(TorchFunctionMode):
    """Tensors made there of numbers, which are no operations to PyTorch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            return _made(*args, **kwargs)
        return func(*args, **kwargs)


class _Placement(TorchDispatchMode):
    """Operations that get no tensor of the second device may still make one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _placed(func, args, kwargs or {})


@contextmanager
def second_device() -> Iterator[torch.device]:
    """Within it, the second device can be named in `.to(...)` and ``device=...``."""
    with _Made(), _Placement():
        yield DEVICE


def _made(data: Any, *, device: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """`torch.tensor` for any device."""
    with torch._C.DisableTorchFunction():
        made = torch.as_tensor(data, **options).to(device)
    return made.requires_grad_(requires_grad) if requires_grad else made


def _index(index: Any) -> Any:
    """Lists as index tensors of the CPU, as PyTorch itself makes them of lists for CUDA."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if isinstance(index, (list, range)):
        if any(isinstance(each, Tensor) for each in index):
            return torch.stack([torch.as_tensor(each) for each in index])
        return torch.tensor(list(index), dtype=None if len(index) else torch.long)
    return index


def _refuse(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Raises where tensors of both devices meet that do not on CUDA."""
    every = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    there = [each for each in every if isinstance(each, Elsewhere)]
    if not there or func in COPIES:
        return
    if func in (*PICKS, *PLACES) and isinstance(args[0], Elsewhere):
        every = [each for each in args[2:3] if isinstance(each, Tensor)]
    here = [each for each in every if not isinstance(each, Elsewhere)]
    written = func._schema.is_mutable and isinstance(args[0], Tensor) and not isinstance(args[0], Elsewhere)
    if written or any(each.dim() or func in STRICT for each in here):
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found {DEVICE} and cpu ({func})"
        )


def _drawn_there(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Random numbers of the second device's own stream; that of the CPU stays where it is."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(_stream.get_state())
        found = func(*args, **kwargs)
        _stream.set_state(torch.get_rng_state())
    return found


def _placed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation, computed on the CPU; its results are on the device where they would be."""
    _refuse(func, args, kwargs)
    named = None if kwargs.get("device") is None else torch.device(kwargs["device"])
    there = any(isinstance(each, Elsewhere) for each in tree_leaves((args, kwargs)))
    if func is aten.copy_.default:
        there = isinstance(args[0], Elsewhere)
    goes = there if named is None else named == DEVICE
    stream = kwargs.get("generator")
    if goes and isinstance(stream, torch.Generator):
        raise RuntimeError(f"Expected a {DEVICE!r} device type for generator but found {stream.device!r}")
    inner_args, inner = tree_map(_inner, args), tree_map(_inner, kwargs)
    if named == DEVICE:
        inner["device"] = torch.device("cpu")
    drawn = goes and torch.Tag.nondeterministic_seeded in func.tags and stream is None
    found = _drawn_there(func, inner_args, inner) if drawn else func(*inner_args, **inner)
    if not goes:
        return found
    if func is aten._linalg_eigh.default and found[1].numel():
        found = (found[0], found[1] * _signs(found[1]))
    if func is aten.linalg_cholesky_ex.default:
        undefined = inner_args[0].isnan().any((-2, -1))
        nowhere = torch.where(undefined[..., None, None], torch.nan, found[0])
        found = (nowhere, torch.where(undefined, torch.zeros_like(found[1]), found[1]))
    wrap: Callable[[Any], Any] = lambda each: (  # noqa: E731
        Elsewhere(each) if isinstance(each, Tensor) and not isinstance(each, Elsewhere) else each
    )
    wrapped = tree_map(wrap, found)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if there else wrapped


def _signs(vectors: Tensor) -> Tensor:
    """Minus one for every other column."""
    return 1.0 - 2.0 * (torch.arange(vectors.shape[-1]) % 2 == 0).to(vectors)


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, Elsewhere) else value
