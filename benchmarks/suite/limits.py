"""What the processor gives at most: rates of a matrix product and of a Cholesky factorisation, in GFLOP/s.

    product        C = A B of size n           2 n^3 operations
    factorisation  A = L L' of size n          n^3 / 3 operations

In float64, products in float32 too, by torch on the threads that the suite uses; the best of several calls.
"""

import time
from collections.abc import Callable

import torch


def product_rate(size: int = 1000, repeat: int = 5, dtype: torch.dtype = torch.float64) -> float:
    """GFLOP/s of a product of two square matrices."""
    left, right = torch.randn(2, size, size, dtype=dtype, generator=torch.Generator().manual_seed(0))
    return 2 * size**3 / best(lambda: left @ right, repeat) / 1e9


def cholesky_rate(size: int = 1000, repeat: int = 5) -> float:
    """GFLOP/s of a Cholesky factorisation."""
    rows = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    positive = rows @ rows.mT / size + torch.eye(size, dtype=torch.float64)
    return size**3 / 3 / best(lambda: torch.linalg.cholesky(positive), repeat) / 1e9


def best(call: Callable[[], object], repeat: int) -> float:
    """The smallest process seconds of some calls."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)
