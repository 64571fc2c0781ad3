"""Process time of a step of the fitted transition, with cached spectral norms and with norms computed at
every call.

The 200-unit networks of the sepsis model, one state and a batch of 256, after `finish`; the same weights and
the same outputs, bit for bit (checked). Printed are microseconds of process time per call, the best of the
rounds, and their ratio; the two variants alternate.

Run: python benchmarks/networks.py [calls] [rounds]
"""

import sys
import time
from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.lipschitz_network import LipschitzNetwork


def fitted() -> LipschitzNetwork:
    """A model of the sepsis model's shape, with weights divided by Lipschitz constants."""
    torch.manual_seed(0)
    networks = LipschitzNetwork(smooth=12, free=3, outputs=9, hidden=200, constants=(1.0, 0.1))
    with torch.no_grad():
        networks.inner.mul_(7)
        networks.outer.mul_(9)
    networks.finish()
    return networks.eval()


def seconds(call: Callable[[], Tensor], calls: int) -> float:
    """Process time of one call."""
    began = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - began) / calls


def main(calls: int = 500, rounds: int = 9) -> None:
    """Measures and prints."""
    torch.set_num_threads(1)
    kept = fitted()
    recomputed = deepcopy(kept).train()
    recomputed._kept.clear()
    print("rows   cached, us  computed at every call, us  ratio")
    for rows in (1, 256):
        smooth, free = torch.randn(rows, 12), torch.randn(rows, 3)
        with torch.no_grad():
            if not torch.equal(kept(smooth, free), recomputed(smooth, free)):
                raise SystemExit("the outputs differ")
            turns = [
                (
                    seconds(lambda s=smooth, a=free: kept(s, a), calls),
                    seconds(lambda s=smooth, a=free: recomputed(s, a), calls),
                )
                for _ in range(rounds)
            ]
        quick, slow = (min(column) * 1e6 for column in zip(*turns, strict=True))
        print(f"{rows:4d}   {quick:8.0f}   {slow:26.0f}   {slow / quick:5.2f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
