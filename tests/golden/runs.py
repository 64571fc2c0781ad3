"""The runs that a golden folder holds: small ones that together take every decision, world and surrogate.

A run is a script with arguments, as somebody types them. Values that are swept make one process out of many
jobs, which saves the seconds that a process takes to start. Arguments are written in the words of the code as
it was first recorded; for code with other words they are translated (see `Names.typed`), so that the names of
runs stay the same.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

# Few scenarios, and more seconds than a program needs: what a clock ends depends on the machine's speed.
SCENARIOS = ("objective.seek=200", "objective.choose=200", "objective.judge=100")
UNHURRIED = ("search.seconds=600",)
ACQUIRING = ("search.raw=32", "search.starts=6", "search.steps=10")
PUBLISHED = ("search.starts=4", "search.steps=20")
FEW = ("dataset.rows=60", "dataset.contexts=2")
PATIENTS = (
    "+experiment=sepsis",
    "reward=linear",
    "dataset.patients=80",
    "surrogate.mechanism.hidden=8",
    "trainer.max_epochs=2",
)
# Keys that only the swept decisions have are added, for the configuration that a sweep begins with.
OPTIMISTIC = ("++search.restarts=12", "++search.kept=2", "++search.glance=3", "search.steps=10")
OPTIMISTIC = (*OPTIMISTIC, "++search.draws=8", "++search.judged=50")

REHEARSED = (
    "bank",
    "bermuda",
    "lin_syn1",
    "manage",
    "market",
    "nhanes",
    "non_syn1",
    "non_syn2",
    "ride_hailing",
    "two_stores",
)
TRIED = (
    "ackley",
    "alpine2",
    "alpine2_non_dgm",
    "alpine2_unit",
    "chemostat",
    "dropwave",
    "dropwave_unit",
    "epidemic",
)
TRIED = (*TRIED, "pooled_testing", "rosenbrock", "branin", "hartmann", "levy")


@dataclass(frozen=True)
class Run:
    """A script and what is typed behind it.

    Attributes:
        name: What the run is called.
        script: The script's name in the checkout's ``scripts``.
        typed: Arguments; ``{root}`` stands for the checkout, and results go to the folder ``run``.
        swept: Override key to its values, for a sweep; the last key varies fastest.
        inputs: File name to text, written into the working folder before the run.
    """

    name: str
    script: str
    typed: tuple[str, ...]
    swept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def jobs(self) -> list[str]:
        """The names of a sweep's jobs, in the order of its numbered folders; none where nothing is swept."""
        if not self.swept:
            return []
        return [".".join((self.name, *values)) for values in product(*self.swept.values())]


def _decided(
    name: str,
    *typed: str,
    inputs: Mapping[str, str] | None = None,
    **swept: tuple[str, ...],
) -> Run:
    """A run of decide.py, or a sweep of it."""
    told = typed if swept else (*typed, "workers=1")
    return Run(name, "decide", (*told, "out=run"), swept, inputs or {})


def _rehearsal() -> list[Run]:
    """Alterations decided once, from a table of few rows."""
    small = ("+experiment=auf", *FEW)
    ensemble = ("members=2", "features=60", "directed_by=40", "chosen_by=40", "iterations=5")
    kernels = [f"surrogate.estimator.{text}" for text in ensemble]
    printed = ("dataset=bank", "decision=cme_published")
    fewer = ("decision=grad_rh", "trainer.max_epochs=3")
    drawn = (
        "objective.draws=50",
        "objective.fresh=100",
        "search.looked=8",
        "search.glance=20",
        "search.steps=10",
    )
    ranked = (*small, *PUBLISHED, "++surrogate.estimator.rank=20")
    return [
        _decided("rehearsal", *small, dataset=REHEARSED, decision=("care",)),
        _decided("linear", *small, dataset=("market",), decision=("none", "micns", "micns_online")),
        _decided("kernel", *small, *kernels, *PUBLISHED, "decision=cme", dataset=("bank", "bermuda")),
        _decided("kernel_published", *small, *PUBLISHED, "decision=cme_published", dataset=("non_syn1",)),
        _decided("kernel_gradients", *ranked, *printed, surrogate=("nested_ridge_cg",)),
        _decided("kernel_ranked", *ranked, dataset=("bank",), decision=("cme_nystrom", "cme_fourier")),
        _decided("flow", *small, *fewer, *drawn, dataset=("bank", "non_syn2")),
        _decided(
            "offline",
            *small,
            *SCENARIOS,
            *UNHURRIED,
            "surrogate.draws=600",
            "decision=qwz23_offline",
            dataset=("ride_hailing", "bank"),
        ),
    ]


def _online() -> list[Run]:
    """Rounds that learn from each other."""
    small = ("limit=4", *SCENARIOS, "objective.teach=50", "certificate.n=100")
    searched = (
        "search.pool=8",
        "search.probes=2",
        "search.iterations=2",
        "search.programs=2",
        "search.scenarios=50",
        *UNHURRIED,
    )
    informative = ("qwz23", "qwz23_online", "qwz23_published")
    return [
        _decided("ride_hailing", "+experiment=ride_hailing", *small, *searched, decision=informative),
        _decided("bermuda_online", "+experiment=bermuda_online", *small, *searched),
        _decided(
            "two_stores",
            "+experiment=two_stores",
            "limit=4",
            *SCENARIOS,
            *UNHURRIED,
            "dataset.change=2",
            "surrogate.forgetting=0.9",
        ),
        _decided(
            "drift",
            "+experiment=auf",
            "dataset=market",
            "dataset.drift=true",
            "learn=true",
            *FEW,
            "dataset.contexts=4",
            "decision=micns_online",
        ),
    ]


def _trials() -> list[Run]:
    """Experiments on a causal system, each learnt from."""
    looked = ("objective.draws=8", "objective.judged=32")
    bounded = (*ACQUIRING, *looked, "objective.plausible=4")
    graphs = ("decision=excbo", *bounded)
    small = ("+experiment=cbo", "limit=4")
    return [
        _decided("trials", "+experiment=cbo", "limit=2", *graphs, dataset=TRIED),
        _decided("bound", *small, *bounded, decision=("excbo", "excbo_paper", "ucb")),
        _decided("improvement", *small, *bounded, "++objective.averaged=2", decision=("eicf", "eifn")),
        _decided("optimism", *small, *looked, *OPTIMISTIC, decision=("mcbo", "mcbo_released")),
        _decided("spread", *small, *looked, decision=("random_actions", "sobol_actions")),
        Run(
            "recovery",
            "train",
            (
                "+experiment=dropwave_recovery",
                "dataset.initial=40",
                "trainer.max_epochs=10",
                "trainer.progress=false",
                "out=run",
            ),
        ),
    ]


def _episodes() -> list[Run]:
    """The best changes of a patient's treatment, under the project's checkpoint and models trained anew."""
    kept = "checkpoint={root}/tests/fixtures/sepsis_published"
    learnt = ("+experiment=sepsis", kept, "reward=linear", "dataset.patients=80", "limit=3")
    quiet = "trainer.progress=false"
    grid = {
        "surrogate.mechanism.location_constant": ("1.0", "null"),
        "surrogate.mechanism.scale_constant": ("0.1", "null"),
    }
    folds = ("trainer.max_epochs=1", "surrogate.mechanism.hidden=8", "dataset.patients=80", "folds=2")
    return [
        _decided("episodes", *learnt, decision=("branch_and_bound", "greedy", "random", "top_k")),
        _decided(
            "astar",
            *learnt,
            "dataset.horizon=10",
            "search.anchors.samples=50",
            "decision=astar",
            "objective.changes=2",
            search=("astar", "astar_published"),
        ),
        _decided("exhaustive", *learnt, "decision=exhaustive", "objective.changes=1"),
        _decided("shards", *learnt[:-1], "limit=4", "decision=greedy", "shards=2", shard=("0", "1")),
        Run(
            "transition",
            "train",
            (*PATIENTS, quiet, "preview=2", "out=run"),
            {"surrogate": ("transition_published", "unconstrained"), "decision": ("greedy",)},
        ),
        Run(
            "sparse",
            "train",
            (*PATIENTS, quiet, "preview=2", "out=run", "reward=sofa_score"),
            {"surrogate": ("transition",), "decision": ("greedy",)},
        ),
        Run(
            "ensemble",
            "train",
            (
                "+experiment=sepsis",
                "dataset.patients=80",
                "surrogate.count=2",
                "surrogate.member.mechanism.hidden=8",
                "trainer.max_epochs=2",
                quiet,
                "preview=2",
                "out=run",
                "decision=greedy",
            ),
        ),
        Run("lipschitz_grid", "cross_validate", ("+experiment=lipschitz_grid", *folds, "out=run"), grid),
    ]


def _own() -> list[Run]:
    """Tables of one's own, which do not depend on the code."""
    graph = "graph: {parents: {z: [x, u], y: [x, u, z]}}\n"
    rates = f"{graph}context: [x]\nbox: {{z: [0, 1]}}\nregion: {{y: [0.4, 1.1]}}\n"
    yields = "graph: {parents: {X: [a0, a1], Y: [X]}}\nactions: {a0: [0, 1], a1: [0, 1]}\nreward: Y\n"
    table = {"table.csv": _rates(60), "cases.csv": "who,x\nann,0.3\nbob,0.6\n", "task.yaml": rates}
    typed = (
        "+experiment=own_table",
        "path=table.csv",
        "dataset.task=task.yaml",
        "dataset.contexts=cases.csv",
        "dataset.identity=who",
    )
    system = ("+experiment=own_system", "path=experiments.csv", "dataset.task=task.yaml", *ACQUIRING)
    learning = ("data=table.csv", "context=x", "outcomes=y", "alterable=z", "resamples=5", "out=run")
    return [
        _decided("own_table", *typed, "decision=care", inputs=table),
        _decided("own_system", *system, inputs={"experiments.csv": _yields(8), "task.yaml": yields}),
        _decided("own_system_begun", *system, inputs={"experiments.csv": _yields(3), "task.yaml": yields}),
        Run("graphs", "learn_graph", learning, inputs={"table.csv": _rates(300)}),
    ]


def _studies() -> list[Run]:
    """About ten rows of each study of `docs/results`."""
    one = ("--workers", "1", "--out", "run")
    acquiring = ("--set", "search.raw=32", "search.starts=6", "search.steps=10")
    quick = (
        "--set",
        "trainer.max_epochs=1",
        "surrogate.mechanism.hidden=6",
        "dataset.patients=60",
        "surrogate.levels=3",
    )
    methods = ("none", "cme_published", "qwz23_offline", "micns", "care")
    auf = (
        "--stages",
        "table1",
        "--worlds",
        "bank",
        "--methods",
        *methods,
        "--seeds",
        "0",
        "--contexts",
        "2",
        *one,
        "--set",
        "dataset.rows=60",
    )
    cbo = (
        "--stages",
        "main",
        "--settings",
        "dropwave lambda=1 sigma=0.1",
        "--methods",
        "ucb",
        "excbo",
        "--seeds",
        "0",
        "--rounds",
        "5",
        *one,
        *acquiring,
    )
    qwz23 = (
        "--stages",
        "rounds",
        "--worlds",
        "ride_hailing",
        "--methods",
        "qwz23",
        "qwz23_success",
        "causal",
        "none",
    )
    played = (
        "--stages",
        "rl",
        "--worlds",
        "ride_hailing",
        "--agents",
        "uniform",
        "--repeats",
        "2",
        "--rounds",
        "5",
        *one,
    )
    return [
        Run("study.auf", "reproduce_auf", auf),
        Run("study.cbo", "reproduce_cbo", cbo),
        Run(
            "study.qwz23",
            "reproduce_qwz23",
            (*qwz23, "--repeats", "1", "--rounds", "3", "--scenarios", "200", *one),
        ),
        Run("study.qwz23_rl", "reproduce_qwz23", played),
        Run(
            "study.sepsis",
            "reproduce_sepsis",
            (
                "--stages",
                "lipschitz",
                "truth",
                "--episodes",
                "1",
                "--limit-seconds",
                "600",
                "--cache",
                "run/cache",
                *one,
                *quick,
            ),
        ),
    ]


def _rates(rows: int) -> str:
    """A table with context x, hidden-free cause u, alterable z and outcome y."""
    drawn, lines = random.Random(0), ["x,u,z,y"]
    for _ in range(rows):
        x, u = drawn.random(), drawn.random()
        z = 0.5 * x + 0.3 * u + 0.2 * drawn.random()
        lines.append(",".join(map(repr, (x, u, z, 0.4 * x + 0.2 * u + 0.6 * z + 0.1 * drawn.gauss(0, 1)))))
    return "\n".join(lines) + "\n"


def _yields(rows: int) -> str:
    """Experiments with actions a0 and a1, a node X and the reward Y."""
    drawn, lines = random.Random(1), ["a0,a1,X,Y"]
    for _ in range(rows):
        first, second = drawn.random(), drawn.random()
        x = first + second + 0.05 * drawn.gauss(0, 1)
        lines.append(",".join(map(repr, (first, second, x, -((x - 1.2) ** 2) + 0.02 * drawn.gauss(0, 1)))))
    return "\n".join(lines) + "\n"


RUNS: tuple[Run, ...] = (*_rehearsal(), *_online(), *_trials(), *_episodes(), *_own(), *_studies())
