"""The bytes of run folders, for comparing runs that were made in different ways."""

import csv

# What a run folder holds of clocks: seconds, and the figure and the page that show them.
TIMED = {"status.json", "run.json", "metrics.csv", "report.html", "effort.svg", "effort.png"}
# What a sweep writes beside it.
OF_SWEEPS = {"multirun.yaml", "sweep.json"}


def content(folder):
    """The bytes of a run folder but for clocks, its own name, the number of processes and folders of jobs.

    Returns:
        Name to bytes, ``table.csv`` to rows without seconds, and ``config.yaml`` to lines.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        # Hydra's record of a run holds its folder and its processes.
        of_jobs = name.parts[0].isdigit() or name.parts[0] in (".submitit", ".hydra")
        if path.is_file() and not of_jobs and path.name not in TIMED | OF_SWEEPS and "lock" not in path.name:
            found[str(name)] = path.read_bytes().replace(folder.name.encode(), b"RUN")
    with (folder / "table.csv").open(newline="") as file:
        found["table.csv"] = [
            {name: value for name, value in row.items() if name != "seconds_median"}
            for row in csv.DictReader(file)
        ]
    lines = found["config.yaml"].splitlines()
    found["config.yaml"] = [line for line in lines if not line.startswith(b"workers:")]
    return found
