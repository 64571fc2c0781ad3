"""Training speed of the location-scale mechanism, in transitions per second on one core.

Measured is the time of an epoch, without the first, of the 200-unit model at batch size 256 with exact
spectral norms:

    fit                through `rehearsal_torch.fit` and Lightning, as users run it
    plain loop         the same model and optimiser, fed by DataLoader(TensorDataset)
    resident loop      the same model and optimiser, a bare loop over slices in memory: the upper bound
        without
                       Lightning
    textbook           torch's spectral_norm (power iteration: no exact bound) on two networks,
                       MultivariateNormal(L L'), whose covariance is factorised again in every batch, fed by
                       DataLoader(TensorDataset)

Times are process times (the machine may be shared), the best of the epochs after the first; the variants
alternate.

Run: python benchmarks/training.py [rows] [epochs] [rounds]
"""

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.data import DataLoader, TensorDataset

from rehearsal_torch.data.episode import next_name
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit

VARYING = tuple(f"state{index}" for index in range(9))
FEATURES = (*VARYING, "static0", "static1", "static2", "context")
DOSES = ("dose0", "dose1")
BATCH = 256


class BoundedNetwork(nn.Module):
    """One network of the model, as torch's layers give it."""

    def __init__(self, constant: float, powers: int) -> None:
        super().__init__()
        self.root = constant**0.5
        self.state = spectral_norm(nn.Linear(12, 200), n_power_iterations=powers)
        self.action = nn.Linear(3, 200, bias=False)
        self.out = spectral_norm(nn.Linear(200, 9), n_power_iterations=powers)

    def forward(self, parents: Tensor) -> Tensor:
        """(n, 15) -> (n, 9)."""
        hidden = torch.tanh(self.root * (self.state(parents[:, :12]) + self.action(parents[:, 12:])))
        return self.root * self.out(hidden)


class Textbook(nn.Module):
    """The textbook implementation: two networks of torch's own layers and a MultivariateNormal."""

    def __init__(self, powers: int) -> None:
        super().__init__()
        self.location, self.scale = BoundedNetwork(1.0, powers), BoundedNetwork(0.1, powers)
        self.raw = nn.Parameter(torch.eye(9))

    def loss(self, parents: Tensor, values: Tensor) -> Tensor:
        """Mean negative log-likelihood."""
        location, scale = self.location(parents), nn.functional.softplus(self.scale(parents))
        lower = torch.tril(self.raw)
        prior = torch.distributions.MultivariateNormal(torch.zeros(9), lower @ lower.T)
        return -(prior.log_prob((values - location) / scale) - scale.log().sum(-1)).mean()


class Stopwatch(Callback):
    """Process time of each epoch."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Starts the stopwatch."""
        self.begun = time.process_time()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Stops the stopwatch."""
        self.seconds.append(time.process_time() - self.begun)


def table(rows: int) -> Table:
    """Transitions of a noisy linear world."""
    stream = torch.Generator().manual_seed(0)
    here = torch.rand(rows, 15, generator=stream, dtype=torch.float64)
    here[:, 13:] = (here[:, 13:] - 0.3).clamp_min(0)
    ahead = here.clone()
    ahead[:, :9] = 0.7 * here[:, :9] + 0.1 * torch.randn(rows, 9, generator=stream, dtype=torch.float64)
    names = (*FEATURES, *DOSES)
    return Table.observed((*names, *(next_name(name) for name in names)), torch.cat([here, ahead], -1))


def model() -> TransitionModel:
    """The paper's sizes: 9 varying, 3 static, 1 contextual feature, 2 doses, 200 hidden units."""
    torch.manual_seed(0)
    return TransitionModel(VARYING, FEATURES[9:12], FEATURES[12:], DOSES, partial(LocationScale, hidden=200))


def through_fit(data: Table, epochs: int) -> list[float]:
    """Seconds of each epoch through `fit`."""
    watch = Stopwatch()
    fit(
        model(),
        data,
        Descent(max_epochs=epochs, batch_size=BATCH, progress=False, callbacks={"watch": lambda: watch}),
    )
    return watch.seconds


def loop(
    module: nn.Module,
    loss: Callable[..., Tensor],
    batches: Callable[[], Iterable[tuple[Tensor, ...]]],
    epochs: int,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """Seconds of each epoch of a hand-written loop."""
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)
    seconds = []
    for _ in range(epochs):
        begun = clock()
        for parents, values in batches():
            optimiser.zero_grad()
            value = loss(parents, values)
            value.backward()
            optimiser.step()
        seconds.append(clock() - begun)
    return seconds


def main(rows: int = 40_960, epochs: int = 4, rounds: int = 3) -> dict[str, float]:
    """Prints and returns transitions per second of each variant."""
    torch.set_num_threads(1)
    data = table(rows)
    made = model()
    for part, examples in made.parts(data):
        if isinstance(part, Solved):
            part.solve(*examples)
    parents, values = made.examples(data)
    loader = DataLoader(TensorDataset(parents, values), BATCH, shuffle=True)

    def resident() -> Iterable[tuple[Tensor, ...]]:
        order = torch.randperm(rows)
        return zip(parents[order].split(BATCH), values[order].split(BATCH), strict=True)

    def textbook(powers: int) -> list[float]:
        network = Textbook(powers)
        return loop(network, network.loss, lambda: loader, epochs)

    ways: dict[str, Callable[[], list[float]]] = {
        "fit": lambda: through_fit(data, epochs),
        "plain loop": lambda: loop(made.mechanism, made.mechanism.loss, lambda: loader, epochs),
        "resident loop": lambda: loop(made.mechanism, made.mechanism.loss, resident, epochs),
        "textbook, 1 power iteration": lambda: textbook(1),
        "textbook, 10 power iterations": lambda: textbook(10),
    }
    best = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for name, way in ways.items():
            best[name] = max(best[name], rows / min(way()[1:]))
    print(
        f"{rows} transitions, batch {BATCH}, 200 units, one core; best epoch after the first of {rounds} "
        f"rounds of {epochs} epochs, process time"
    )
    for name, rate in best.items():
        print(f"{name:32s}{rate:10,.0f} transitions/s   fit is {best['fit'] / rate:4.2f} times as fast")
    return best


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
