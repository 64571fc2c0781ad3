"""Members of a surrogate that several processes fit, such as the models of an ensemble, or the estimators of
candidate sets.

The parts that all members have in common are fitted in this process. Surrogate, rows and trainer are then
sent to each process once; a task is the number of a member, and its result the member's state and losses:

    state_j, losses_j = fit(member j, rows),        j = 1 ... M (`shared_tasks`)

A member's initial weights are drawn when the surrogate is built, its resample and the order of its batches
from seeds, and it is fitted with one thread; so its bits are those of a fit in one process with one thread.
Each training keeps its own folder, ``<part>/last.ckpt``, from which any number of processes resume it.

**What is shared**, if workers are asked for: trained members, if M members x n rows x the most epochs are at
least `MANY` = 2,000,000, some 15 s of one core, and in a cluster of joblib's context any number; solved
members, by the time that the first one takes (`shared_tasks`). States may be large, 250 MB for a candidate
set of a kernel method with 2,000 rows or more: each is held once, and that of the first is not sent.

Not shared are surrogates that override `parts`, trainings on a GPU, with several threads or
processes each, with callbacks, or with loggers that may write to one place for all. Whether
`accelerator=auto` is a GPU is decided here: a worker with a GPU trains on its CPU if this process has none.

Parts are fitted one after the other: a part with its own solver is solved, any other is trained.

    for each part with its examples:    solve(*examples), or the trainer's descent on loss(*examples)

The examples of a part may depend on the parts before it, so that both come from an iterator, in step with
that of the held-out examples.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from rehearsal_torch.cluster import named_cluster
from rehearsal_torch.data.part import Examples, Solved, Trained, forget
from rehearsal_torch.data.table import Table
from rehearsal_torch.progress import Progress
from rehearsal_torch.shared_tasks import results
from rehearsal_torch.surrogates.surrogate import SeparateMembers
from rehearsal_torch.workers import threads

if TYPE_CHECKING:
    from rehearsal_torch.training.descent import Descent

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
    """Fits a surrogate of separate members in place; errors as of `training.fit.fit`."""
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
