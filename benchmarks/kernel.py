"""Process time of fitting and deciding with the nested kernel estimator.

The world is the bank's loan: two context variables, one covariate, one action. Measured are

    fit        N rows: fixed widths; leave-one-out over widths; the default, joint metrics chosen by evidence;
               landmarks, random features and conjugate gradients
    decide     1,000 contexts, K = 20 starts, T = 100 steps of projected ascent, after the fit (no
               factorisation)

The reference is Algorithm 1 of Du et al. (2026) in plain NumPy: the same kernel, widths, lambdas, starts and
fixed steps; its offline phase factorises once as well, then contexts and starts are processed one by one.
With fixed steps (`fixed`) both do the same work, and the largest difference between their values of J is
printed; `adaptive` steps, with starts dropped on the way, are the default of the package. `default` is the
complete decision=cme: four joint metrics, their posterior standard deviations, and the support. Memory is the
peak of a separate process, with about 320 MB of imports.

Run: python benchmarks/kernel.py [--contexts 1000] [--reference 20] [--repeat 3] [--threads 1] [--large
100000] [--out DIR] Writes DIR/kernel.csv with one row per measurement and repetition.
"""

import argparse
import csv
import resource
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.problems.rehearsal.loan import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, NestedRidge
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.training.fit import fit

WIDTHS, LAMBDA, STARTS, STEPS, RATE = (1.7, 1.0, 1.0), 1e-3, 20, 100, 0.2
Examples = tuple[torch.Tensor, ...]


def estimators() -> dict[str, Callable[[], AlterationValue]]:
    """The estimators to fit, by name."""
    return {
        "fixed widths": lambda: ProductRidge(fixed=WIDTHS),
        "leave-one-out": lambda: ProductRidge(widths="leave_one_out"),
        "joint metrics": SpectralEnsemble,
        "landmarks 200": lambda: ProductRidge(solver="nystrom", fixed=WIDTHS),
        "landmarks 200, uniform": lambda: ProductRidge(solver="nystrom", fixed=WIDTHS, landmarks="uniform"),
        "fourier 500": lambda: ProductRidge(solver="fourier", fixed=WIDTHS, landmarks="pivoted"),
        "conjugate gradients": lambda: ProductRidge(solver="cg", fixed=WIDTHS, rank=100),
    }


def nested(world: Loan, name: str) -> NestedRidge:
    """An unfitted surrogate with the named estimator."""
    return NestedRidge(world.task, lambda first: estimators()[name]())  # noqa: ARG005


def examples(world: Loan) -> Examples:
    """The examples for the estimator of the loan's single candidate set."""
    surrogate, table = nested(world, "fixed widths"), world.observations()
    found: Examples = ()
    for part, given in surrogate.parts(table):
        found = given
        if not isinstance(part, AlterationValue):
            part.solve(*given)
    return found


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Process seconds of all threads, and the result."""
    began = time.process_time()
    answer = call()
    return time.process_time() - began, answer


class PlainAlgorithm:
    """Algorithm 1 as printed, one context and one start after the other."""

    def __init__(self, given: Examples) -> None:
        x, u, _, a, targets = (each.numpy() for each in given[:5])
        self.x, self.u, self.a = x / WIDTHS[0], u / WIDTHS[1], a
        joint, count = np.concatenate([self.x, self.u, a / WIDTHS[2]], 1), len(x)
        ridge = count * LAMBDA * np.eye(count)
        self.alpha = cho_solve(cho_factor(_gram(joint, joint) + ridge), targets[:, 0])
        self.outer, self.inner = cho_factor(_gram(self.x, self.x) + ridge), _gram(self.u, self.u)

    def decide(self, context: np.ndarray, lower: float, upper: float) -> float:
        """The largest J over the starts."""
        near = _gram(self.x, context[None] / WIDTHS[0])[:, 0]
        omega = self.alpha * near * (self.inner @ cho_solve(self.outer, near))
        best = -np.inf
        for start in np.argsort(-omega)[:STARTS]:
            if omega[start] <= 0:
                break
            action = np.clip(self.a[start], lower, upper)
            for _ in range(STEPS):
                apart = self.a - action
                bumps = omega * np.exp(-0.5 * (apart**2).sum(1) / WIDTHS[2] ** 2)
                action = np.clip(action + RATE * (bumps @ apart) / WIDTHS[2] ** 2, lower, upper)
            best = max(best, float(omega @ np.exp(-0.5 * ((self.a - action) ** 2).sum(1) / WIDTHS[2] ** 2)))
        return best


def _gram(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    square = (rows**2).sum(1)[:, None] + (others**2).sum(1) - 2 * rows @ others.T
    return np.exp(-0.5 * np.maximum(square, 0))


def decide(
    surrogate: NestedRidge, cases: list[RehearsalCase], rate: float | None, caution: float = 0.0
) -> list[float]:
    """The lower confidence bound of J at each context's decision, in batches as in the loop."""
    search, found = ProjectedAscent(STARTS, STEPS, rate=rate), []
    for first in range(0, len(cases), search.batch_size):
        decisions = search.batch_search(
            KernelValue.for_cases(surrogate, cases[first : first + search.batch_size], caution=caution)
        )
        found += [decision.value for decision in decisions]
    return found


def heavy(name: str, rows: int, threads: int) -> tuple[float, float]:
    """Process seconds of a fit, and peak memory in megabytes; to be run in a separate process."""
    torch.set_num_threads(threads)
    given, estimator = examples(Loan(size=SampleSize(rows=rows))), estimators()[name]()
    seconds, _ = timed(lambda: estimator.solve(*given))
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fits(counts: dict[str, tuple[int, ...]], repeat: int, threads: int) -> Iterator[dict[str, object]]:
    """Fits of each estimator, each in a new process, to measure its own memory."""
    for name, sizes in counts.items():
        for rows in sizes:
            for repetition in range(repeat if rows <= 5000 else 1):
                with get_context("spawn").Pool(1) as pool:
                    seconds, megabytes = pool.apply(heavy, (name, rows, threads))
                yield {
                    "what": "fit",
                    "method": name,
                    "rows": rows,
                    "repetition": repetition,
                    "seconds": seconds,
                    "megabytes": megabytes,
                }


def decisions(rows: int, contexts: int, few: int, repeat: int) -> Iterator[dict[str, object]]:
    """1,000 decisions after the fit, and the plain reference in a few contexts, scaled to 1,000."""
    world = Loan(size=SampleSize(rows=rows, contexts=contexts))
    surrogate = fit(nested(world, "fixed widths"), world.observations())
    cases = [world.case(index) for index in range(contexts)]
    default = fit(nested(world, "joint metrics"), world.observations())
    plain = PlainAlgorithm(examples(world))
    context_rows = surrogate.scaler.standardised(world.task.context, world.given(cases[:few])).numpy()
    bounds = (
        surrogate.scaler.standardised(("A2",), torch.tensor([[0.0], [1.0]], dtype=torch.float64))
        .flatten()
        .tolist()
    )
    for repetition in range(repeat):
        line: dict[str, object] = {"what": "decide", "rows": rows, "repetition": repetition}
        seconds, reached = timed(lambda: decide(surrogate, cases, RATE))
        reference, expected = timed(lambda: [plain.decide(context, *bounds) for context in context_rows])
        apart = float(np.abs(np.array(reached)[:few] - np.array(expected)).max())
        yield {
            **line,
            "method": "fixed",
            "seconds": seconds,
            "reference": reference * contexts / few,
            "apart": apart,
        }
        seconds, better = timed(lambda: decide(surrogate, cases, None))
        yield {
            **line,
            "method": "adaptive",
            "seconds": seconds,
            "apart": float((np.array(reached) - np.array(better)).max()),
        }
        seconds, _ = timed(lambda: decide(default, cases, None, caution=2.0))
        yield {**line, "method": "default", "seconds": seconds}


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--reference", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    counts = {
        "fixed widths": (1000, 5000),
        "leave-one-out": (1000,),
        "joint metrics": (1000, 5000),
        "landmarks 200": (1000, 5000, chosen.large),
        "landmarks 200, uniform": (chosen.large,),
        "fourier 500": (1000, 5000, chosen.large),
        "conjugate gradients": (1000, 5000),
    }
    rows = []
    print(f"{'fit':<24} {'rows':>7} {'s':>8} {'MB':>7}")
    for line in fits(counts, chosen.repeat, chosen.threads):
        rows.append(line)
        print(
            f"{line['method']!s:<24} {line['rows']:>7} {line['seconds']:8.3f} {line['megabytes']:7.0f}",
            flush=True,
        )
    print(f"{'decide':<24} {'rows':>7} {'s':>8} {'NumPy':>8} {'ratio':>6} {'difference in J':>16}")
    for size in (1000, 5000):
        for line in decisions(size, chosen.contexts, chosen.reference, chosen.repeat if size == 1000 else 1):
            rows.append(line)
            beside = (
                f"{line['reference']:8.1f} {line['reference'] / line['seconds']:6.0f}"
                if "reference" in line
                else f"{'-':>8} {'-':>6}"
            )  # type: ignore[operator]
            apart = f"{line['apart']:16.1e}" if "apart" in line else f"{'-':>16}"
            print(
                f"{line['method']!s:<24} {line['rows']:>7} {line['seconds']:8.2f} {beside} {apart}",
                flush=True,
            )
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "kernel.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(
            stream, ("what", "method", "rows", "repetition", "seconds", "megabytes", "reference", "apart")
        )
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
