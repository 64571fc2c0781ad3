"""What all figures guarantee: no text is cut off, and no labels lie on each other, also for long names and
for numbers that lie close together."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from rehearsal_torch.reporting import figures
from rehearsal_torch.reporting.decision_frame import decision_frame, quantity
from rehearsal_torch.reporting.figure_style import drawing
from rehearsal_torch.reporting.figures import (
    case_figures,
    graph_figure,
    model_figures,
    round_figures,
    sequence_figures,
)
from rehearsal_torch.reporting.labels import Dose, Wording
from tests.conftest import decision
from tests.reporting.figures.test_case_figures import ACTED, NONE, claim_row, line, scored
from tests.reporting.figures.test_case_figures import rows as claim_rows
from tests.reporting.figures.test_graph_figure import GRAPH, PARTS
from tests.reporting.figures.test_model_figures import curves
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


def units(count=6):
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
    case_figures.draw_decisions_into(figure.subplots(), decision_frame(lines), quantity(lines))
    return figure


def answers():
    ends = ((0.0, 1.0), (0.3, 0.31), (1.0, 0.02))
    names, label = ("before", "after"), "Estimated chance of a desired outcome (%), on average over all cases"
    return [case_figures.draw_answer(pair, (-0.01, 0.02), label, names, True) for pair in ends]


def claims(actions, count=3):
    """Curves over several actions with long names, with present values, in several cases."""
    along = ("diastolic blood pressure", "pupils per teacher", "smoker", "price of the others")
    made = [
        claim_rows(f"{case} of the ward on the third floor", name, 0.1 * place, present=0.2)
        for case in range(count)
        for place, name in enumerate(along[:actions])
    ]
    return case_figures.draw_claims(
        [row for part in made for row in part], {along[0]: "millimetres of mercury"}
    )


# Module to the figures that it is tried with.
MADE = {
    case_figures: lambda: [
        *(decided(3), decided(8), decided(60), *answers()),
        *(claims(1, 1), claims(1), claims(2), claims(4)),
        case_figures.draw_overturning({"outcome_regression": [line("1", 0.4, 1.0, 1.94)]}),
        case_figures.draw_overturning({"cme": [line("1", 0.8, 2.5), line("2", 0.8, 40.0)]}),
        case_figures.draw_calibration({"outcome_regression": [claim_row(0.6, 0.5, 0.4, 0.7)]}),
        case_figures.draw_probabilities(
            {"outcome_regression": [scored(0.6, 0.9, 0.2), scored(0.1, 0.5, 0.1, acted=False)]}
        ),
    ],
    sequence_figures: lambda: [
        sequence_figures.draw_true_improvements({LONG: ([0.1, 0.9], [-2.75, 0.5])}),
        sequence_figures.draw_courses(sequence_figures.chosen(units()), 6, MACHINES),
        sequence_figures.draw_courses(sequence_figures.chosen(units(1)), 1, MACHINES),
        sequence_figures.draw_courses(
            sequence_figures.chosen([decision(0), decision(1)]), 2, Wording("SOFA", -1.0, "points", "4 h")
        ),
        sequence_figures.draw_improvements({LONG: [0.0, 0.12, 8.75]}, MACHINES.subjects),
        sequence_figures.draw_improvements(
            {LONG: [0.0, 0.12], "greedy_changes, at most 3 changes": [0.3, 0.4]}
        ),
        sequence_figures.draw_errors(truth_rows()),
    ],
    graph_figure: lambda: [graph_figure.graph_figure(GRAPH, **PARTS)],
    model_figures: lambda: [
        model_figures.draw_lipschitz({(0.1, 0.01): 123.4, (1.0, 0.01): 6.04, (1.0, 0.5): 2.0}),
        *model_figures.draw_recovered(recovered()).values(),
        *model_figures.draw_surrogate(curves(("a", "b", "pressure"))).values(),
        model_figures.draw_training(losses(1), model_figures.trained_parts(losses(1)), MACHINES.subjects),
        model_figures.draw_training(losses(3), model_figures.trained_parts(losses(3)), MACHINES.subjects),
    ],
    round_figures: lambda: [
        round_figures.draw_online({"ride_hailing": {"qwz23_online": online_rows()}}),
        round_figures.draw_trials({"dropwave": {"excbo": trial_rows()}}),
        round_figures.draw_trials({"dropwave": {"excbo": trial_rows(2.0), "ucb": trial_rows(0.5)}}),
    ],
}
# Modules that write what `graph` draws.
OTHERS = {"graph_uncertainty"}


def test_every_module_of_figures_is_looked_at():
    folder = Path(next(iter(figures.__path__)))
    every = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {module.__name__.rpartition(".")[2] for module in MADE} | OTHERS == every


@pytest.mark.slow
@pytest.mark.parametrize("module", MADE, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_text_is_cut_off_and_no_labels_lie_on_each_other(module):
    with drawing():
        found = {place: faults(figure) for place, figure in enumerate(MADE[module]())}
    assert found == {place: [] for place in found}
    assert found
