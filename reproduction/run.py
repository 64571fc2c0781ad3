"""The command of a paper: ``python -m reproduction.auf 'stages=[table1]' 'seeds=[0,1]' workers=2``.

Arguments are ``key=value``, with lists in brackets:

    stages              all stages of study.yaml and "figures", which makes the page; default: all of them
    worlds, methods, settings, seeds      in place of those of the stages
    workers             processes, one thread each
    out                 the folder of the results
    overrides           overrides of every job, such as [trainer.max_epochs=5]

and the paper's own options in study.yaml. Finished jobs are not run again: an interrupted command is typed
again, and goes on. Exit codes: 0 all jobs are finished; 1 jobs failed; 2 an error in an argument or a folder;
130 interrupted.
"""

import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.job import provenance
from rehearsal_torch.files.package_paths import commit
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, did_you_mean
from reproduction.commits import check_clean
from reproduction.page import FIGURES, RUN, Block, Section, write_page
from reproduction.plan import AXES, jobs, study
from reproduction.record import Layout, Record, Recorded, Row, pack, unpack

Options = Mapping[str, Any]
Compute = Callable[[Options, Any], tuple[Sequence[Row], Mapping[str, Any]]]


def planned(name: str, options: Options, stage: str) -> list[Any]:
    """The jobs of a stage, for the names and seeds that were typed."""
    return list(jobs(study(name), stage, options["seeds"], **{axis: options[axis] for axis in AXES}))


@dataclass(frozen=True)
class Paper:
    """A paper as its command sees it.

    Attributes:
        name: Name of its module.
        layouts: Stage to the file of its rows, given the options.
        log: The columns of ``jobs.csv``; empty for none.
        compute: The rows of a job and the further cells of its line; a function of a module, since other
            processes look it up by name.
        parts: The parts of the page, given the folder of the results and the options.
        planned: The jobs of a stage, given the name of the paper and the options.
        unlogged: Stages whose jobs have no line in ``jobs.csv``.
    """

    name: str
    layouts: Callable[[Options], Mapping[str, Layout]]
    log: tuple[str, ...]
    compute: Compute
    parts: Callable[[RunFolder, Options], Iterable[Block | Section]]
    planned: Callable[[str, Options, str], list[Any]] = planned
    unlogged: frozenset[str] = field(default_factory=frozenset)

    def record(self, folder: Path, options: Options, stage: str) -> Record:
        """The record with the rows of a stage."""
        layouts = self.layouts(options)
        if stage in self.unlogged:
            return Record(folder, {stage: layouts[stage]})
        logged = {name: each for name, each in layouts.items() if name not in self.unlogged}
        return Record(folder, logged, self.log)


def defaults(name: str) -> dict[str, Any]:
    """The options of a paper with their default values."""
    content = study(name)
    lists: dict[str, Any] = {axis: [] for axis in (*AXES, "seeds", "overrides")}
    general = {"stages": [*content["stages"], FIGURES], **lists, "workers": 2, "out": content["out"]}
    return {**general, **content.get("options", {})}


def asked(name: str, typed: Sequence[str]) -> dict[str, Any]:
    """The options of a paper with the values that were typed.

    Raises:
        UserError: for an unknown option or name, or a value of another type.
    """
    known = defaults(name)
    try:
        given = OmegaConf.to_container(OmegaConf.from_cli(list(typed)))
    except (OmegaConfBaseException, YAMLError) as error:
        raise UserError(beginning(" ".join(str(error).split()), 200), shlex.join(typed)) from error
    assert isinstance(given, dict)
    for key, value in given.items():
        if key not in known:
            remedy = "An override of every job is typed in overrides=[...]"
            close = "" if isinstance(value, dict) else did_you_mean(str(key), known)
            raise UserError("there is no such option", str(key), close or remedy)
        form = type(known[key])
        if known[key] is not None and type(value) is not form:
            raise UserError(f"expected a {form.__name__}; got {value}", str(key), _remedy(known[key], value))
    options = {**known, **given}
    options["settings"] = [f"{each:g}" if isinstance(each, float) else each for each in options["settings"]]
    choices = {axis: study(name).get(axis, {}) for axis in AXES} | {"stages": known["stages"]}
    for axis, names in choices.items():
        odd = [each for each in options[axis] if each not in names]
        if odd:
            raise UserError(f"there is no {odd[0]}", axis, did_you_mean(str(odd[0]), map(str, names)))
    if options["workers"] < 1 or not all(type(seed) is int and seed >= 0 for seed in options["seeds"]):
        raise UserError("expected workers of at least 1, and seeds of at least 0", shlex.join(typed))
    return options


def _remedy(default: object, value: object) -> str:
    return f"Write [{value}]" if isinstance(default, list) else ""


def main(paper: Paper, typed: Sequence[str] | None = None) -> int:
    """The command of a paper.

    Args:
        typed: The arguments; None for those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if typed is None else typed)
    return exit_code(lambda: _run(paper, words), "Interrupted; type the same again to go on.")


def _run(paper: Paper, typed: Sequence[str]) -> int:
    if {"-h", "--help"} & set(typed):
        about = study(paper.name)["about"]
        print(f"{about}\n\n{__doc__}\nThis paper's options and their default values:\n")
        print(OmegaConf.to_yaml(OmegaConf.create(defaults(paper.name))))
        return 0
    options = asked(paper.name, typed)
    out = RunFolder(Path(options["out"]))
    check_clean(out.path)
    stages = [stage for stage in options["stages"] if stage != FIGURES]
    with out.lock():
        unpack(out.path)
        try:
            if stages:
                _note(paper, out, typed)
            failed = sum(_carried_out(paper, options, stage) for stage in stages)
            if FIGURES in options["stages"]:
                write_page(out, paper.parts(out, options))
        finally:
            pack(out.path)
    return 1 if failed else 0


def _note(paper: Paper, out: RunFolder, typed: Sequence[str]) -> None:
    """Adds a command that makes rows to ``run.json``, with versions and commit."""
    before = out.read_json(RUN)
    command = f"python -m reproduction.{paper.name} {shlex.join(typed)}".strip()
    commands = list(dict.fromkeys([*before.get("commands", []), command]))
    told = provenance("reproduction", [], 0) | {"command": command, "commands": commands}
    out.write_json(RUN, before | told)


def _carried_out(paper: Paper, options: Options, stage: str) -> int:
    """Runs the unfinished jobs of a stage; the number of those that failed."""
    record = paper.record(Path(options["out"]), options, stage)
    record.mend()
    todo = record.todo(paper.planned(paper.name, options, stage))
    print(f"{stage}: {len(todo)} jobs to do", flush=True)
    # Jobs whose seconds are compared run one at a time.
    workers = 1 if study(paper.name)["stages"][stage].get("alone") else options["workers"]
    failed = 0
    for number, (job, rows, line) in enumerate(computed(paper.compute, options, todo, workers), 1):
        record.add(job, rows, line)
        failed += line["state"] != "ok"
        said = line["message"] or f"{len(rows)} rows, {line['seconds']:.1f} s"
        print(f"{number}/{len(todo)}  {' '.join(filter(None, job.key))}: {said}", flush=True)
    return failed


def computed(
    compute: Compute, options: Options, todo: Sequence[Recorded], workers: int
) -> Iterator[tuple[Any, Sequence[Row], dict[str, Any]]]:
    """Jobs with their rows and their lines, in the order in which they are finished."""
    made_at = commit() or ""
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(_attempted)(compute, options, job, made_at) for job in todo)


def _attempted(
    compute: Compute, options: Options, job: Recorded, made_at: str
) -> tuple[Any, Sequence[Row], dict[str, Any]]:
    """A job, its rows and its line; an error becomes the message of the line, and other jobs go on."""
    began = time.process_time()
    rows: Sequence[Row] = []
    facts: Mapping[str, Any] = {}
    state, message = "ok", ""
    try:
        rows, facts = compute(options, job)
    except Exception as error:
        state, message = "failed", beginning(f"{type(error).__name__}: {' '.join(str(error).split())}", 300)
    line = {"state": state, "rounds": len(rows), "seconds": time.process_time() - began}
    return job, rows, {**line, "commit": made_at, "message": message, **facts}
