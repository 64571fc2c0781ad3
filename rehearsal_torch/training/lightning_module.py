"""The Lightning module and data module of a training, its batches, and fits with any Lightning Trainer.

Given a part with a loss l(examples), Adam minimises the mean of l over batches. The module records for every
epoch the mean training loss (over the epoch's batches, while the weights change) and the mean held-out loss
(after the epoch); for a mechanism both are negative log-likelihoods per transition. The module exists during
training only: the saved model is the part. Both work with any Trainer of Lightning's:

    for module, data in lightning_parts(model, transitions(episodes), held_out):
        Trainer(max_epochs=20, gradient_clip_val=1.0).fit(module, data)

A model of transitions has one part that is trained, an ensemble one for each of its models, a causal model
with ``fitting="train"`` the encoders and the decoders. Parts with a solver (ranges, levels, mixtures) are
solved on the way. After the loop the model is fitted, with the weights at the end of each training, not those
of the best epoch.

Examples are moved to the device once, and permuted as a whole each epoch, by (seed, epoch) alone. Batches are
slices of blocks of many of them, so that a step needs no indexing, copy or worker, and a resumed training has
the batches of an uninterrupted one. Several processes share each batch: each takes successive rows of it, and
weights its mean loss such that the mean over the processes is that over the batch.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from torch import Tensor, distributed

from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Examples, Trained
from rehearsal_torch.seeding import epoch_seed, generator, paired_seed, seed_draws
from rehearsal_torch.surrogates.surrogate import Surrogate, sample
from rehearsal_torch.training.surrogate_fit import unsolved

# Rows that are gathered at a time, about.
BLOCK = 65_536
# The number of batches of a block is a multiple of this one, so that each batch lies at the same place of a
# cache line as in one block of all rows: the last bits of a product may depend on it.
ALIGNED = 64


class Share(NamedTuple):
    """One process's rows of a batch, the weight of their mean loss, and the rows for which they stand."""

    weight: float
    rows: float
    examples: Examples


class Batches:
    """A process's shares of batches of examples, reshuffled each epoch.

    Args:
        examples: Tensors (n, ...) with the same n.
        size: Rows per batch; the last batch may be smaller.
        epoch: Returns the current epoch; None keeps the rows in their order.
        rank: The process, 0 ... world - 1.
        least: The smallest number of batches of an epoch; fewer rows are passed several times.

    Raises:
        ValueError: if there are no rows, the tensors disagree on n, or size is below 1.
    """

    def __init__(
        self,
        examples: Examples,
        size: int,
        seed: int = 0,
        epoch: Callable[[], int] | None = None,
        rank: int = 0,
        world: int = 1,
        least: int = 1,
    ) -> None:
        counts = {len(example) for example in examples}
        if len(counts) != 1 or 0 in counts or size < 1:
            raise ValueError(
                "expected examples with one positive number of rows and a batch size of at least 1; got "
                f"rows {sorted(counts)}, size {size}"
            )
        self.examples, self.size, self.seed, self.epoch = examples, size, seed, epoch
        self.rank, self.world, self.rows = rank, world, counts.pop()
        self.passes = -(-least // -(-self.rows // size))

    def __len__(self) -> int:
        """The number of batches per epoch, the same for all processes."""
        return -(-self.rows * self.passes // self.size)

    def __iter__(self) -> Iterator[Share]:
        """The shares of the current epoch; of a batch with fewer rows than processes, each takes all rows."""
        # A generator starts at its first `next`, so the epoch is read when the epoch begins and not when the
        # loop is set up.
        for block in [self.examples] if self.epoch is None else self._gathered(self.order(self.epoch())):
            for batch in zip(*(examples.split(self.size) for examples in block), strict=True):
                rows = len(batch[0])
                if rows < self.world:
                    yield Share(1.0, rows / self.world, batch)
                    continue
                start, end = (number * rows // self.world for number in (self.rank, self.rank + 1))
                share = tuple(example[start:end] for example in batch)
                yield Share((end - start) * self.world / rows, end - start, share)

    def order(self, epoch: int) -> Tensor:
        """The order of the rows in an epoch, (passes n,) long; drawn on the CPU, the same on every device."""
        draws = generator(epoch_seed(self.seed, epoch))
        return torch.cat([torch.randperm(self.rows, generator=draws) for _ in range(self.passes)])

    def _gathered(self, order: Tensor) -> Iterator[Examples]:
        """The examples in an order, in blocks of many batches."""
        rows_per_block = self.size * ALIGNED * -(-BLOCK // (self.size * ALIGNED))
        for indices in order.split(rows_per_block):
            yield tuple(examples[indices.to(examples.device)] for examples in self.examples)


class TrainingData(LightningDataModule):
    """Training examples (n, ...) and held-out ones (m, ...), in the training's precision, in `Batches`."""

    def __init__(
        self,
        examples: Examples,
        held_out: Examples | None = None,
        batch_size: int = 256,
        seed: int = 0,
        least: int = 1,
    ) -> None:
        super().__init__()
        self.examples, self.held_out, self.batch_size, self.seed = examples, held_out, batch_size, seed
        self.least = least

    def train_dataloader(self) -> Batches:
        """The shuffled training batches."""
        return self._batches(self.examples, self.batch_size, lambda: self._trainer.current_epoch)

    def val_dataloader(self) -> Batches | list[Batches]:
        """The held-out examples, if any, in their order, in batches of at least 8,192 rows for speed."""
        return [] if self.held_out is None else self._batches(self.held_out, max(self.batch_size, 8192), None)

    def transfer_batch_to_device(
        self,
        batch: Share,
        device: torch.device,  # noqa: ARG002
        dataloader_idx: int,  # noqa: ARG002
    ) -> Share:
        """The batch unchanged: it is on the device already."""
        return batch

    @property
    def _trainer(self) -> Trainer:
        if self.trainer is None:
            raise RuntimeError("expected a trainer; got none: batches are made for a running training only")
        return self.trainer

    def _batches(self, examples: Examples, size: int, epoch: Callable[[], int] | None) -> Batches:
        on_device = tuple(example.to(self._trainer.strategy.root_device) for example in examples)
        least, trainer = 1 if epoch is None else self.least, self._trainer
        return Batches(on_device, size, self.seed, epoch, trainer.global_rank, trainer.world_size, least)


TRAIN, HELD_OUT = "train_loss", "held_out_loss"


class TrainingModule(LightningModule):
    """A part, its optimiser and its losses, which are logged as ``train_loss`` and ``held_out_loss``.

    Args:
        part: The part, which is trained in place.
        seed: Determines the draws of the loss, together with the epoch.
        settings: Further plain numbers and strings, stored in Lightning's checkpoints.
    """

    def __init__(self, part: Trained, learning_rate: float = 1e-3, seed: int = 0, **settings: Any) -> None:
        super().__init__()
        self.save_hyperparameters({"learning_rate": learning_rate, "seed": seed, **settings})
        self.part, self.learning_rate, self.seed = part, learning_rate, seed
        self.readings: list[tuple[int, str, float]] = []
        self._running, self._checked = Mean(), Mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, with one fused call per step."""
        return torch.optim.Adam(self.part.parameters(), lr=self.learning_rate, fused=True)

    def on_train_epoch_start(self) -> None:
        """Seeds the random draws of the loss by (seed, epoch), and of further processes by their rank."""
        seed = epoch_seed(self.seed + 1, self.current_epoch)
        seed_draws(paired_seed(seed, self.global_rank) if self.global_rank else seed)
        self._running.begin(self.device)

    def training_step(self, batch: Share, index: int) -> Tensor:  # noqa: ARG002
        """Mean loss of the batch; that of a share, weighted for the mean over all processes."""
        return self._loss(batch, self._running)

    def on_train_epoch_end(self) -> None:
        """Records the epoch's mean training loss."""
        self._record(TRAIN, self._running)

    def on_validation_epoch_start(self) -> None:
        """Starts a separate mean: validation runs inside the training epoch."""
        self._checked.begin(self.device)

    def validation_step(self, batch: Share, index: int) -> None:  # noqa: ARG002
        """Accumulates the held-out loss."""
        self._loss(batch, self._checked)

    def on_validation_epoch_end(self) -> None:
        """Records the mean held-out loss."""
        self._record(HELD_OUT, self._checked)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Stores the readings, so that a resumed training has all of them."""
        checkpoint["readings"] = list(self.readings)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restores the readings; a checkpoint of another module has none."""
        self.readings[:] = [
            (int(epoch), str(name), float(value)) for epoch, name, value in checkpoint.get("readings", ())
        ]

    def _loss(self, batch: Share, mean: "Mean") -> Tensor:
        loss = self.part.loss(*batch.examples)
        mean.add(loss, batch.rows)
        return loss if batch.weight == 1 else loss * batch.weight

    def _record(self, name: str, mean: "Mean") -> None:
        value = mean.value(shared=self.trainer.world_size > 1)
        if self.trainer.sanity_checking:
            return
        self.readings.append((self.current_epoch, name, value))
        self.log(name, value, prog_bar=True, on_step=False, on_epoch=True, batch_size=1, sync_dist=True)


class Mean:
    """A running mean over rows, accumulated on the device in float64."""

    def begin(self, device: torch.device) -> None:
        """Resets the mean."""
        self.total, self.rows = torch.zeros((), device=device, dtype=torch.float64), 0.0

    def add(self, mean: Tensor, rows: float) -> None:
        """Adds the mean () of `rows` rows."""
        self.total += mean.detach() * rows
        self.rows += rows

    def value(self, shared: bool = False) -> float:
        """The mean of all rows so far, of all processes if `shared`; the only call that synchronises."""
        if not shared:
            return float(self.total) / self.rows
        sums = torch.stack([self.total, self.total.new_tensor(self.rows)])
        distributed.all_reduce(sums)
        return float(sums[0] / sums[1])


def lightning_parts(
    surrogate: Surrogate,
    table: Table,
    held_out: Table | None = None,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> Iterator[tuple[TrainingModule, TrainingData]]:
    """The trained parts of a surrogate, each to be trained before the next is requested; the surrogate is
    fitted in place, on the CPU, to observations in the variables' units. The seed determines the order of the
    rows, and the draws of a loss.
    """
    held_out_parts = None if held_out is None else surrogate.parts(held_out)
    surrogate.check_noise(None, None)
    for part, examples, validation in unsolved(surrogate.parts(table), held_out_parts):
        module = TrainingModule(part.train(), learning_rate, seed)
        yield module, TrainingData(examples, validation, batch_size, seed)
        part.zero_grad(set_to_none=True)
        part.eval().finish()
    surrogate.eval().check_noise(sample(table), None if held_out is None else sample(held_out))
