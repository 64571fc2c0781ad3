"""What a job costs before its first decision: CPU seconds of a shard with one case.

    imports     Python starts and imports every module that such a shard has imported at its end
    decided     configuration, checkpoint and data are read, and the first case is decided: its line is in
                decisions.jsonl
    ended       the shard ends

The first shard imports as it goes and says what there is to import; it is not counted. CPU seconds are those
of the process and of what it waited for. The line is looked for every hundredth of a second.

Run, as a script: python -m benchmarks.scale.start MODULES.json FOLDER ARGUMENT ...
"""

import json
import sys
import threading
import time
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

LOOK = 0.01
MARKS = ("imports", "decided", "ended")


def cpu() -> float:
    """CPU seconds of this process and of what it has waited for."""
    usages = map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in usages)


def main(known: str, folder: str, *arguments: str) -> int:
    """Runs a shard, and prints the CPU seconds of this process at each mark; its exit code."""
    modules, lines = Path(known), Path(folder) / "decisions.jsonl"
    for name in json.loads(modules.read_text(encoding="utf-8")) if modules.exists() else []:
        with suppress(ImportError):
            import_module(name)
    from rehearsal_torch.cli.main import decide
    from rehearsal_torch.cli.main import main as run

    marks = [cpu()]

    def watch() -> None:
        while not (lines.exists() and lines.stat().st_size):
            time.sleep(LOOK)
        marks.append(cpu())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    with redirect_stdout(sys.stderr):
        code = run(decide, [*arguments, f"out={folder}"])
    if code == 0:
        watching.join(60)
    marks.append(cpu())
    if not modules.exists():
        listed = [name for name in sys.modules if name not in ("__main__", "__mp_main__")]
        modules.write_text(json.dumps(listed), encoding="utf-8")
    print(json.dumps(dict(zip(MARKS, marks, strict=True)) if len(marks) == len(MARKS) else {}), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
