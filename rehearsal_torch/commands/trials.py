"""Trials on a terminal: a line a round."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.round_line import Round


class Trials:
    """What has been tried so far.

    Args:
        before: Decisions of earlier rounds, as lines of ``decisions.jsonl``, where a run goes on.
    """

    def __init__(self, before: Sequence[Mapping[str, Any]] = ()) -> None:
        self._best = max((one["score"]["expected"] for one in before if "expected" in (one.get("score") or {})), default=float("-inf"))
        self._before = time.perf_counter()

    def told(self, each: Round, total: int) -> str:
        """The line of a round: number, action, observed reward, best expected reward so far where the world tells it, seconds since the line before.

        Args:
            each: A round with an action and a reward.
            total: How many rounds there are.
        """
        now = time.perf_counter()
        spent, self._before = now - self._before, now
        setting = each.decision.to_dict()["alteration"] or {}
        action = ", ".join(f"{name} {_short(value)}" for name, value in setting.items())
        known = ""
        if {"expected", "start", "optimum"} <= set(each.score):
            self._best = max(self._best, each.score["expected"], each.score["start"])
            known = f", best expected {self._best:.4g} of {each.score['optimum']:.4g}"
        return f"round {each.index + 1} of {total}: {action}; reward {each.reward:.4g}{known}, {spent:.2f} s"


def _short(value: float | list[float]) -> str:
    from rehearsal_torch.spaces.alteration import setting_text

    return setting_text(value, 3) if isinstance(value, float) else "/".join(setting_text(item, 3) for item in value)
