import json

import pytest
import torch

from rehearsal_torch.graphs.equivalence import members
from rehearsal_torch.problems.cases.bermuda import ACTIONABLE, PRESETS, Bermuda, bermuda_graphs, figures
from rehearsal_torch.problems.trials.global_maximum import highest
from rehearsal_torch.problems.world_size import SampleSize
from reproduction.bermuda import main, refit
from tests.places import DATA
from tests.toys.patterns import pattern_of

MEASURED = DATA / "bermuda" / "bermuda.csv"
# No action (mean, deviation over contexts), best of one variable, best of all five: 2,000 contexts.
VALUES = {
    "qwz23": (0.0185, 0.0125, 0.8378, 0.9736),
    "aaai": (0.3158, 0.0639, 0.5258, 0.6793),
    "icml": (0.0862, 0.0357, 0.8376, 1.0),
    "neurips24": (0.0023, 0.0017, 0.8376, 1.0),
    "icml_code": (0.0413, 0.0136, 0.6842, 0.8817),
    "cme": (0.2016, 0.0427, 0.6842, 0.8816),
    "fitted": (0.200, 0.072, 0.281, 0.508),
}


def contexts(world, count=2000):
    return world.draw(count, world.stream(9)).columns(world.task.context)


@pytest.mark.parametrize("preset", VALUES)
def test_the_ceilings_of_each_author(preset):
    world = Bermuda(preset)
    given = contexts(world)
    nothing = world.probability(given, (), given.new_empty(len(given), 0))
    single = torch.stack([world.optimal(given, names)[1] for names in world.task.candidates]).amax(0)
    joined = world.optimal(given, ACTIONABLE)[1]
    mean, spread, best, joint = VALUES[preset]
    # The reference has other contexts: four standard errors of either mean.
    assert float(nothing.mean()) == pytest.approx(mean, abs=4 * spread * (2 / 2000) ** 0.5)
    assert float(nothing.std()) == pytest.approx(spread, rel=0.12)
    assert float(single.mean()) == pytest.approx(best, abs=0.003)
    assert float(joined.mean()) == pytest.approx(joint, abs=0.003)
    assert set(VALUES) == set(PRESETS)


def test_effects_on_calcification():
    world = Bermuda("qwz23")
    nothing, omega, five = (
        world.response(()),
        world.response(["Omega"]),
        world.response(["DIC", "TA", "Omega", "Chla", "Nut"]),
    )
    assert nothing.context[0].tolist() == pytest.approx([0.0123, 0.3062, -0.5598], abs=1e-4)
    assert omega.context[0].tolist() == pytest.approx([0.0123, 1.5138, 0.3393], abs=1e-4)
    assert omega.action[0].tolist() == pytest.approx([-2.3303], abs=1e-4)
    noise = dict(zip(world.system.names, omega.noise[0].tolist(), strict=True))
    expected = {
        "DIC": -2.6234,
        "TA": 3.0550,
        "Chla": 0.1311,
        "Nut": 0.0882,
        "pHsw": 2.0376,
        "CO2": -2.5004,
        "NEC": 1.0,
        "Omega": 0.0,
        "Light": 0.0,
    }
    assert {name: noise[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert world.response(["TA"]).action.item() == pytest.approx(-0.6978, abs=1e-4)
    assert world.response(["DIC"]).action.item() == pytest.approx(-0.0468, abs=1e-4)
    assert five.action[0].tolist() == pytest.approx([-2.6234, 3.0550, -2.3303, 0.1311, 0.0983], abs=1e-4)
    assert five.context[0].tolist() == pytest.approx([0.0321, 1.5196, -0.0748], abs=1e-4)
    assert five.constant.item() == pytest.approx(-0.5343, abs=1e-4)


@pytest.mark.parametrize("names", [["TA"], ["Omega"], ["DIC", "TA"]])
def test_the_closed_form_oracle_is_what_a_grid_finds(names):
    world = Bermuda("aaai")
    given = contexts(world, 30)
    _, found = highest(
        lambda values: world.probability(given, names, values), world.task.box.only(names), len(given)
    )
    torch.testing.assert_close(world.optimal(given, names)[1], found, rtol=0, atol=2e-5)


def test_measurements_give_the_shipped_figures_again(tmp_path, capsys):
    if not MEASURED.exists():
        pytest.skip(f"the measurements are not at {MEASURED}")
    fitted, shipped = refit(MEASURED), figures()
    for label in ("n", "n - 1"):
        for child, weights in fitted[label]["weights"].items():
            assert weights == pytest.approx(shipped[label]["weights"][child], abs=1e-9)
        assert fitted[label]["residuals"] == pytest.approx(shipped[label]["residuals"], abs=1e-9)
        assert fitted[label]["intercepts"] == pytest.approx(shipped[label]["intercepts"], abs=1e-9)
    main(str(MEASURED), str(tmp_path / "figures.json"))
    assert "coefficients; the largest" in capsys.readouterr().out
    assert json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["n"]["rows"]["NEC"] == 46


def test_five_graphs_imply_the_same_independences():
    world = Bermuda("qwz23")
    assert world.hypotheses == Bermuda("cme").hypotheses == bermuda_graphs()
    assert set(world.hypotheses[0].edges) == set(world.task.graph.edges)
    enumerated = members(pattern_of(world.task.graph))
    assert {frozenset(graph.edges) for graph in enumerated} == {
        frozenset(graph.edges) for graph in bermuda_graphs()
    }
    assert len(enumerated) == 5


def test_the_best_single_variable_is_omega():
    world = Bermuda()
    given = contexts(world, 200)
    assert float(world.optimal(given, ["Omega"])[1].mean()) == pytest.approx(0.684, abs=0.003)
    assert float(world.optimal(given, ["TA"])[1].mean()) == pytest.approx(0.622, abs=0.01)


def test_shipped_figures_are_those_of_the_literature():
    fit = figures()["n - 1"]
    assert fit["intercepts"]["NEC"] == pytest.approx(-0.5343, abs=1e-4)
    assert fit["weights"]["NEC"]["Temp"] == pytest.approx(5.1980, abs=1e-4)
    assert fit["weights"]["Omega"]["TA"] == pytest.approx(1.6104, abs=1e-4)
    assert fit["ranges"]["Light"] == pytest.approx([-1.4645, 3.2967], abs=1e-4)
    assert fit["residuals"]["CO2"] == pytest.approx(0.3877, abs=1e-4)
    assert figures()["n"]["intercepts"]["NEC"] == pytest.approx(-0.5402, abs=1e-4)


def test_least_squares_finds_the_coefficients_of_a_made_up_reef(tmp_path):
    world = Bermuda("fitted", size=SampleSize(rows=4000))
    table = world.observations()
    lines = [",".join("Nutrients_PC1" if name == "Nut" else name for name in table.names)]
    lines += [",".join(f"{value:.12g}" for value in row) for row in table.values.tolist()]
    (tmp_path / "reef.csv").write_text("\n".join(lines), encoding="utf-8")
    found = refit(tmp_path / "reef.csv")["n"]
    spread = dict(zip(table.names, table.values.std(0, correction=0).tolist(), strict=True))
    for child, weights in world.system.weights.items():
        scaled = {parent: weight * spread[parent] / spread[child] for parent, weight in weights.items()}
        assert found["weights"][child] == pytest.approx(scaled, abs=0.08)
