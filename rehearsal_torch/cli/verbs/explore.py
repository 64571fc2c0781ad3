"""The verb explore: serves the page of a run on this machine, until Ctrl-C.

Needs FastAPI and uvicorn (``pip install 'rehearsal-torch[app]'``), as nothing else in the package does.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from rehearsal_torch.cli.errors import Stopped
from rehearsal_torch.explorer.loopback import listening
from rehearsal_torch.files.package_paths import APP
from rehearsal_torch.user_error import UserError


def explore(folders: Sequence[Path], given: Mapping[str, str]) -> int:
    """Serves the page; returns 0 after Ctrl-C."""
    missing = [name for name in APP if find_spec(name) is None]
    if missing:
        fault = f"the page needs {' and '.join(missing)}; not installed"
        raise UserError(fault, "", "Type pip install 'rehearsal-torch[app]'")
    from rehearsal_torch.explorer.server import serve
    from rehearsal_torch.explorer.session_choice import session_for

    listener = listening(given["host"], int(given["port"]))
    try:
        session = session_for(folders[0], given["method"])
        serve(session, listener, given["host"], browser=given["open"] == "true")
    except KeyboardInterrupt as error:
        # Ctrl-C is the regular end; a termination signal keeps its exit code.
        if isinstance(error, Stopped) and str(error) != "SIGINT":
            raise
    finally:
        listener.close()
    print("Ended.", flush=True)
    return 0
