"""Arguments of a study: ``rehearsal reproduce study=auf stages=[table1] seeds=[0,1] workers=2``.

The grammar is that of every other subcommand: ``key=value``, read by Hydra's parser. Lists are in brackets,
which a list of one item does not need; ``seeds=range(20)`` means 0 to 19. A key with a dot, or a key of the
configuration, is an override of every job, such as ``trainer.max_epochs=5``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Override, RangeSweep

from rehearsal_torch.cli.errors import UserError, did_you_mean
from rehearsal_torch.cli.installation import conf_folder
from rehearsal_torch.cli.overrides import read_override
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.files.plain import read_yaml
from rehearsal_torch.studies.plan import Job, jobs
from rehearsal_torch.studies.study import Study, StudyOption

FIGURES = "figures"
AXES = ("worlds", "methods", "settings")
# The maximum number of seeds.
_RANGE = 10_000


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        study: The study.
        stages: The stages, in the order of the study; "figures" stands for README.md and the figures.
        names: "worlds", "methods" or "settings" to the typed names, in the order of the study; an axis that
            was not typed is missing.
        seeds: The typed seeds; None for the default seeds of each stage.
        workers: Number of processes, one thread each.
        budget_minutes: Minutes after which no job begins; None for no limit.
        out: The folder of the results.
        options: Values of the study's own options.
        overrides: Overrides of every job, as typed.
        conf: The folder of configurations.
    """

    study: Study
    stages: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None
    workers: int = 2
    budget_minutes: float | None = None
    out: Path = Path()
    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    conf: Path = field(default_factory=conf_folder)

    @property
    def working(self) -> tuple[str, ...]:
        """The stages that run jobs."""
        return tuple(stage for stage in self.stages if stage != FIGURES)

    def jobs(self, stage: str) -> list[Job]:
        """The jobs of a stage, for the names and seeds that were typed.

        Args:
            stage: A stage of the study.
        """
        return jobs(self.study, stage, **self.names, seeds=self.seeds)

    def shared(self) -> dict[str, Any]:
        """The options whose values all rows of a folder must have in common."""
        return {key: self.options[key] for key, each in self.study.options.items() if each.shared}


def read(study: Study, typed: Sequence[str]) -> Request:
    """The request of some arguments.

    Args:
        study: The study.
        typed: Arguments of the form ``key=value``, without ``study=NAME``.

    Raises:
        UserError: for the first invalid argument.
    """
    general = ("stages", *_axes(study), "seeds", "workers", "budget_minutes", "out")
    keys = (*general, *study.options)
    given: dict[str, Override] = {}
    overrides: list[str] = []
    for text in typed:
        override = read_override(text)
        key = override.key_or_group
        if key not in keys or not text.startswith(f"{key}="):
            _of_the_configuration(override, keys, study)
            overrides.append(text)
        elif key in given:
            raise UserError("was given twice", key, "Leave one out")
        else:
            given[key] = override
    stages = (*study.stages, FIGURES)
    names = {
        axis: selected
        for axis, table in _axes(study).items()
        if (selected := _names(given, axis, table)) is not None
    }
    values: dict[str, Any] = {
        key: _number(given[key], option) if key in given else option.default
        for key, option in {**_GENERAL, **study.options}.items()
    }
    workers, minutes, out = (values.pop(key) for key in ("workers", "budget_minutes", "out"))
    selected_stages = _names(given, "stages", stages)
    return Request(
        study,
        stages if selected_stages is None else selected_stages,
        names,
        _seeds(given, study),
        workers,
        minutes,
        study.out if out is None else Path(out),
        values,
        tuple(overrides),
    )


def help_of(study: Study) -> str:
    """The help text of a study.

    Args:
        study: The study.
    """
    start = f"{spoken('reproduce')} study={study.name}"
    lines = [study.about, f"Source: {study.source}", "", f"Usage: {start} [key=value ...]", ""]
    shown = [("stages=[...]", "default: all of")]
    shown += [(f"    {name}", stage.about) for name, stage in study.stages.items()]
    shown += [(f"    {FIGURES}", "README.md and figures/, from the recorded rows")]
    shown += [
        (f"{axis}=[...]", f"default: those of the stage; from {', '.join(table)}")
        for axis, table in _axes(study).items()
    ]
    if study.worlds:
        shown += [("seeds=[...]", "default: those of the stage; range(20) for 0 to 19")]
    defaults = {**_GENERAL, **study.options}
    defaults["out"] = StudyOption("out", _GENERAL["out"].meaning, "folder", str(study.out))
    for key, option in defaults.items():
        usual = "" if option.default is None else f" (default: {option.default})"
        shown.append((f"{key}=...", f"{option.meaning}{usual}"))
    shown.append(("KEY=VALUE", f"an override of every {study.unit}, such as {study.example}"))
    lines += [f"  {key:<20} {meaning}" for key, meaning in shown]
    lines += ["", f"A finished {study.unit} is not run again; a failed one is."]
    return "\n".join(lines)


_GENERAL = {
    "workers": StudyOption("workers", "processes, one thread each", "whole", 2),
    "budget_minutes": StudyOption("budget_minutes", "minutes after which nothing new begins", "time"),
    "out": StudyOption("out", "the folder of the results", "folder"),
}


def _axes(study: Study) -> dict[str, tuple[str, ...]]:
    """The axes that the command line can replace, with their names."""
    tables = {"worlds": study.worlds, "methods": study.methods, "settings": study.settings}
    return {axis: tuple(table) for axis, table in tables.items() if table}


def _of_the_configuration(override: Override, keys: Sequence[str], study: Study) -> None:
    """Checks that a key belongs to the configuration of a job.

    Raises:
        UserError: if it does not, or the override has several values.
    """
    key = override.key_or_group
    conf = conf_folder()
    groups = [path.name for path in conf.iterdir() if path.is_dir()]
    known = {*groups, *read_yaml(conf / "config.yaml")} - {"defaults", "out", "workers", "parallel", "dask"}
    if study.worlds:
        known -= {"seed"}
    if override.is_sweep_override():
        raise UserError(f"{override.input_line} names several values", "", "Run one command for each value")
    if key.partition(".")[0] not in known:
        example = f"An override of every {study.unit} looks like {study.example}"
        raise UserError("there is no such option", key, example if "." in key else did_you_mean(key, keys))


def _items(override: Override) -> list[Any]:
    """The values of a list or a range, or a single value.

    Raises:
        UserError: for values separated by commas without brackets.
    """
    value = override.value()
    if isinstance(value, RangeSweep):
        numbers = range(int(value.start or 0), int(value.stop or 0), int(value.step))
        return list(numbers[: _RANGE + 1])
    if override.is_sweep_override():
        key, _, rest = str(override.input_line).partition("=")
        raise UserError("several values need brackets", str(override.input_line), f"Write {key}=[{rest}]")
    return value if isinstance(value, list) else [value]


def _names(given: Mapping[str, Override], key: str, choices: Sequence[str]) -> tuple[str, ...] | None:
    """The typed names in the order of the choices; None if the key was not typed.

    Raises:
        UserError: if a name is not among the choices, or there are no names.
    """
    if key not in given:
        return None
    names = [f"{each:g}" if type(each) is float else str(each) for each in _items(given[key])]
    odd = [name for name in names if name not in choices]
    if odd or not names:
        raise UserError(
            f"expected some of {', '.join(choices)}; got {', '.join(odd) or 'none'}",
            key,
            did_you_mean(odd[0], choices) if odd and len(choices) > 12 else "",
        )
    return tuple(name for name in choices if name in names)


def _seeds(given: Mapping[str, Override], study: Study) -> tuple[int, ...] | None:
    if "seeds" not in given:
        return None
    if not study.worlds:
        raise UserError("this study has one seed", "seeds", "Write seed=1, an override")
    found = _items(given["seeds"])
    if not 0 < len(found) <= _RANGE or not all(type(seed) is int and seed >= 0 for seed in found):
        raise UserError(
            "expected whole numbers of at least 0",
            str(given["seeds"].input_line),
            "Write seeds=[0,1] or seeds=range(20)",
        )
    return tuple(dict.fromkeys(found))


def _number(override: Override, option: StudyOption) -> Any:
    """The value of an option.

    Raises:
        UserError: if it is not of the option's kind.
    """
    value: Any = override.value()
    if option.kind == "folder":
        text = str(value)
        if value is None or isinstance(value, list | dict) or not text:
            raise UserError("expected a folder", str(override.input_line))
        return text
    if value is None and option.default is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if option.kind == "whole" and (not number or not isinstance(value, int) or value < 1):
        raise UserError(f"expected a whole number of at least 1; got {value}", option.key)
    if not number or not 0 <= float(value) < float("inf") or (value == 0 and option.kind != "time"):
        raise UserError(f"expected a number above 0; got {value}", option.key)
    return value
