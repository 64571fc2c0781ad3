"""The verb explore: serves the page of a run on this machine, until Ctrl-C.

Needs FastAPI and uvicorn (``pip install 'rehearsal-torch[app]'``), as nothing else in the package does.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.signals import Stopped
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.cli.subcommand import Option, Verb
from rehearsal_torch.explorer.loopback import listening
from rehearsal_torch.files.installation import APP
from rehearsal_torch.user_error import UserError

OPTIONS = (
    Option("port", "the port; 0 takes a free one", "0"),
    Option("host", "the loopback address to listen on", "127.0.0.1"),
    Option("method", "for a file of trials: the method that proposes", "excbo"),
    Option("open", "whether a browser is opened", "false", ("true", "false")),
)


def main(arguments: Sequence[str]) -> int:
    """Runs the command.

    Args:
        arguments: The folder, as RUN or run=RUN, and the options.

    Returns:
        The exit code: 0 after Ctrl-C; 2 for an error in the arguments or the folder.
    """
    if not arguments or any(text in ("-h", "--help") for text in arguments):
        print(_help())
        return 0 if arguments else 2
    return exit_code(lambda: _run(arguments), "Interrupted.")


def read(arguments: Sequence[str]) -> tuple[Path, dict[str, str], int]:
    """The folder, the options, and the port.

    Raises:
        UserError: for an error in the arguments.
    """
    verb = Verb("explore", "", OPTIONS, lambda _: 0, "explore")
    folders, given = verb.read_with_paths(arguments, "run")
    if len(folders) != 1:
        raise UserError(
            f"expected one run folder; got {len(folders)}",
            "",
            f"For example: {spoken('explore')} runs/own_problem/FOLDER",
        )
    if not (given["port"].isascii() and given["port"].isdecimal()) or int(given["port"]) > 65535:
        raise UserError("expected a whole number from 0 to 65535", f"port={given['port']}")
    return folders[0], given, int(given["port"])


def _run(arguments: Sequence[str]) -> int:
    folder, given, port = read(arguments)
    missing = [name for name in APP if find_spec(name) is None]
    if missing:
        raise UserError(
            f"the page needs {' and '.join(missing)}; not installed",
            "",
            "Type pip install 'rehearsal-torch[app]'",
        )
    from rehearsal_torch.explorer.sessions import serve_folder

    listener = listening(given["host"], port)
    try:
        serve_folder(folder, given["method"], listener, given["host"], browser=given["open"] == "true")
    except KeyboardInterrupt as error:
        # Ctrl-C is how the page is meant to end; a termination signal keeps its exit code.
        if isinstance(error, Stopped) and str(error) != "SIGINT":
            raise
    finally:
        listener.close()
    print("Ended.", flush=True)
    return 0


def _help() -> str:
    about = (
        "Serves a page on this machine, on which the fitted method of a run is asked about cases,\n"
        "episodes and actions, or a file of trials is continued. RUN is a run of rehearsal decide, a model\n"
        "that was saved, or the file of rt.CausalOptimiser. Needs pip install 'rehearsal-torch[app]'."
    )
    options = Verb("explore", "", OPTIONS, lambda _: 0, "explore").help().splitlines()[4:]
    return "\n".join([about, "", f"Usage: {spoken('explore')} RUN [key=value ...]", "", *options])
