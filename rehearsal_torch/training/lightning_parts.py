"""Fits with a Trainer of one's own: the modules and data modules of Lightning that a fit goes through.

    for module, data in lightning_parts(model, transitions(episodes), held_out):
        Trainer(max_epochs=20, gradient_clip_val=1.0).fit(module, data)

A model of transitions has one part that is trained, an ensemble one for each of its models, a causal model
with ``fitting="train"`` the encoders and the decoders. What has a solver (ranges, levels, mixtures) is solved
on the way, since a part may need those before it. After the loop the model is fitted, and can be saved. Its
weights are those at the end of each training: nothing restores those of the best epoch.
"""

from collections.abc import Iterator

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.surrogate import Surrogate, sample
from rehearsal_torch.training.module import TrainingData, TrainingModule
from rehearsal_torch.training.shared_members import unsolved


def lightning_parts(
    surrogate: Surrogate,
    table: Table,
    held_out: Table | None = None,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> Iterator[tuple[TrainingModule, TrainingData]]:
    """The trained parts of a surrogate, in the order in which they are to be trained, each before the next is
    asked for; the surrogate is fitted in place, on the CPU.

    Args:
        table: The observations, in the variables' units.
        held_out: Rows for held-out losses; None for none.
        learning_rate: Adam's alpha.
        seed: Determines the order of the rows, and the draws of a loss.
    """
    checks = None if held_out is None else surrogate.parts(held_out)
    surrogate.check_noise(None, None)
    for part, examples, check in unsolved(surrogate.parts(table), checks):
        yield (
            TrainingModule(part.train(), learning_rate, seed),
            TrainingData(examples, check, batch_size, seed),
        )
        part.zero_grad(set_to_none=True)
        part.eval().finish()
    surrogate.eval().check_noise(sample(table), None if held_out is None else sample(held_out))
