import numpy as np
import pytest

from rehearsal_torch.reporting import trial_report
from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.figures import model_figures
from rehearsal_torch.reporting.figures.model_figures import draw_training, trained_parts
from tests.toys.drawn import texts

METRICS = {
    "mechanism/train_loss": [(0, 3.0), (1, 2.0), (2, 1.5)],
    "mechanism/held_out_loss": [(0, 3.5), (1, 2.25), (2, 2.5)],
    "decision/seconds": [(0, 0.1)],
}


def test_epochs_count_from_one_and_the_best_is_that_of_held_out_rows():
    with drawing():
        (axes,) = draw_training(METRICS, ["mechanism"]).axes
    train, held_out, best = axes.lines
    assert (list(train.get_xdata()), list(train.get_ydata())) == ([1, 2, 3], [3.0, 2.0, 1.5])
    assert list(held_out.get_ydata()) == [3.5, 2.25, 2.5]
    assert (list(best.get_xdata()), list(best.get_ydata())) == ([2], [2.25])
    assert best.get_label() == "best: 2.250 (epoch 2)"
    assert axes.get_title() == "Training of the model"
    assert axes.get_xlabel() == "Epoch"
    assert axes.get_ylabel() == "Loss: negative log-likelihood\nfor each row"


def test_several_parts_have_a_panel_each_and_are_called_by_what_they_are():
    metrics = {f"models.{place}.mechanism.blind/train_loss": [(0, 1.0), (1, 0.5)] for place in range(3)}
    with drawing():
        figure = draw_training(metrics, trained_parts(metrics))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [
        f"Training of model {number} of the ensemble" for number in (1, 2, 3)
    ]


def test_the_lipschitz_grid_writes_its_numbers_into_the_cells(tmp_path):
    with drawing():
        shown = texts(
            save(
                model_figures.draw_lipschitz({(0.1, 0.01): 123.4, (1.0, 0.01): 6.04, (1.0, 0.5): 2.0}),
                tmp_path,
                "grid",
            )[1]
        )
    for number in ("123", "6.0", "2.0", "0.01", "0.5", "0.1"):
        assert number in shown
    assert "Decrease of held-out log-likelihood (%)" in shown


def test_recovered_noise_is_shown_node_by_node():
    truth = [
        {"node": "X", "part": part, "quantity": "correlation", "value": "0.95", "true": ""}
        for part in ("fitted", "held out")
    ]
    truth += [{"node": "X", "part": "fitted", "quantity": "noise", "value": "0.5", "true": "0.4"}]
    assert "0.950" in trial_report.recovered_noise(truth)[0]
    assert trial_report.recovered_noise([]) == []
    with drawing():
        assert set(model_figures.draw_recovered(truth)) == {"recovered"}
    assert model_figures.draw_recovered([]) == {}
    assert trial_report.recovered_in_short(truth) == [
        "correlation of recovered and true noise, trials that the model was fitted to: X 0.950",
        "correlation of recovered and true noise, held-out trials: X 0.950",
    ]


def row(panel, name, along, series, x, value="", std=""):
    keys = ("panel", "name", "along", "series", "x", "value", "std")
    return dict(zip(keys, map(str, (panel, name, along, series, x, value, std)), strict=True))


def curves(actions=("a",), world=True, slope=1.0):
    """The reward is slope x along every action, up to .1; Y is 2 X."""
    found = []
    for place, name in enumerate(actions):
        found += [
            row("reward", "reward", name, "learnt", x, slope * (place + 1) * x, 0.1) for x in (0.0, 0.5, 1.0)
        ]
        found += [row("reward", "reward", name, "true", x, x + 0.2) for x in (0.0, 1.0)] if world else []
        found += [row("reward", "reward", name, "recommended", 0.25)]
        found += [row("reward", "reward", name, "trial", 0.3, 0.4)]
        found += [row("reward", "reward", name, "trial elsewhere", 0.6, -90.0)]
    found += [row("node", "Y", "X", "learnt", x, 2 * x, 0.3) for x in np.linspace(-1, 1, 50)]
    for node in ("X", "Y"):
        found += [row("noise", node, "", "learnt", x, 0.4) for x in (-1.0, 0.0, 1.0)]
        found += [row("noise", node, "", "true", x, 0.5) for x in (-1.0, 1.0)] if world else []
        found += [row("noise", node, "", "trial", x) for x in (-0.5, 0.1, 0.2)]
    return found


def drawn(rows):
    with drawing():
        (figure,) = model_figures.draw_surrogate(rows).values()
    return figure, {axes.get_title(): axes for axes in figure.axes}


def test_the_band_is_two_standard_deviations_and_far_trials_do_not_stretch_the_panel():
    _, panels = drawn(curves())
    axes = panels["Reward along a"]
    (bars,) = [each for each in axes.collections if each.get_label().startswith("two")]
    ends = np.concatenate([segment[:, 1] for segment in bars.get_segments()])
    assert (ends.min(), ends.max()) == pytest.approx((-0.2, 1.2))
    low, high = axes.get_ylim()
    assert (low, high) == pytest.approx((-0.27, 1.27))
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["learnt mean"].get_ydata().tolist() == [0.0, 0.5, 1.0]
    assert lines["learnt mean"].get_marker() == "o", "few points are levels"
    assert lines["learnt mean"].get_linestyle() == "None", "which no line joins"
    assert panels["Y along X"].lines[0].get_marker() == "None"
    assert lines["recommended"].get_xdata() == [0.25, 0.25]
    assert lines["trial elsewhere"].get_ydata().tolist() == []
    assert lines["beyond this range"].get_ydata().tolist() == [low], "a trial at -90 is at the edge"
    assert lines["beyond this range"].get_marker() == "v"


def test_a_system_of_ones_own_has_no_true_curves():
    figure, _ = drawn(curves(world=False))
    assert not [text for text in figure.legends[0].get_texts() if "true" in text.get_text()]


def in_lines(figure):
    """How many panels stand in each line."""
    lines = [axes.get_subplotspec().rowspan.start for axes in figure.axes]
    assert lines == sorted(lines), "panels follow each other"
    return [lines.count(line) for line in dict.fromkeys(lines)]


def test_a_node_with_its_noise_is_not_parted():
    rows = curves(("a", "b"))
    rows += [row("node", "X", "a", "learnt", x, 2 * x, 0.3) for x in np.linspace(-1, 1, 50)]
    figure, panels = drawn(rows)
    assert list(panels)[2:] == ["Y along X", "Noise of Y", "X along a", "Noise of X"]
    assert in_lines(figure) == [2, 2, 2]


@pytest.mark.slow
def test_long_names_and_dollar_signs_stay_within_the_figure(tmp_path):
    name = "opening of the second valve, in percent of $ 100 or $ 200"
    figure, panels = drawn(curves((name, "b", "c")))
    assert next(iter(panels)).count(r"\$") == 2
    with drawing():
        save(figure, tmp_path, "surrogate")
    width, height = figure.get_size_inches() * figure.dpi
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box.x0 >= -1, axes.get_title()
        assert box.y0 >= -1, axes.get_title()
        assert box.x1 <= width + 1, axes.get_title()
        assert box.y1 <= height + 1, axes.get_title()
    assert (tmp_path / "surrogate.svg").is_file()


@pytest.mark.slow
def test_numbers_that_are_not_finite_are_left_out_of_the_range(tmp_path):
    rows = curves()
    rows.append(row("reward", "reward", "a", "learnt", 2.0, "nan", "inf"))
    rows.append(row("reward", "reward", "a", "learnt", 3.0, "1e308", "1e308"))
    rows.append(row("noise", "X", "", "trial", "-1e308"))
    figure, panels = drawn(rows)
    assert panels["Reward along a"].get_ylim() == pytest.approx((-0.27, 1.27))
    with drawing():
        assert all(path.stat().st_size > 5000 for path in save(figure, tmp_path, "surrogate"))


def test_without_curves_there_is_no_figure():
    assert model_figures.draw_surrogate([]) == {}
    assert model_figures.draw_surrogate([row("noise", "X", "", "learnt", 0.0, 0.4)]) == {}
    assert model_figures.draw_surrogate([row("reward", "reward", "a", "recommended", 0.1)]) == {}
