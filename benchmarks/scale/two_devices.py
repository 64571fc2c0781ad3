"""One training by one process with one thread, by one with two threads, and by two processes over gloo.

The transition model with 200 units learns the rows of `benchmarks.training`. Times are those of the clock,
since a process that waits for the other takes no CPU seconds: wall seconds of each epoch of the first
process, which reports.

Run, as a script: python -m benchmarks.scale.two_devices DEVICES THREADS BATCH ROWS EPOCHS
"""

import json
import sys
import time
from contextlib import redirect_stdout

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from benchmarks.training import model, table
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit


class WallClock(Callback):
    """Wall seconds of each epoch."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Starts the clock."""
        self.begun = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Stops it."""
        self.seconds.append(time.perf_counter() - self.begun)


def main(devices: int, threads: int, batch: int, rows: int, epochs: int) -> dict[str, list[float]]:
    """Wall seconds and training loss of each epoch."""
    watch = WallClock()
    how = Descent(
        max_epochs=epochs,
        batch_size=batch,
        devices=devices,
        threads=threads,
        progress=False,
        callbacks={"watch": lambda: watch},
    )
    with redirect_stdout(sys.stderr):
        fit(model(), table(rows), how)
    losses = [value for _, name, value in how.history if name.endswith("/train_loss")]
    return {"seconds": [round(each, 4) for each in watch.seconds], "losses": losses}


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
