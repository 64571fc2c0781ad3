"""Fitting of a surrogate to a table, part by part, and the parts of a table that are held out in turn.

The surrogate defines the order of its parts: a part with its own solver (`Solved`) is solved, any other is
trained by gradient descent on its loss. The examples of a part may depend on the parts fitted before it; so
do the held-out examples, so that nothing is fitted to held-out rows.

A model of transitions is checked afterwards: how much of what it takes for noise can be predicted on held-out
rows (`surrogates.surrogate`). What an earlier fit left of it is forgotten first. A model that was moved to
a GPU is fitted on the CPU (a trainer may train a part elsewhere), and moved back.

Questions that are asked of the same table, such as which action to try next and which to recommend, share one
fit (`KeptFit`). A fit starts from the table alone, not from hyper-parameters of an earlier one, so that the
answers do not depend on what was asked before, and a process that starts anew gives the same.

Folds are the rows in parts, each held out once from the fit by which it is judged. Rows of one unit (a
patient, a store) are correlated. With folds of single rows, rows of a unit fall on both sides, and what is
held out looks more predictable than a new unit is. Folds by unit hold out whole units.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (five folds; their code draws them by row).

**Sharing.** Members of a surrogate, such as the models of an ensemble, or the estimators of candidate sets,
are fitted by several processes. The parts that all members have in common are fitted in this one. Surrogate,
rows and trainer are then sent to each process once; a task is the number of a member, and its result the
member's state and losses:

    state_j, losses_j = fit(member j, rows),        j = 1 ... M (`shared_tasks`)

A member's initial weights are drawn when the surrogate is built, its resample and the order of its batches
from seeds, and it is fitted with one thread; so its bits are those of a fit in one process with one thread.
Each training keeps its own folder, ``<part>/last.ckpt``, from which any number of processes resume it.

Shared are, if workers are asked for, trained members, if M members x n rows x the most epochs are at least
`MANY` = 2,000,000, some 15 s of one core, and in a cluster of joblib's context any number; solved members, by
the time that the first one takes. States may be large, 250 MB for a candidate set of a kernel method with
2,000 rows or more: each is held once, and that of the first is not sent. Not shared are surrogates that
override `parts`, trainings on a GPU, with several threads or processes each, with callbacks, or with loggers
that may write to one place for all. Whether `accelerator=auto` is a GPU is decided here: a worker with a GPU
trains on its CPU if this process has none.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rehearsal_torch.dask_cluster import named_cluster
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Examples, Solved, Trained, forget
from rehearsal_torch.progress import Progress
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.surrogate import SeparateMembers, Surrogate, sample
from rehearsal_torch.task_pool import results
from rehearsal_torch.worker_processes import threads

if TYPE_CHECKING:
    from rehearsal_torch.training.gradient_descent import Descent

Steps = Iterator[tuple[Solved | Trained, Examples]]


def fit_parts(
    steps: Steps, held_out: Steps | None, names: Mapping[int, str], trainer: "Descent | None", quiet: bool
) -> None:
    """Fits parts in place, in order; `held_out` are the same parts with their held-out examples, made only
    for parts that use them, and `names` those of the parts among the modules of their surrogate, by id.
    ValueError if a part has to be trained and there is no trainer.
    """
    for part, examples, check in unsolved(steps, held_out, quiet):
        name = names.get(id(part), type(part).__name__)
        if trainer is None:
            raise ValueError(
                f"part {name!r} ({type(part).__name__}) is trained by gradients: pass a trainer, such as "
                "trainer=Descent(max_epochs=100)"
            )
        trainer.train(part, examples, check, name)


def unsolved(
    steps: Steps, held_out: Steps | None, quiet: bool = True
) -> Iterator[tuple[Trained, Examples, Examples | None]]:
    """Solves the parts with a solver, in order, and yields the others with their examples and held-out ones;
    see `fit_parts`.
    """
    checks = None if held_out is None else enumerate(held_out)
    for number, (part, examples) in enumerate(steps):
        if isinstance(part, Solved):
            with Progress(f"fitting the model, part {number + 1}", quiet=quiet):
                part.solve(*examples)
            # Buffers as they are after loading: the last bits of sums depend on the memory layout, and a
            # loaded part must give the results of the saved one.
            for module in part.modules():
                for name, buffer in module.named_buffers(recurse=False):
                    if not buffer.is_contiguous():
                        setattr(module, name, buffer.contiguous())
            continue
        check = None
        if checks is not None and part.uses_held_out:
            check = next(step[1] for other, step in checks if other == number)
        yield part, examples, check


# Rows times epochs times members from which trainings are shared.
MANY = 2_000_000
# Bytes at a multiple of which the numbers of a tensor begin.
ALIGNED = 64
# Loggers that write only below the folder of a part's training.
_APART = {"csv", "tensorboard"}
# A member's state and losses.
_Found = tuple[dict[str, np.ndarray], list[tuple[int, str, float]]]


@dataclass(frozen=True)
class _Fits:
    """What the fits of all members have in common."""

    surrogate: SeparateMembers
    table: Table
    held_out: Table | None
    trainer: "Descent | None"
    random: Tensor


def shareable(trainer: "Descent | None") -> bool:
    """Whether processes may share fits: not those on GPUs, or by several processes each; None has solvers."""
    return trainer is None or (trainer.settled().accelerator == "cpu" and trainer.devices in (1, [1]))


def trained_elsewhere(trainer: "Descent", rows: float) -> bool:
    """Whether trainings of `rows` rows in all, by one process each, pay to be shared, and can be."""
    apart = not trainer.callbacks and set(trainer.loggers) <= _APART
    if not (shareable(trainer) and trainer.threads == 1 and apart):
        return False
    return rows * trainer.max_epochs >= MANY or named_cluster() is not None


def separable(surrogate: SeparateMembers, rows: int, trainer: "Descent | None") -> bool:
    """Whether workers are to share the fits of a surrogate's members, to `rows` rows each."""
    members = surrogate.separate()
    return not _trained(members) or (
        trainer is not None and trained_elsewhere(trainer, len(members) * float(rows))
    )


def fit_members(
    surrogate: SeparateMembers,
    table: Table,
    trainer: "Descent | None",
    held_out: Table | None,
    workers: int,
    quiet: bool,
) -> None:
    """Fits a surrogate of separate members in place; errors as of `training.surrogate_fit.fit`."""
    names = {id(module): name for name, module in surrogate.named_modules()}
    checks = None if held_out is None else surrogate.common_parts(held_out)
    fit_parts(surrogate.common_parts(table), checks, names, trainer, quiet)
    members = surrogate.separate()
    timed = not _trained(members)
    if timed:
        for member in members:
            # What an earlier fit has left there need not be sent.
            forget(member)
    quiet = quiet if timed or trainer is None else not trainer.progress
    line = Progress(f"fitting the {len(members)} {surrogate.members_are}", len(members), quiet=quiet)
    silent = None
    if trainer is not None and not timed:
        silent = trainer.settled()
        silent.progress, silent.folder = False, trainer.folder and trainer.folder.resolve()
    fits = _Fits(surrogate, table, held_out, silent, torch.get_rng_state())
    # A solver's bits depend on the number of threads, and a worker has one.
    with line, threads(1 if timed else None):
        states = results(_member, fits, range(len(members)), workers, timed=timed, ahead=1)
        for number, (state, readings) in enumerate(states):
            if number:
                _adopt(members[number], state, timed)
            else:
                # Fitted here, and not to be sent to the others' processes.
                first = state
            if trainer is not None:
                trainer.history.extend(readings)
            line.at(number + 1)
        del state
    _adopt(members[0], first, timed)
    del first
    checks = None if held_out is None else surrogate.closing_parts(held_out)
    fit_parts(surrogate.closing_parts(table), checks, names, trainer, quiet)


def _member(fits: _Fits, number: int) -> _Found:
    """The state of a member after its fit, as arrays, which travel in half the time, and the losses."""
    surrogate, trainer = fits.surrogate, copy.copy(fits.trainer)
    if trainer is not None:
        trainer.history = []
    names = {id(module): name for name, module in surrogate.named_modules()}
    checks = None if fits.held_out is None else surrogate.member_parts(number, fits.held_out)
    # A training whose loss draws goes on from the random state of the process that asked for it.
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(fits.random)
        fit_parts(surrogate.member_parts(number, fits.table), checks, names, trainer, True)
    member = surrogate.separate()[number]
    state = {name: value.cpu().numpy() for name, value in member.state_dict().items()}
    if not _trained([member]):
        # What is common is as before.
        forget(member)
    return state, [] if trainer is None else trainer.history


def _adopt(member: nn.Module, state: dict[str, np.ndarray], solved: bool) -> None:
    """Gives a member its state; a factor of all rows is taken over, not copied."""
    member.load_state_dict({name: _tensor(value) for name, value in state.items()}, assign=solved)
    member.eval()


def _tensor(value: np.ndarray) -> Tensor:
    """An array as a tensor that begins where tensors begin: the last bits of products depend on it."""
    tensor = torch.from_numpy(value)
    return tensor if tensor.data_ptr() % ALIGNED == 0 else tensor.clone()


def _trained(members: Sequence[nn.Module]) -> bool:
    """Whether members have parts without a solver."""
    return any(
        isinstance(part, Trained) and not isinstance(part, Solved)
        for member in members
        for part in member.modules()
    )


@dataclass(frozen=True)
class Fold:
    """A split of the rows, numbered from 0: training rows (n - m,) and held-out rows (m,), both long and in
    ascending order.
    """

    index: int
    train: Tensor
    held_out: Tensor


def folds_of(rows: int, units: Sequence[str] | None, count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds of n rows by their units; None if every row is a unit of its own. Units, not rows, are
    distributed evenly, in an order that depends on the seed and the set of units but not on the order of the
    rows. ValueError if there are fewer than two folds, or fewer rows or units than folds.
    """
    every = None if units is None else sorted(set(units))
    items, what = (rows, "rows") if every is None else (len(every), "units")
    if count < 2 or items < count:
        raise ValueError(
            f"expected at least 2 folds and as many {what}; got {count} folds and {items} {what}: use fewer "
            "folds or more data"
        )
    dealt = torch.empty(items, dtype=torch.long)
    dealt[torch.randperm(items, generator=generator(seed))] = torch.arange(items) % count
    if every is not None and units is not None:
        fold = dict(zip(every, dealt.tolist(), strict=True))
        dealt = torch.tensor([fold[unit] for unit in units], dtype=torch.long)
    return [
        Fold(index, (dealt != index).nonzero()[:, 0], (dealt == index).nonzero()[:, 0])
        for index in range(count)
    ]


Fitted = TypeVar("Fitted", bound=Surrogate)


def fit(
    surrogate: Fitted,
    table: Table,
    trainer: "Descent | None" = None,
    held_out: Table | None = None,
    *,
    quiet: bool = True,
    workers: int = 1,
) -> Fitted:
    """Fits every part of a surrogate, in place.

    Args:
        table: The observations, in the variables' units.
        trainer: Trains the parts without a solver; not needed if every part is solved.
        held_out: Rows for early stopping and held-out losses; None trains for all epochs, as do parts for
            which `uses_held_out` is false.
        quiet: Whether the parts with a solver show no progress; trained parts follow `Descent.progress`.
        workers: Processes that share the fits of members (the models of an ensemble or of imputed tables, the
            estimators of candidate sets), each with one thread; within
            ``joblib.parallel_config(backend="dask")`` and above 1, the workers of that cluster. What is not
            worth a process, or has no members, is fitted in this one.

    Returns:
        The same surrogate, in evaluation mode, on the device where it was.

    Raises:
        ValueError: if a table is empty, a part has to be trained and there is no trainer, `workers` is below
            1, or the arithmetic yields non-finite numbers.
        ClusterError: if joblib's context names a cluster that cannot share the fits.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    for what, rows in (("table", table), ("held_out", held_out)):
        if rows is not None and not len(rows):
            raise ValueError(
                f"expected rows in `{what}`; got none: loosen the data set's filters, or leave `held_out` out"
            )
    table, held_out = table.to("cpu"), None if held_out is None else held_out.to("cpu")
    some, others = sample(table), None if held_out is None else sample(held_out)
    with in_numbers("these rows"), _brought(surrogate):
        surrogate.check_noise(None, None)
        if (
            workers > 1
            and isinstance(surrogate, SeparateMembers)
            and type(surrogate).parts is SeparateMembers.parts
            and len(surrogate.separate()) > 1
            and separable(surrogate, len(table), trainer)
        ):
            fit_members(surrogate, table, trainer, held_out, workers, quiet)
        else:
            names = {id(module): name for name, module in surrogate.named_modules()}
            # The held-out examples of a part are created after the parts before it have been fitted to
            # `table`, and only for parts that use them: held-out rows need not be rows that one could fit to.
            checks = None if held_out is None else surrogate.parts(held_out)
            steps = surrogate.parts(table)
            # Training needs examples and not the table: it is gone by then, unless the caller keeps it.
            del table
            fit_parts(steps, checks, names, trainer, quiet)
        surrogate.eval().check_noise(some, others)
    return surrogate


@contextmanager
def _brought(surrogate: Surrogate) -> Iterator[None]:
    """On the CPU meanwhile."""
    home = surrogate.device
    surrogate.to("cpu")
    try:
        yield
    finally:
        surrogate.to(home)


class KeptFit(Generic[Fitted]):
    """Fits surrogates, counts them, and keeps the last one."""

    def __init__(self, trainer: "Descent | None" = None) -> None:
        self.trainer, self.fits = trainer, 0
        self._kept: tuple[Callable[..., Fitted], Any, Table, Fitted] | None = None

    def __call__(self, make: Callable[..., Fitted], task: Any, table: Table) -> Fitted:
        """The surrogate that a factory makes for a task, fitted to a table (errors as of `fit`): a copy of
        the kept one if factory, task and table are those of the last call, otherwise a new one. A factory
        that was changed in place makes no other fit.
        """
        kept = self._kept
        if kept is None or kept[0] is not make or kept[1] is not task or not _equal(kept[2], table):
            self._kept, self.fits = None, self.fits + 1
            kept = self._kept = (make, task, table, fit(make(task), table, self.trainer))
        return copy.deepcopy(kept[3])


def _equal(first: Table, second: Table) -> bool:
    """Whether two tables have the same cells, to the last bit."""
    cells = first.values.equal(second.values) and first.altered.equal(second.altered)
    return first.names == second.names and cells
