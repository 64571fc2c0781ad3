"""Fitting of a surrogate to a table: part by part, member by member in parallel, and cross-validation folds.

The surrogate defines the order of its parts: a part with its own solver (`Solved`) is solved, any other is
trained by gradient descent on its loss. The examples of a part may depend on the parts fitted before it; so
do the held-out examples, so that nothing is fitted to held-out rows.

Afterwards a model of transitions is checked for noise that can be predicted on held-out rows
(`surrogates.surrogate`). A model on a GPU is fitted on the CPU, apart from trained parts, and moved back.

Questions about the same table, such as which action to try next and which to recommend, share one fit
(`KeptFit`). A fit starts from the table alone, not from earlier hyper-parameters, so that answers do not
depend on earlier questions, and are the same in a new process.

Folds are parts of the rows, each held out once from the fit by which it is judged. Rows of one unit (a
patient, a store) are correlated: with folds of single rows, rows of a unit fall on both sides, and held-out
rows look more predictable than a new unit is. Folds by unit hold out whole units.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (five folds; their code draws them by row).

**Sharing.** Members of a surrogate, such as the models of an ensemble, or the estimators of candidate sets,
are fitted by several processes. The parts that all members have in common are fitted in this one. Surrogate,
rows and trainer are then sent to each process once; a task is the index of a member, and its result the
member's state and losses:

    state_j, losses_j = fit(member j, rows),        j = 1 ... M (`shared_tasks`)

A member's initial weights are drawn when the surrogate is built, its resample and the order of its batches
from seeds, and it is fitted with one thread; so its bits are those of a fit in one process with one thread.
Each training keeps its own folder, ``<part>/last.ckpt``, from which any number of processes resume it.

With workers, trained members are shared if members x rows x epochs are at least `MANY`, some 15 s of one
core, or in a cluster of joblib's context; solved members, by the time that the first one takes. States may be
large, 250 MB for a candidate set of a kernel method with 2,000 rows: each is held once, and that of the first
is not sent. Not shared are surrogates that override `parts`, trainings on a GPU, with several threads or
processes each, with callbacks, or with loggers that may write to one place for all. Workers train on the CPU
if `accelerator=auto` is the CPU in this process.
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
    """Fits parts in place, in order; `held_out` are the same parts with held-out examples, computed only for
    parts that use them; `names` are by id. ValueError if a part has to be trained and there is no trainer.
    """
    for part, examples, validation in unsolved(steps, held_out, quiet):
        name = names.get(id(part), type(part).__name__)
        if trainer is None:
            raise ValueError(
                f"part {name!r} ({type(part).__name__}) is trained by gradients: pass a trainer, such as "
                "trainer=Descent(max_epochs=100)"
            )
        trainer.train(part, examples, validation, name)


def unsolved(
    steps: Steps, held_out: Steps | None, quiet: bool = True
) -> Iterator[tuple[Trained, Examples, Examples | None]]:
    """Solves the parts with a solver, in order, and yields the others with training and held-out examples."""
    held_out_steps = None if held_out is None else enumerate(held_out)
    for index, (part, examples) in enumerate(steps):
        if isinstance(part, Solved):
            with Progress(f"fitting the model, part {index + 1}", quiet=quiet):
                part.solve(*examples)
            # Buffers as they are after loading: the last bits of sums depend on the memory layout, and a
            # loaded part must give the results of the saved one.
            for module in part.modules():
                for name, buffer in module.named_buffers(recurse=False):
                    if not buffer.is_contiguous():
                        setattr(module, name, buffer.contiguous())
            continue
        validation = None
        if held_out_steps is not None and part.uses_held_out:
            validation = next(step[1] for position, step in held_out_steps if position == index)
        yield part, examples, validation


# Rows times epochs times members from which trainings are shared.
MANY = 2_000_000
# The alignment of a tensor's memory, in bytes.
ALIGNED = 64
# Loggers that write only below the folder of a part's training.
_LOCAL_LOGGERS = {"csv", "tensorboard"}
# A member's state and losses.
_FittedMember = tuple[dict[str, np.ndarray], list[tuple[int, str, float]]]


@dataclass(frozen=True)
class _Shared:
    """The arguments of `_fit_member` that all members share."""

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
    local = not trainer.callbacks and set(trainer.loggers) <= _LOCAL_LOGGERS
    if not (shareable(trainer) and trainer.threads == 1 and local):
        return False
    return rows * trainer.max_epochs >= MANY or named_cluster() is not None


def separable(surrogate: SeparateMembers, rows: int, trainer: "Descent | None") -> bool:
    """Whether workers are to share the fits of a surrogate's members, to `rows` rows each."""
    members = surrogate.separate()
    return not _needs_training(members) or (
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
    validation = None if held_out is None else surrogate.common_parts(held_out)
    fit_parts(surrogate.common_parts(table), validation, names, trainer, quiet)
    members = surrogate.separate()
    solved = not _needs_training(members)
    if solved:
        for member in members:
            # The state of an earlier fit need not be sent.
            forget(member)
    quiet = quiet if solved or trainer is None else not trainer.progress
    line = Progress(f"fitting the {len(members)} {surrogate.members_are}", len(members), quiet=quiet)
    worker_trainer = None
    if trainer is not None and not solved:
        worker_trainer = trainer.settled()
        worker_trainer.progress, worker_trainer.folder = False, trainer.folder and trainer.folder.resolve()
    shared = _Shared(surrogate, table, held_out, worker_trainer, torch.get_rng_state())
    # A solver's bits depend on the number of threads, and a worker has one.
    with line, threads(1 if solved else None):
        states = results(_fit_member, shared, range(len(members)), workers, timed=solved, ahead=1)
        for index, (state, readings) in enumerate(states):
            if index:
                _load_state(members[index], state, solved)
            else:
                # Loaded last, so that it is not sent to the other processes.
                first_state = state
            if trainer is not None:
                trainer.history.extend(readings)
            line.at(index + 1)
        del state
    _load_state(members[0], first_state, solved)
    del first_state
    validation = None if held_out is None else surrogate.closing_parts(held_out)
    fit_parts(surrogate.closing_parts(table), validation, names, trainer, quiet)


def _fit_member(shared: _Shared, index: int) -> _FittedMember:
    """The state of a member after its fit, as arrays, which are sent in half the time, and the losses."""
    surrogate, trainer = shared.surrogate, copy.copy(shared.trainer)
    if trainer is not None:
        trainer.history = []
    names = {id(module): name for name, module in surrogate.named_modules()}
    validation = None if shared.held_out is None else surrogate.member_parts(index, shared.held_out)
    # A training whose loss draws goes on from the random state of the process that asked for it.
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(shared.random)
        fit_parts(surrogate.member_parts(index, shared.table), validation, names, trainer, True)
    member = surrogate.separate()[index]
    state = {name: value.cpu().numpy() for name, value in member.state_dict().items()}
    if not _needs_training([member]):
        # The common parts stay.
        forget(member)
    return state, [] if trainer is None else trainer.history


def _load_state(member: nn.Module, state: dict[str, np.ndarray], solved: bool) -> None:
    """Loads a member's state; that of a solver, which may be large, is not copied."""
    member.load_state_dict({name: _aligned_tensor(array) for name, array in state.items()}, assign=solved)
    member.eval()


def _aligned_tensor(array: np.ndarray) -> Tensor:
    """An array as an aligned tensor: the last bits of products depend on alignment."""
    tensor = torch.from_numpy(array)
    return tensor if tensor.data_ptr() % ALIGNED == 0 else tensor.clone()


def _needs_training(members: Sequence[nn.Module]) -> bool:
    return any(
        isinstance(part, Trained) and not isinstance(part, Solved)
        for member in members
        for part in member.modules()
    )


@dataclass(frozen=True)
class Fold:
    """A split into training rows (n - m,) and held-out rows (m,), both long and ascending."""

    index: int
    train: Tensor
    held_out: Tensor


def folds_of(rows: int, units: Sequence[str] | None, count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds of n rows by their units; None if every row is a unit of its own. Units, not rows, are spread
    evenly, by the seed and the set of units, whatever the order of the rows. ValueError if there are fewer
    than two folds, or fewer rows or units than folds.
    """
    distinct = None if units is None else sorted(set(units))
    total, kind = (rows, "rows") if distinct is None else (len(distinct), "units")
    if count < 2 or total < count:
        raise ValueError(
            f"expected at least 2 folds and as many {kind}; got {count} folds and {total} {kind}: use fewer "
            "folds or more data"
        )
    assignment = torch.empty(total, dtype=torch.long)
    assignment[torch.randperm(total, generator=generator(seed))] = torch.arange(total) % count
    if distinct is not None and units is not None:
        fold_of = dict(zip(distinct, assignment.tolist(), strict=True))
        assignment = torch.tensor([fold_of[unit] for unit in units], dtype=torch.long)
    return [
        Fold(index, (assignment != index).nonzero()[:, 0], (assignment == index).nonzero()[:, 0])
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
    for argument, rows in (("table", table), ("held_out", held_out)):
        if rows is not None and not len(rows):
            raise ValueError(
                f"expected rows in `{argument}`; got none: loosen the data set's filters, or leave "
                "`held_out` out"
            )
    table, held_out = table.to("cpu"), None if held_out is None else held_out.to("cpu")
    training_sample, held_out_sample = sample(table), None if held_out is None else sample(held_out)
    with in_numbers("these rows"), _on_cpu(surrogate):
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
            # Lazily, after the parts before have been fitted to `table`: held-out rows need not be rows that
            # one could fit to.
            validation = None if held_out is None else surrogate.parts(held_out)
            steps = surrogate.parts(table)
            # Training needs examples alone: this frees the table, unless the caller keeps it.
            del table
            fit_parts(steps, validation, names, trainer, quiet)
        surrogate.eval().check_noise(training_sample, held_out_sample)
    return surrogate


@contextmanager
def _on_cpu(surrogate: Surrogate) -> Iterator[None]:
    device = surrogate.device
    surrogate.to("cpu")
    try:
        yield
    finally:
        surrogate.to(device)


class KeptFit(Generic[Fitted]):
    """Fits surrogates, counts them, and keeps the last one."""

    def __init__(self, trainer: "Descent | None" = None) -> None:
        self.trainer, self.fits = trainer, 0
        self._kept: tuple[Callable[..., Fitted], Any, Table, Fitted] | None = None

    def __call__(self, make: Callable[..., Fitted], task: Any, table: Table) -> Fitted:
        """The surrogate that a factory builds for a task, fitted to a table (errors as of `fit`): a copy of
        the last one if factory (by identity), task and table are those of the last call, otherwise a new one.
        """
        last = self._kept
        if last is None or last[0] is not make or last[1] is not task or not _equal(last[2], table):
            self._kept, self.fits = None, self.fits + 1
            last = self._kept = (make, task, table, fit(make(task), table, self.trainer))
        return copy.deepcopy(last[3])


def _equal(first: Table, second: Table) -> bool:
    cells = first.values.equal(second.values) and first.altered.equal(second.altered)
    return first.names == second.names and cells
