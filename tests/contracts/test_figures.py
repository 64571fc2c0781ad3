"""What all figures guarantee: no text is cut off, and no labels lie on each other, also for long names and
for numbers that lie close together."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from rehearsal_torch.reporting import claim_plot, decision_plot, figures
from rehearsal_torch.reporting.decision_frame import decision_frame, quantity
from rehearsal_torch.reporting.figures import (
    claimed_and_true,
    courses,
    effort,
    graph,
    improvement_distribution,
    lipschitz_grid,
    online_panels,
    outcomes,
    overturning_strength,
    probability_claims,
    recovery_panels,
    surrogate_panels,
    training_curve,
    trial_panels,
    true_probability,
    truth_errors,
)
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.reporting.wording import Dose, Wording
from tests.conftest import decision
from tests.reporting.figures.test_graph import GRAPH, PARTS
from tests.reporting.figures.test_overturning_strength import line
from tests.reporting.figures.test_probability_claims import row as claim_row
from tests.reporting.figures.test_surrogate_panels import curves
from tests.reporting.figures.test_true_probability import decided as scored
from tests.reporting.test_claim_plot import rows as claim_rows
from tests.reporting.test_decision_plot import ACTED, NONE
from tests.toys import trial_lines
from tests.toys.laid_out import faults
from tests.toys.online_rows import rows as online_rows

LONG = "branch_and_bound, at most 3 changes"
MACHINES = Wording(
    "risk and cost",
    -1.0,
    step="one week",
    doses=(
        Dose("S", "service", "", ("none", "minor", "major")),
        Dose("L", "load of the machine", "", ("full", "reduced")),
        Dose("C", "coolant", "litres per hour"),
    ),
    subject="machine",
    subjects="machines",
    episode="machine",
    episodes="machines",
)


def episodes(count=6):
    """Decisions about episodes with three coordinates of actions, some of them unchanged."""
    made = []
    for place in range(count):
        one = decision(place % 5)
        doses = [[float(time % 3), float(time % 2), 0.5 * time] for time in range(4)]
        other = [list(row) for row in doses]
        if place % 3:
            other[1][0], other[2][2] = 0.0, 7.5
        one["trajectory"] |= {"observed_doses": doses, "doses": other}
        one["identity"] = f"machine-{place:04d}"
        made.append(one | {"seconds": 0.31 + 0.05 * place})
    return made


def truth_rows():
    return [
        {"sequence": sequence, "quantity": "rmse", "feature": feature, "estimator": estimator, "value": value}
        for sequence in ("recommended", "observed")
        for feature in ("SOFA", "mechanical ventilation", "input_4hourly", "temperature of the bearing")
        for estimator, value in (("learnt", "2.5"), ("observed trajectory", "8"), ("fresh noise", "4"))
    ]


def trial_rows(step=1e-3):
    """Regrets that hardly change, so that a logarithmic axis spans little."""
    rows = trial_lines.rows()
    return [row | {"recommended_expected": 3.0 + step * place} for place, row in enumerate(rows)]


def recovered():
    return [
        {"node": node, "part": part, "quantity": "noise", "value": f"{value}", "true": f"{value / 30}"}
        for node in ("X", "temperature", "Y")
        for part in ("fitted", "held out")
        for value in (-31.5, 0.2, 45.0)
    ]


def losses(parts):
    return {
        f"models.{part}.mechanism.blind/{name}": [(epoch, 1e4 / (1 + epoch)) for epoch in range(15)]
        for part in range(parts)
        for name in ("train_loss", "held_out_loss")
    }


def decided(count):
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    lines = [(ACTED if place % 3 else NONE) | {"identity": f"patient {place}"} for place in range(count)]
    decision_plot.draw(figure.subplots(), decision_frame(lines), quantity(lines))
    return figure


def decided_in_panels(count):
    lines = [(ACTED if place % 3 else NONE) | {"identity": f"patient {place}"} for place in range(count)]
    return decision_plot.in_panels(decision_frame(lines), quantity(lines))


def claims(actions, cases=3):
    """Curves over several actions with long names, with present values, in several cases."""
    along = ("diastolic blood pressure", "pupils per teacher", "smoker", "price of the others")
    made = [
        claim_rows(f"{case} of the ward on the third floor", name, 0.1 * place, present=0.2)
        for case in range(cases)
        for place, name in enumerate(along[:actions])
    ]
    return claim_plot.draw([row for part in made for row in part], {along[0]: "millimetres of mercury"})


# Module to the figures that it is tried with.
MADE = {
    claimed_and_true: lambda: [claimed_and_true.draw({LONG: ([0.1, 0.9], [-2.75, 0.5])})],
    courses: lambda: [
        courses.draw(courses.chosen(episodes()), 6, MACHINES),
        courses.draw(courses.chosen(episodes(1)), 1, MACHINES),
        courses.draw(courses.chosen([decision(0), decision(1)]), 2, Wording("SOFA", -1.0, "points", "4 h")),
    ],
    effort: lambda: [
        effort.draw({LONG: episodes()}, MACHINES),
        effort.draw({LONG: episodes(2), "greedy_changes, at most 3 changes": episodes(3)}),
    ],
    graph: lambda: [graph.graph_figure(GRAPH, **PARTS)],
    improvement_distribution: lambda: [
        improvement_distribution.draw({LONG: [0.0, 0.12, 8.75]}, MACHINES),
        improvement_distribution.draw({LONG: [0.0, 0.12], "greedy_changes, at most 3 changes": [0.3, 0.4]}),
    ],
    lipschitz_grid: lambda: [lipschitz_grid.draw({(0.1, 0.01): 123.4, (1.0, 0.01): 6.04, (1.0, 0.5): 2.0})],
    online_panels: lambda: [online_panels.draw({"ride_hailing": {"qwz23_online": online_rows()}})],
    outcomes: lambda: [outcomes.draw({LONG: episodes()}, MACHINES)],
    overturning_strength: lambda: [
        overturning_strength.draw({"cme_stack": [line("1", 0.4, 1.0, 1.94)]}),
        overturning_strength.draw({"cme": [line("1", 0.8, 2.5), line("2", 0.8, 40.0)]}),
    ],
    probability_claims: lambda: [probability_claims.draw({"cme_stack": [claim_row(0.6, 0.5, 0.4, 0.7)]})],
    recovery_panels: lambda: list(recovery_panels.figures(recovered()).values()),
    surrogate_panels: lambda: list(surrogate_panels.figures(curves(("a", "b", "pressure"))).values()),
    training_curve: lambda: [
        training_curve.draw(losses(count), training_curve.trained_parts(losses(count)), MACHINES)
        for count in (1, 3)
    ],
    trial_panels: lambda: [
        trial_panels.draw({"dropwave": {"excbo": trial_rows()}}),
        trial_panels.draw({"dropwave": {"excbo": trial_rows(2.0), "ucb": trial_rows(0.5)}}),
    ],
    true_probability: lambda: [
        true_probability.draw({"cme_stack": [scored(0.6, 0.9, 0.2), scored(0.1, 0.5, 0.1, acted=False)]})
    ],
    truth_errors: lambda: [truth_errors.draw(truth_rows())],
}
# Figures of other rooms.
BESIDE = {
    claim_plot: lambda: [claims(1, 1), claims(1), claims(2), claims(4)],
    decision_plot: lambda: [decided(3), decided(8), decided(60), decided_in_panels(40)],
}
# Modules that write what `graph` draws.
OTHERS = {"learnt_graphs", "run_figures"}


def test_every_module_of_figures_is_looked_at():
    folder = Path(next(iter(figures.__path__)))
    every = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {module.__name__.rpartition(".")[2] for module in MADE} | OTHERS == every


@pytest.mark.slow
@pytest.mark.parametrize("module", MADE | BESIDE, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_text_is_cut_off_and_no_labels_lie_on_each_other(module):
    with drawing():
        found = {place: faults(figure) for place, figure in enumerate((MADE | BESIDE)[module]())}
    assert found == {place: [] for place in found}
    assert found
