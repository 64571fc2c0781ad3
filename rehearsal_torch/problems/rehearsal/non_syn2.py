"""Non-Syn2: nonlinear synthetic data in which the sequential adjustment formula is needed.

    X1, X2 ~ U(0, 1),
    A1 = X1 - X2 + .2 X1^2 - .2 X2^2 + .1 X1 X2 + N(0, .1),
    U1 = -X1 + 2 X2 + 3 A1 - .2 X1^2 + .4 X2^2 + .6 A1^2 + .1 (X1 X2 + X1 A1 + X2 A1) + N(0, .1),
    U2 = -X1 + 4 U1 - .2 X1^2 + .8 U1^2 + .1 X1 U1 + N(0, .1),
    A2 = -X1 - .5 X2 + .3 U1 - .2 X1^2 - .1 X2^2 + .06 U1^2 + .1 (X1 X2 + X1 U1 + X2 U1) + N(0, .1),
    Y1 = .5 + (.2 (X1 + X1^2) - 5 (U1 + U1^2) - (U2 + U2^2) + 5 (A2 + A2^2)) / 60 + .5 sum_{i<j} p_i p_j +
    N(0, .1),

the sum over pairs of Y1's parents X1, U1, U2, A2, outside the bracket as printed. A1 and A2 may be set within
[-1, 1]; the desired region is Y1 in [.9, 1.5]. U1 lies between the actions: it transmits A1's influence and
confounds A2's, so that no single adjustment is valid for both and the sequential formula is needed.

With `confounding` = Gamma > 1 a hidden common cause h = +-1 of strength Gamma raises A2 and adds .15 h to Y1
(`problems.rehearsal.hidden_cause`).

Source: Du et al. (2026), App. E.2 and Fig. 8; the hidden cause is ours.
"""

from collections.abc import Mapping, Sequence

from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.additive_noise_world import CurvedWorld, Normal, Uniform, std
from rehearsal_torch.problems.rehearsal.hidden_cause import HiddenCause
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {
    "X1": (),
    "X2": (),
    "A1": ("X1", "X2"),
    "U1": ("X1", "X2", "A1"),
    "U2": ("X1", "U1"),
    "A2": ("X1", "X2", "U1"),
    "Y1": ("X1", "U1", "U2", "A2"),
}


class NonSyn2(CurvedWorld):
    """Non-Syn2.

    Args:
        reading: How N(0, 0.1) is read: "std" or "variance".
        candidates: Sets of variables that may be set jointly; None for {A1, A2}.
        confounding: Gamma, the strength of a hidden common cause of A2 and Y1; 1 is none.
    """

    def __init__(
        self,
        reading: str = "std",
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        confounding: float = 1.0,
    ) -> None:
        self.reading = reading
        hidden = HiddenCause.of_strength("A2", {"Y1": 0.15}, confounding)
        box = Box.of({"A1": (-1.0, 1.0), "A2": (-1.0, 1.0)})
        sets = tuple(tuple(names) for names in candidates or (box.names,))
        task = RehearsalTask(
            RehearsalGraph.of(PARENTS), ("X1", "X2"), box, Polytope.of({"Y1": (0.9, 1.5)}), sets
        )
        distributions = {
            name: Uniform(0.0, 1.0) if name in task.context else Normal(std(0.1, reading)) for name in PARENTS
        }
        super().__init__(task, distributions, size, seed, validation, hidden)

    def source(self) -> str:
        """The paper and how its noise is read."""
        return f"Du et al. (2026), App. E.2, nonlinear synthetic data 2, with noise read as {self.reading}"

    def mean(self, name: str, values: Mapping[str, Tensor]) -> Tensor | float:
        """The structural equations above."""
        if name in self.task.context:
            return 0.0
        x, z = values["X1"], values["X2"]
        if name == "A1":
            return x - z + 0.2 * x * x - 0.2 * z * z + 0.1 * x * z
        if name == "U1":
            a = values["A1"]
            return (
                2.0 * z
                - x
                + 3.0 * a
                - 0.2 * x * x
                + 0.4 * z * z
                + 0.6 * a * a
                + 0.1 * (x * z + x * a + z * a)
            )
        u = values["U1"]
        if name == "U2":
            return 4.0 * u - x - 0.2 * x * x + 0.8 * u * u + 0.1 * x * u
        if name == "A2":
            return (
                0.3 * u
                - x
                - 0.5 * z
                - 0.2 * x * x
                - 0.1 * z * z
                + 0.06 * u * u
                + 0.1 * (x * z + x * u + z * u)
            )
        v, b = values["U2"], values["A2"]
        # The sum over pairs, with as few products as possible.
        pairs = x * (u + v + b) + u * (v + b) + v * b
        return (
            0.5 + (0.2 * (x + x * x) - 5.0 * (u + u * u) - (v + v * v) + 5.0 * (b + b * b)) / 60 + 0.5 * pairs
        )
