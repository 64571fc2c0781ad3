"""Floating-point operations of a call's matrix arithmetic, as torch runs it, by precision.

    product          (m, k) by (k, n)                  2 m k n;  with a vector n = 1
    Cholesky         of size n                         n^3 / 3;  an inverse from it 2 n^3 / 3
    triangular       n x n, m right-hand sides         n^2 m;  by a Cholesky factor twice that
    general          solve, n x n, m right-hand sides  2 n^3 / 3 + 2 n^2 m;  an inverse 2 n^3
    eigenvectors     of a symmetric matrix, n x n      9 n^3
    singular values  m x n, m >= n, with vectors       14 m n^2 + 8 n^3;  a pseudo-inverse likewise
    QR               m x n, m >= n, with Q             4 m n^2 - 4 n^3 / 3

A batch counts as often as it holds matrices. Left out are elementwise functions (exponentials of kernels
among them), sums, copies, and what NumPy and SciPy compute.

Source: Golub and Van Loan (2013), Ch. 1, 3, 4, 5 and 8 (leading terms).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

# Operations by the given tensors and the first one returned.
Rule = Callable[[Sequence[Tensor], Tensor], float]


def _product(given: Sequence[Tensor], made: Tensor) -> float:
    # What is added, if anything, comes before the two factors.
    return 2.0 * made.numel() * given[-2].shape[-1]


def _cube(factor: float) -> Rule:
    return lambda given, made: factor * given[0].numel() * given[0].shape[-1]  # noqa: ARG005


def _tall(high: float, low: float) -> Rule:
    def rule(given: Sequence[Tensor], made: Tensor) -> float:  # noqa: ARG001
        shape = given[0].shape
        short, long = sorted(shape[-2:])
        return shape[:-2].numel() * (high * long * short**2 + low * short**3)

    return rule


ATEN = torch.ops.aten
RULES: dict[Any, Rule] = {
    **dict.fromkeys((ATEN.mm, ATEN.bmm, ATEN.addmm, ATEN.baddbmm), _product),
    **dict.fromkeys((ATEN.mv, ATEN.addmv, ATEN.dot), _product),
    ATEN.linalg_cholesky_ex: _cube(1 / 3),
    ATEN.cholesky_inverse: _cube(2 / 3),
    ATEN.linalg_inv_ex: _cube(2.0),
    ATEN._linalg_eigh: _cube(9.0),
    ATEN.linalg_solve_triangular: lambda given, made: float(made.numel() * given[0].shape[-1]),
    ATEN.cholesky_solve: lambda given, made: 2.0 * made.numel() * given[1].shape[-1],
    ATEN._linalg_solve_ex: lambda given, made: (
        _cube(2 / 3)(given, made) + 2.0 * made.numel() * given[0].shape[-1]
    ),
    **dict.fromkeys((ATEN._linalg_svd, ATEN.linalg_pinv), _tall(14.0, 8.0)),
    ATEN.linalg_qr: _tall(4.0, -4 / 3),
}


class _Counting(TorchDispatchMode):
    """Adds up the operations of what is called within it."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Counter[torch.dtype]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named, rule = kwargs or {}, RULES.get(func.overloadpacket)
        if rule is None:
            # Without gradients a composed operation may arrive whole.
            with self:
                made = func.decompose(*args, **named)
            if made is not NotImplemented:
                return made
        made = func(*args, **named)
        if rule is not None:
            first = made[0] if isinstance(made, tuple | list) else made
            given = [each for each in args if isinstance(each, Tensor)]
            if first.is_floating_point():
                self.found[first.dtype] += rule(given, first)
        return made


def operations(call: Callable[[], object]) -> dict[str, float]:
    """The operations of a call, by precision ("float64", "float32"); empty if it has no matrix arithmetic.

    Args:
        call: What is called, once.
    """
    with _Counting() as counting:
        call()
    return {str(dtype).removeprefix("torch."): count for dtype, count in counting.found.items()}
