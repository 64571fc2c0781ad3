"""The machine that rows are measured on."""

import platform
from pathlib import Path


def processor() -> str:
    """The processor's name and model, as far as the system tells."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor() or platform.machine()
    lines = path.read_text(encoding="utf-8").splitlines()
    known = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    named = f"{known.get('model name', platform.machine())}, family {known.get('cpu family', '?')}"
    return f"{named}, model {known.get('model', '?')}"
