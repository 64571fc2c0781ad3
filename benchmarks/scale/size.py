"""How large the work of a row is: what is measured, and what a test of the rows can afford."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Size:
    """The sizes of all rows.

    Attributes:
        starts: Shards whose start is measured in a round.
        patients: Patients whose decisions are shared.
        cases: Cases of a table whose decisions are shared.
        rows: Rows of that table.
        epochs: Of the ensemble whose training is shared.
        cohort: Simulated patients of the cohort.
        fold_epochs: Of the flows of each fold.
        training_rows: Rows of the training that two processes share.
        training_epochs: Its epochs.
        batches: Its batch sizes.
        decided: Patients that each method decides for.
        worlds: Numbers of cases of a table, a command each, by world.
    """

    starts: int = 2
    patients: int = 8
    cases: int = 256
    rows: int = 1000
    epochs: int = 16
    cohort: int = 3000
    fold_epochs: int = 4
    training_rows: int = 20_480
    training_epochs: int = 4
    batches: tuple[int, ...] = (256, 4096)
    decided: dict[str, int] = field(default_factory=lambda: {"greedy": 40, "branch_and_bound": 40})
    worlds: dict[str, tuple[int, ...]] = field(
        default_factory=lambda: {"bank": (200, 1000), "bermuda": (100, 500)}
    )


FULL = Size()
SMALL = Size(
    starts=1,
    patients=4,
    cases=40,
    rows=200,
    epochs=1,
    cohort=60,
    fold_epochs=1,
    training_rows=512,
    training_epochs=2,
    batches=(64,),
    decided={"greedy": 2, "branch_and_bound": 2},
    worlds={"bank": (2, 4)},
)
