"""The data of a study: the reproduction of one paper's experiments.

A study consists of *stages*, one for each table or figure of the paper. A stage is the Cartesian product of
*worlds* (data sets with known truth), *methods* (decisions of the configuration), *settings* (further
overrides) and *seeds*; one combination is a *job*, called a *repeat* if its rounds learn from each other (see
`rehearsal_torch.studies.plan`). *Groups* name several worlds, methods or settings at once, and *facts* are
constants that the code of the study reads. `rehearsal_torch.studies.study_files` reads all of this from the
study's folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STUDIES = ("auf", "calibration", "cbo", "online", "sepsis")
# The attributes that can identify a job.
KEY = ("stage", "world", "method", "setting", "seed")
# The kinds of options.
KINDS = ("whole", "number", "folder")


@dataclass(frozen=True)
class World:
    """A world of a study, in one setting.

    Attributes:
        name: Name on the command line.
        overrides: The overrides that select it.
        dataset: Name in the study's rows.
        setting: Setting in the study's rows; may be empty.
        figure: The figure or table of the paper that shows it; empty for none.
        rounds: T, the number of rounds; 0 if it is an option of the study.
    """

    name: str
    overrides: tuple[str, ...]
    dataset: str
    setting: str = ""
    figure: str = ""
    rounds: int = 0


@dataclass(frozen=True)
class Method:
    """A method of a study.

    Attributes:
        name: Name on the command line and in the study's rows.
        overrides: The overrides that select it.
        counterpart: The kind of graphs that replace those of the world; empty for none.
        settings: Whether it is run for each setting of the stage; False for a single run without setting.
    """

    name: str
    overrides: tuple[str, ...]
    counterpart: str = ""
    settings: bool = True


@dataclass(frozen=True)
class Block:
    """A part of a stage: the product of worlds, methods and settings, in this order.

    Attributes:
        worlds: Names of worlds.
        methods: Names of methods.
        settings: Names of the study's settings; may be empty.
        cross: Further axes, each a mapping of names to overrides; may be empty.
        overrides: Further overrides of each job.
        seeds: The seeds it is restricted to; None for no restriction.
        replaceable: Those of "worlds", "methods" and "settings" that the command line can replace.
    """

    worlds: tuple[str, ...]
    methods: tuple[str, ...]
    settings: tuple[str, ...] = ()
    cross: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    overrides: tuple[str, ...] = ()
    seeds: tuple[int, ...] | None = None
    replaceable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stage:
    """A stage of a study.

    Attributes:
        name: Name on the command line.
        about: Description for the help.
        file: File of its rows; empty if all stages of the study have the same file.
        alone: Whether its jobs run one at a time, since their seconds are measured.
        seeds: The default seeds.
        blocks: The parts of the stage.
        cases: The cases of a study whose jobs do not consist of worlds and methods.
    """

    name: str
    about: str
    file: str = ""
    alone: bool = False
    seeds: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    cases: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class StudyOption:
    """An option of a single study.

    Attributes:
        key: Name on the command line.
        meaning: Description for the help.
        kind: One of `KINDS`; numbers are above 0, whole numbers at least 1.
        default: Default value; None for none.
        shared: Whether all rows of a folder must have the same value.
    """

    key: str
    meaning: str
    kind: str
    default: float | str | None = None
    shared: bool = False


@dataclass(frozen=True)
class Study:
    """The content of study.yaml.

    Attributes:
        name: Name of the study and of its folder.
        title: Title of the README.
        about: Description for the help.
        source: The paper.
        out: The default folder of results.
        unit: What a job is called: "job" or "repeat".
        example: An example of an override, for the help.
        key: The attributes that identify a job, of `KEY`.
        overrides: Overrides of every job.
        worlds: Name to world.
        methods: Name to method.
        settings: Name of a setting to overrides.
        groups: Name of a group to the worlds, methods or settings it stands for.
        stages: Name to stage.
        options: Name to option.
        facts: Constants for the code of the study.
    """

    name: str
    title: str
    about: str
    source: str
    out: Path
    unit: str
    example: str
    key: tuple[str, ...] = KEY
    overrides: tuple[str, ...] = ()
    worlds: Mapping[str, World] = field(default_factory=dict)
    methods: Mapping[str, Method] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stages: Mapping[str, Stage] = field(default_factory=dict)
    options: Mapping[str, StudyOption] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
