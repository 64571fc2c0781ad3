"""The parts of a study: the reproduction of one paper's experiments.

A study runs in *stages* (a table or a figure of the paper each). A stage is the Cartesian product of *worlds*
(data sets with known truth), *methods* (decisions of the configuration), *settings* (further overrides) and
*seeds*; one combination is a *job*, or a *repeat* where rounds learn from each other (see
`rehearsal_torch.studies.plan`). *Groups* name several worlds, methods or settings at once, and *facts* are
numbers that the study's own code reads. All of it is data, which `rehearsal_torch.studies.study_files` reads
from the study's folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STUDIES = ("auf", "cbo", "online", "sepsis")
# What a job may be known by.
KEY = ("stage", "world", "method", "setting", "seed")
# What an option of a study may be.
KINDS = ("whole", "number", "folder")


@dataclass(frozen=True)
class World:
    """A world of a study, in one setting.

    Attributes:
        name: As it is typed.
        overrides: The overrides that select it.
        dataset: The name in the study's rows.
        setting: What else distinguishes it in the rows; empty for nothing.
        figure: The figure or table of the paper that it is a panel of; empty for none.
        rounds: T, where the world has a number of its own; 0 otherwise.
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
        name: As it is typed, and as rows name it.
        overrides: The overrides that select it.
        counterpart: The graphs that replace its own; empty for none.
        settings: Whether it is run once for each setting of the stage (False: once without).
    """

    name: str
    overrides: tuple[str, ...]
    counterpart: str = ""
    settings: bool = True


@dataclass(frozen=True)
class Block:
    """A part of a stage: worlds x methods x settings, in this order.

    Attributes:
        worlds: Names.
        methods: Names.
        settings: Names of the study's settings; empty for none.
        cross: Axes of settings, each name to overrides; empty for none.
        overrides: Further overrides of each job.
        seeds: The only seeds that it is run for; None for all.
        replaceable: What may be replaced on the command line, of "worlds", "methods" and "settings".
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
        name: As it is typed.
        about: A phrase for the help.
        file: Its rows; empty where the study has one file for all stages.
        alone: Whether its jobs run one at a time, because seconds are measured.
        seeds: Its seeds.
        blocks: Its jobs.
        cases: What it runs, for a study whose jobs are not of worlds and methods.
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
    """An option of a study's own.

    Attributes:
        key: As it is typed.
        meaning: For the help.
        kind: One of `KINDS`; numbers are above 0, whole numbers at least 1.
        default: Its value where it is left out; None for none.
        shared: Whether all rows of a folder must agree on it.
    """

    key: str
    meaning: str
    kind: str
    default: float | str | None = None
    shared: bool = False


@dataclass(frozen=True)
class Study:
    """What study.yaml says.

    Attributes:
        name: The study's name, and that of its folder.
        title: The heading of its README.
        about: A sentence for the help.
        source: The paper.
        out: The default folder of results.
        unit: What is done once and recorded: "job" or "repeat".
        example: An override of all jobs, for the help.
        key: The attributes of a job that it is known by, of `KEY`.
        overrides: Overrides of every job.
        worlds: Name to world.
        methods: Name to method.
        settings: Name of a setting to overrides.
        groups: Name to the worlds or methods that it stands for.
        stages: Name to stage.
        options: Name to option, of the study's own options.
        facts: Whatever else the study's code reads.
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
