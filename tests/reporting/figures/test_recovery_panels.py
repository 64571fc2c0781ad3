"""Recovered noise beside the true one."""

from rehearsal_torch.reporting import trial_report
from rehearsal_torch.reporting.figures import recovery_panels
from rehearsal_torch.reporting.style import drawing


def test_recovered_noise_is_shown_node_by_node():
    truth = [
        {"node": "X", "part": part, "quantity": "correlation", "value": "0.95", "true": ""}
        for part in ("fitted", "held out")
    ]
    truth += [{"node": "X", "part": "fitted", "quantity": "noise", "value": "0.5", "true": "0.4"}]
    assert "0.950" in trial_report.recovered_noise(truth)[0]
    assert trial_report.recovered_noise([]) == []
    with drawing():
        assert set(recovery_panels.figures(truth)) == {"recovered"}
    assert recovery_panels.figures([]) == {}
    assert trial_report.recovered_in_short(truth) == [
        "correlation of recovered and true noise, trials that the model was fitted to: X 0.950",
        "correlation of recovered and true noise, held-out trials: X 0.950",
    ]
