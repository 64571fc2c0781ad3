"""The results of the paper on structural rehearsal models, in stages that can be stopped and taken up again.

    rounds     rounds that learn from each other, method by method and world by world      rounds.csv,
               jobs.csv (Fig. 4, Tab. 1)
    rl         reinforcement learning in the same worlds (optional packages)                rl.csv, rl_T.csv
               for T rounds (Tab. 1)
    figures    figures/*.png and *.svg (Fig. 4), README.md with the numbers behind them

A repeat (world, method, tau, repeat) that is done is not done again; one that was killed begins anew. One
that failed is tried again.

Source: Qin et al. (2023), Sec. 6, Fig. 4 and Tab. 1.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import commit
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.command import agree, ended, known, note, one_thread, say, study_parser

if TYPE_CHECKING:
    from rehearsal_torch.studies.qwz23.job import Protocol
    from rehearsal_torch.studies.rounds_record import Repeat

STAGES = ("rounds", "rl", "figures")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the stages asked for; see ``--help``."""
    asked = _parser().parse_args(arguments)
    one_thread()
    return ended(_run, asked, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = study_parser(__doc__, STAGES, "docs/results/qwz23", "repeat", "objective.information_models=100")
    parser.add_argument(
        "--worlds",
        nargs="+",
        default=["ride_hailing", "bermuda"],
        metavar="WORLD",
        help="default: ride_hailing bermuda",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["qwz23", "qwz23_success"],
        metavar="METHOD",
        help="default: qwz23 qwz23_success",
    )
    parser.add_argument(
        "--taus", nargs="+", default=["0.7"], metavar="TAU", help="probabilities asked for (default: 0.7)"
    )
    parser.add_argument("--repeats", type=int, default=20, help="of each (default: 20)")
    parser.add_argument("--rounds", type=int, default=100, help="of each repeat (default: 100)")
    parser.add_argument(
        "--agents",
        nargs="+",
        default=["ddpg", "ppo", "sac", "cats"],
        metavar="AGENT",
        help="of stage rl (default: ddpg ppo sac cats)",
    )
    parser.add_argument(
        "--scenarios",
        type=int,
        default=4000,
        help="that a search sees, and that validate (default: 4000; the paper's text: 10000)",
    )
    return parser


def _run(asked: argparse.Namespace, typed: list[str]) -> int:
    from rehearsal_torch.studies.qwz23.job import Protocol
    from rehearsal_torch.studies.qwz23.study import METHODS, WORLDS, repeats

    least = {
        "--repeats": asked.repeats,
        "--rounds": asked.rounds,
        "--scenarios": asked.scenarios,
        "--workers": asked.workers,
    }
    odd = [name for name, value in least.items() if value < 1]
    if odd:
        raise UserError(f"expected at least 1; got {least[odd[0]]}", odd[0])
    began = time.monotonic()
    deadline = None if asked.budget_minutes is None else began + 60 * asked.budget_minutes
    out, left = RunFolder(asked.out), 0
    if "rounds" in asked.stages:
        worlds, methods = (
            known(asked.worlds, list(WORLDS), "--worlds"),
            known(asked.methods, list(METHODS), "--methods"),
        )
        taus = [_tau(text) for text in asked.taus]
        settings = {"rounds": asked.rounds, "scenarios": asked.scenarios}
        agree(out, settings, asked.set)
        note(out, "reproduce_qwz23", typed, {**settings, "extra": list(asked.set)})
        protocol = Protocol(asked.conf, asked.rounds, asked.scenarios, tuple(asked.set), commit() or "")
        left += _rounds(
            asked.out,
            protocol,
            repeats(worlds, methods, taus, range(asked.repeats)),
            asked.workers,
            deadline,
            began,
        )
    if "rl" in asked.stages:
        from rehearsal_torch.studies.qwz23.agents_study import played

        note(out, "reproduce_qwz23", typed, {})
        left += played(
            asked.out,
            asked.worlds,
            asked.agents,
            asked.rounds,
            asked.repeats,
            deadline,
            lambda text: say(began, text),
        )
    if "figures" in asked.stages:
        from rehearsal_torch.studies.qwz23.documents import documents

        documents(out)
        say(began, f"figures and README.md in {asked.out}")
    if left:
        say(began, f"{left} repeats are not done: type the same again to go on with them")
    return 1 if left else 0


def _rounds(
    folder: Path,
    protocol: "Protocol",
    planned: "Sequence[Repeat]",
    workers: int,
    deadline: float | None,
    began: float,
) -> int:
    """Runs the repeats that are not done; returns how many are left."""
    from rehearsal_torch.studies.qwz23.job import done
    from rehearsal_torch.studies.rounds import Outcome, carried_out
    from rehearsal_torch.studies.rounds_record import RoundsRecord

    def told(outcome: Outcome["Repeat"]) -> str:
        true, best = (
            sum(row[key] for row in outcome.rows) / len(outcome.rows) for key in ("p_true", "oracle")
        )
        return f"{true:.3f} of {best:.3f}"

    return carried_out(RoundsRecord(folder), done, protocol, planned, workers, deadline, began, told)


def _tau(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise UserError(f"expected numbers above 0 and at most 1; got {text}", "--taus")
    return f"{value:g}"
