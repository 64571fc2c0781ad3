"""Jobs of avoiding undesired futures, with their rows and lines: two decisions each."""

from rehearsal_torch.evaluation.claim_rows import COLUMNS
from reproduction.plan import Job


def outcome(stage="table1", method="cme", seed=0, setting="", state="ok", idle=0):
    job = Job(stage, "bank", setting, method, seed, (), (stage, "bank", method, setting, str(seed)))
    extra = {} if stage == "table1" else {"setting": setting}
    rows = [
        dict(zip(COLUMNS, ("bank", method, seed, str(context), *[0.5] * 7), strict=True)) | extra
        for context in range(2)
    ]
    line = {
        "state": state,
        "fit_seconds": 0.25,
        "decisions": 2,
        "idle": idle,
        "warned": 0,
        "commit": "abc",
        "message": "",
    }
    return job, rows if state == "ok" else [], line
