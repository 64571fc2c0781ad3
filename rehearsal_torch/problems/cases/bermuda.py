"""Bermuda reef: calcification under altered water chemistry.

Light, temperature and salinity are observed; dissolved inorganic carbon (DIC), total alkalinity (TA),
aragonite saturation (Omega), chlorophyll (Chla) and nutrients (Nut) may be set within [-1, 1]; net ecosystem
calcification (NEC) should lie in [0.5, 2], all in standardised units. Published simulations of this world
differ, and so do their best achievable probabilities:

    preset      noise                    intercept              context and roots              best of one
                variable
    qwz23       sd .1                    kept                   Light, Nut uniform; equations  .838
    aaai        variance .05             dropped                as qwz23                       .526
    icml        a variance per variable  dropped                independent normal             .838
    neurips24   as icml                  region shifted by it   independent normal             .838
    icml_code   variance .02             region shifted by it   independent normal             .684
    cme         variance .02             dropped                independent normal             .684
    fitted      residual sd              kept                   normal roots; equations        .281

"Independent" means that Temp is not computed from Light, nor Sal from Temp, in observations and contexts
alike; their edges stay in the graph, as in those papers.

The equations are regressions on measurements, shipped as figures (``python -m reproduction.bermuda`` fits
them again): every column is standardised over its own complete rows; each variable is then regressed by least
squares on its parents, over the rows in which all of them are measured. NEC is measured in 46 of the 95 rows,
so that its equation, and only its, has an intercept. Released codes divide by the standard deviation with n -
1 (Qin et al., 2023 and 2025) or n (Du et al., 2024; Qin et al., 2025b).

Source: Courtney et al. (2017) (measurements, Bermuda); Aglietti et al. (2020) and Qin et al. (2023) (graph);
Qin et al. (2023) and released code (qwz23); Qin et al. (2025) (aaai); Qin et al. (2025b) (icml; icml_code is
its released script); Du et al. (2024), released code (neurips24); Du et al. (2026), App. E.1 (cme: its noise
is inferred from its no-action value).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.linear_world import LinearEquations, LinearWorld
from rehearsal_torch.problems.cases.rehearsal_world import task_of
from rehearsal_torch.problems.world_size import SampleSize

PARENTS: dict[str, tuple[str, ...]] = {
    "Light": (),
    "Temp": ("Light",),
    "Sal": ("Temp",),
    "DIC": ("Sal",),
    "TA": ("Sal",),
    "Omega": ("Sal", "DIC", "Temp", "TA"),
    "Nut": (),
    "Chla": ("Nut", "Light", "Temp"),
    "pHsw": ("Sal", "DIC", "Temp", "TA"),
    "CO2": ("Sal", "TA", "DIC", "Temp"),
    "NEC": ("Nut", "Light", "pHsw", "Omega", "Chla", "CO2", "Temp"),
}
CONTEXT = ("Light", "Temp", "Sal")
ACTIONABLE = ("DIC", "TA", "Omega", "Chla", "Nut")
# Variances in the order Light, Temp, Sal, DIC, TA, Omega, Nut, Chla, pHsw, CO2, NEC.
_FIGURES = (1.2e-2, 1.6e-2, 1.6e-2, 1.0e-2, 2.0e-2, 1.6e-2, 1.6e-2, 1.8e-2, 1e-3, 1.6e-3, 1.5e-2)
ELEVEN = dict(zip(PARENTS, _FIGURES, strict=True))
# The edges whose direction observations do not determine; they form a tree.
TREE = (("Light", "Temp"), ("Temp", "Sal"), ("Sal", "DIC"), ("Sal", "TA"))


def bermuda_graphs() -> tuple[RehearsalGraph, ...]:
    """The true graph and the four others of its Markov equivalence class (Qin et al., 2023, Sec. 6): the
    tree's edges all point away from one of its five variables.
    """
    graphs = []
    for root in dict.fromkeys(name for edge in TREE for name in edge):
        parents = {
            child: [parent for parent in parents if (parent, child) not in TREE]
            for child, parents in PARENTS.items()
        }
        reached = [root]
        for name in reached:
            edges = [edge for edge in TREE if name in edge]
            neighbours = [neighbour for edge in edges for neighbour in edge if neighbour not in reached]
            for neighbour in neighbours:
                parents[neighbour].append(name)
            reached += neighbours
        graphs.append(RehearsalGraph.of(parents))
    return tuple(graphs)


@dataclass(frozen=True)
class Preset:
    """One published version of the Bermuda world.

    Attributes:
        fit: Which standardisation the equations come from: "n - 1" or "n".
        variances: Of each variable's noise; None for the residuals' (and 1 for roots).
        intercept: "kept", "dropped", or "shifted": subtracted from the region instead.
        uniform: Whether Light and Nut are uniform over their range in the measurements.
        independent: Whether the context variables are drawn independently.
    """

    fit: str
    variances: Mapping[str, float] | None
    intercept: str
    uniform: bool
    independent: bool


PRESETS = {
    "qwz23": Preset("n - 1", dict.fromkeys(PARENTS, 0.1**2), "kept", uniform=True, independent=False),
    "aaai": Preset("n - 1", dict.fromkeys(PARENTS, 0.05), "dropped", uniform=True, independent=False),
    "icml": Preset("n", ELEVEN, "dropped", uniform=False, independent=True),
    "neurips24": Preset("n", ELEVEN, "shifted", uniform=False, independent=True),
    "icml_code": Preset("n", dict.fromkeys(PARENTS, 0.02), "shifted", uniform=False, independent=True),
    "cme": Preset("n", dict.fromkeys(PARENTS, 0.02), "dropped", uniform=False, independent=True),
    "fitted": Preset("n - 1", None, "kept", uniform=False, independent=False),
}


class Bermuda(LinearWorld):
    """The Bermuda world.

    Args:
        preset: One of `PRESETS`.
        candidates: Sets of variables that may be set jointly; None for each of the five by itself.
    """

    def __init__(
        self,
        preset: str = "cme",
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        if preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}: choose one of {', '.join(PRESETS)}")
        version, fit = PRESETS[preset], figures()[PRESETS[preset].fit]
        intercept = fit["intercepts"]["NEC"]
        shift = -intercept if version.intercept == "shifted" else 0.0
        region = {"NEC": (0.5 + shift, 2.0 + shift)}
        task = task_of(PARENTS, CONTEXT, dict.fromkeys(ACTIONABLE, (-1.0, 1.0)), region, candidates or ())
        independent = CONTEXT if version.independent else ()
        ranges = fit["ranges"] if version.uniform else {}
        system = LinearEquations.of(
            {child: weights for child, weights in fit["weights"].items() if child not in independent},
            version.variances or {name: fit["residuals"].get(name, 1.0) ** 2 for name in PARENTS},
            names=task.graph.names,
            intercepts={"NEC": intercept} if version.intercept == "kept" else {},
            uniform={name: tuple(bounds) for name, bounds in ranges.items()},
        )
        self.hypotheses = bermuda_graphs()
        source = f"Bermuda, preset {preset}: {figures()['source']}"
        super().__init__(task, system, source, size, seed, validation)


def figures() -> dict[str, Any]:
    """The shipped equations: ``source``, ``n - 1`` and ``n``."""
    shipped = files("rehearsal_torch.problems.cases").joinpath("bermuda.json")
    return dict(json.loads(shipped.read_text(encoding="utf-8")))
