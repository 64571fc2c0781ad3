"""What the study of causal Bayesian optimisation runs: methods, on problems in the settings of the paper's
figures, seed by seed.

A repeat is what ``scripts/decide.py +experiment=cbo dataset=... decision=... seed=...`` does, with the
overrides it lists. Every problem has a main setting; the others are the panels of the paper's figures.

Source: Ren et al. (2025), Fig. 4-7, 10, 12-14 and Tab. 2-3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

METHODS = {
    "ucb": ("decision=ucb",),
    "eicf": ("decision=eicf",),
    "eifn": ("decision=eifn",),
    "mcbo": ("decision=mcbo",),
    "excbo": ("decision=excbo",),
    "excbo_paper": ("decision=excbo_paper",),
    "random": ("decision=random_actions",),
    "sobol": ("decision=sobol_actions",),
    "mcbo_released": ("decision=mcbo_released",),
}
COMPARED = ("ucb", "eicf", "eifn", "mcbo", "excbo", "excbo_paper", "random")
# What is changed of the default, a line of the ablation table each.
ABLATIONS = {
    "excbo, phi homoskedastic": ("decision=excbo", "surrogate.phi=homoskedastic"),
    "excbo, phi heteroskedastic": ("decision=excbo", "surrogate.phi=heteroskedastic"),
    "excbo, kernel rbf": ("decision=excbo", "surrogate.kernel=rbf"),
    "excbo, kernel matern52": ("decision=excbo", "surrogate.kernel=matern52"),
    "excbo, decoder gp": ("decision=excbo", "surrogate.decoder=gp"),
    "excbo, 1 component": ("decision=excbo", "surrogate.components=1"),
    "excbo, 3 components": ("decision=excbo", "surrogate.components=3"),
    "excbo, 4 components": ("decision=excbo", "surrogate.components=4"),
    "excbo, components by bic": ("decision=excbo", "surrogate.components=bic"),
    "excbo, propagate mean": ("decision=excbo", "objective.propagate=mean"),
    "excbo, propagate sample": ("decision=excbo", "objective.propagate=sample"),
    "excbo, propagate linear": ("decision=excbo", "objective.propagate=linear"),
    "excbo, propagate reached": ("decision=excbo", "objective.propagate=reached"),
    "excbo, propagate separate": ("decision=excbo", "objective.propagate=separate"),
    "excbo, beta 0.5": ("decision=excbo", "objective.beta=0.5"),
    "excbo, beta 1": ("decision=excbo", "objective.beta=1"),
    "excbo, beta 4": ("decision=excbo", "objective.beta=4"),
}
# A baseline with the default's kernel, so that it can be told what the noise's law brings.
SWAPPED = {"mcbo, kernel learnt": ("decision=mcbo", "surrogate.kernel=learnt")}
VARIANTS = {**METHODS, **ABLATIONS, **SWAPPED}


@dataclass(frozen=True)
class Setting:
    """A problem in one setting.

    Attributes:
        problem: The world's name in ``conf/dataset``.
        name: What distinguishes the setting.
        overrides: What makes it so.
        figure: Which figure or table of the paper it is a panel of; empty for none.
        main: Whether every method is run on it with four seeds.
        rounds: T.
    """

    problem: str
    name: str
    overrides: tuple[str, ...]
    figure: str
    main: bool = False
    rounds: int = 100


def _settings() -> list[Setting]:
    found = []
    for sigma in ("0.1", "0.3"):
        for scale in ("1", "2", "3"):
            told = (f"dataset.sigma={sigma}", f"dataset.scale={scale}")
            found.append(
                Setting(
                    "dropwave",
                    f"lambda={scale} sigma={sigma}",
                    told,
                    "Fig. 4",
                    main=(sigma, scale) == ("0.1", "1"),
                )
            )
    for scale in ("0.3", "1"):
        for sigma in ("0.05", "0.2", "0.4"):
            # The mean of the unbounded mechanism cannot be told there.
            mechanism = "dgm_bounded" if (scale, sigma) == ("1", "0.4") else "dgm"
            name, main = f"{mechanism} lambda={scale} sigma={sigma}", (sigma, scale) == ("0.2", "0.3")
            found.append(Setting("alpine2", name, _alpine(mechanism, sigma, scale), "Fig. 5", main=main))
    found += [
        Setting("epidemic", f"sigma={sigma}", (f"dataset.sigma={sigma}",), "Fig. 6", main=sigma == "0.1")
        for sigma in ("0.1", "0.3")
    ]
    found.append(Setting("chemostat", "ode", ("dataset.scm=ode",), "Fig. 7", main=True))
    found += [
        Setting(
            "alpine2", f"non_dgm sigma={sigma}", _alpine("non_dgm", sigma), "Fig. 10", main=sigma == "0.1"
        )
        for sigma in ("0.05", "0.1", "0.2")
    ]
    pooled = (("0.2", True), ("0.4", False))
    found += [
        Setting(
            "pooled_testing", f"sigma={sigma}", (f"dataset.sigma={sigma}",), "Fig. 12", main=main, rounds=140
        )
        for sigma, main in pooled
    ]
    three, wave = "dataset.modes=3", ("dataset.sigma=0.1", "dataset.scale=1")
    return [
        *found,
        Setting("dropwave", "lambda=1 sigma=0.1 three modes", (*wave, three), "Fig. 13"),
        Setting(
            "alpine2",
            "dgm_bounded lambda=1 sigma=0.4 three modes",
            (*_alpine("dgm_bounded", "0.4"), three),
            "Fig. 13",
        ),
        Setting("alpine2", "non_dgm sigma=0.1 three modes", (*_alpine("non_dgm", "0.1"), three), "Fig. 13"),
        Setting("dropwave", "unit", (*wave, "dataset.fed_on=false", "dataset.modes=1"), "Tab. 2", main=True),
        Setting("alpine2", "unit", (*_alpine("anm", "1"), "dataset.modes=1"), "Tab. 3", main=True),
        Setting("rosenbrock", "sigma=0.1", ("dataset.sigma=0.1",), "", main=True),
        Setting("ackley", "sigma=0.1", ("dataset.sigma=0.1",), ""),
    ]


def _alpine(mechanism: str, sigma: str, scale: str = "1") -> tuple[str, ...]:
    return (f"dataset.mechanism={mechanism}", f"dataset.sigma={sigma}", f"dataset.scale={scale}")


SETTINGS = {f"{each.problem} {each.name}": each for each in _settings()}
MAIN = tuple(name for name, each in SETTINGS.items() if each.main)
# Fig. 14 compares numbers of components on these.
COMPONENTS = ("dropwave lambda=1 sigma=0.1", "alpine2 non_dgm sigma=0.1", "chemostat ode")
COUNTED = ("excbo, 1 component", "excbo", "excbo, 3 components", "excbo, 4 components")
# Whether a method owes its place to the kernel, where a node has a kink.
KINKED = ("dropwave lambda=1 sigma=0.1", "dropwave unit")
KERNELS = ("excbo", "excbo, kernel rbf", "mcbo", "mcbo, kernel learnt")
# What may be the default: all that did better than it in the ablation, and `separate`, which came later.
# Compared on seeds of their own, by which nothing was chosen before but the form of `separate`.
CONTENDERS = (
    "excbo",
    "excbo, propagate sample",
    "excbo, propagate linear",
    "excbo, propagate separate",
    "excbo, components by bic",
    "excbo, 4 components",
    "excbo, decoder gp",
)
SEEDS, FRESH_SEEDS = (0, 1, 2, 3), (200, 201, 202, 203)


@dataclass(frozen=True)
class Trial:
    """A method on a problem, once through all rounds.

    Attributes:
        problem: The world's name.
        setting: What else distinguishes the world.
        method: The method's name in the study.
        seed: Of world and method.
        overrides: What makes it so, as one would type it.
    """

    problem: str
    setting: str
    method: str
    seed: int
    overrides: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The texts that the trial is known by."""
        return (self.problem, self.setting, self.method, str(self.seed))


def trials(
    settings: Sequence[str], methods: Sequence[str], seeds: Sequence[int], rounds: int | None = None
) -> list[Trial]:
    """The study's repeats, seed by seed, so that one that ends early has as many of them everywhere.

    Args:
        settings: Names of `SETTINGS`.
        methods: Names of `VARIANTS`.
        seeds: Which seeds.
        rounds: T; None for that of each setting.
    """
    found = []
    for seed in seeds:
        for name in settings:
            one = SETTINGS[name]
            for method in methods:
                length = one.rounds if rounds is None else min(rounds, one.rounds)
                told = (
                    "+experiment=cbo",
                    f"dataset={one.problem}",
                    *one.overrides,
                    f"dataset.rounds={length}",
                    *VARIANTS[method],
                    f"seed={seed}",
                )
                found.append(Trial(one.problem, one.name, method, seed, told))
    return found
