"""Reproducing a study: ``rehearsal reproduce study=auf stages=[table1]``, or scripts/reproduce.py.

A command can be interrupted and repeated: finished jobs are not run again.

Exit codes: 0 all jobs are finished; 1 jobs remain; 2 an error in an argument or in a folder; 130 interrupted.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rehearsal_torch.cli.errors import UserError, did_you_mean, exit_code
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.studies.flags import translated
from rehearsal_torch.studies.study import STUDIES

if TYPE_CHECKING:
    from rehearsal_torch.studies.runner import Reproduction

_HELP = ("-h", "--help", "help")
_STUDY = "study="
# Studies that run with one thread per process: sums over threads have no fixed order, and jobs run in several
# processes. The models of the sepsis study are fitted with all threads; run.json has digests of the weights.
_ONE_THREAD = ("auf", "calibration", "cbo", "online")
# Former names of studies.
RENAMED = {"qwz23": "online"}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``reproduce``.

    Args:
        arguments: The arguments of the command; None for those of the process.

    Returns:
        The exit code.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    named = [text.removeprefix(_STUDY) for text in typed if text.startswith(_STUDY)]
    rest = [text for text in typed if not text.startswith(_STUDY)]
    if not named and (not rest or rest[0] in _HELP):
        print(_overview())
        return 0 if rest else 2
    if set(named) <= set(_ONE_THREAD):
        one_thread()
    return exit_code(lambda: _run(named, rest), "Interrupted; type the same again to go on.")


def with_flags(study: str, arguments: Sequence[str] | None = None) -> int:
    """The scripts ``reproduce_*.py``, which also take the flags used before version 0.2.0.

    Args:
        study: The study's name.
        arguments: The arguments of the script; None for those of the process.

    Returns:
        The exit code.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if any(text in _HELP for text in typed):
        return main([f"{_STUDY}{study}", "--help"])
    if study in _ONE_THREAD:
        one_thread()
    return exit_code(
        lambda: _run([study], translated(study, typed)), "Interrupted; type the same again to go on."
    )


def one_thread() -> None:
    """Sets one thread per process in the environment, which NumPy and PyTorch read at their first import."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _overview() -> str:
    from rehearsal_torch.studies.study_files import study

    start = spoken("reproduce")
    lines = ["Makes the tables and figures of a paper, in stages that can be stopped and resumed.", ""]
    lines += [f"Usage: {start} study={'|'.join(STUDIES)} [key=value ...]", ""]
    lines += [f"  {_STUDY + name:<15} {study(name).about}" for name in STUDIES]
    return "\n".join([*lines, "", f"{start} study={STUDIES[0]} --help lists the options of a study."])


def _run(named: Sequence[str], rest: Sequence[str]) -> int:
    if len(named) != 1 or named[0] not in STUDIES:
        raise UserError(
            f"expected one of study={'|'.join(STUDIES)}; got {' and '.join(named) or 'none'}",
            spoken("reproduce"),
            _remedy(named),
        )
    from rehearsal_torch.studies.request import help_of, read
    from rehearsal_torch.studies.study_files import study

    name = named[0]
    if any(text in _HELP for text in rest):
        print(help_of(study(name)))
        return 0
    flags = next((text for text in rest if text.startswith("--")), None)
    if flags is not None:
        line = shlex.join([f"{_STUDY}{name}", *translated(name, rest)])
        raise UserError("options are typed as key=value", flags, f"Write {spoken('reproduce')} {line}")
    request = read(study(name), rest)
    from rehearsal_torch.studies.runner import run

    return run(_reproduction(name), request, [f"{_STUDY}{name}", *rest])


def _reproduction(name: str) -> "type[Reproduction]":
    """The class of a study, imported only when it is needed."""
    if name == "auf":
        from rehearsal_torch.studies.auf.reproduction import AvoidingUndesiredFutures

        return AvoidingUndesiredFutures
    if name == "calibration":
        from rehearsal_torch.studies.calibration.reproduction import Calibration

        return Calibration
    if name == "cbo":
        from rehearsal_torch.studies.cbo.reproduction import CausalBayesianOptimisation

        return CausalBayesianOptimisation
    if name == "online":
        from rehearsal_torch.studies.online.reproduction import OnlineRehearsal

        return OnlineRehearsal
    from rehearsal_torch.studies.sepsis.reproduction import SepsisEpisodes

    return SepsisEpisodes


def _remedy(named: Sequence[str]) -> str:
    if len(named) != 1:
        return f"Type {spoken('reproduce')} study={STUDIES[0]} --help"
    if named[0] in RENAMED:
        return f"{named[0]} is called {RENAMED[named[0]]} now"
    return did_you_mean(named[0], STUDIES)
