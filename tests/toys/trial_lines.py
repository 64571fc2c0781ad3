"""Lines of trials as runs record them, with numbers that can be checked by hand."""

from rehearsal_torch.evaluation.claim_rows import trial_rows


def line(index, expected, recommended, start=1.0, optimum=10.0):
    score = {
        "expected": expected,
        "recommended": recommended,
        "optimum": optimum,
        "start": start,
        "regret": optimum - recommended,
    }
    return {
        "index": index,
        "identity": str(index),
        "kind": "optimise",
        "given": {},
        "status": "may",
        "alteration": {"a": 0.5},
        "recommendation": {"a": 0.25},
        "estimate": {"point": 4.0, "of": "reward"},
        "reward": expected + 0.1,
        "score": score,
        "seconds": 0.5,
    }


def rows(problem="p", method="m", seed=0, values=((2.0, 3.0), (0.5, 6.0), (4.0, 8.0)), start=1.0):
    return trial_rows(
        problem, "", method, seed, [line(index, *pair, start=start) for index, pair in enumerate(values)]
    )
