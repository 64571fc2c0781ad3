from rehearsal_torch.reporting.figures.training_curve import draw, trained_parts
from rehearsal_torch.reporting.style import drawing

METRICS = {
    "mechanism/train_loss": [(0, 3.0), (1, 2.0), (2, 1.5)],
    "mechanism/held_out_loss": [(0, 3.5), (1, 2.25), (2, 2.5)],
    "decision/seconds": [(0, 0.1)],
}


def test_parts_are_those_with_a_training_loss():
    assert trained_parts(METRICS) == ["mechanism"]
    assert trained_parts({"train_loss": [], "a/b/train_loss": [], "a/held_out_loss": []}) == ["", "a/b"]


def test_epochs_count_from_one_and_the_best_is_that_of_held_out_rows():
    with drawing():
        (axes,) = draw(METRICS, "mechanism").axes
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
        figure = draw(metrics, trained_parts(metrics))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [
        f"Training of model {number} of the ensemble" for number in (1, 2, 3)
    ]
