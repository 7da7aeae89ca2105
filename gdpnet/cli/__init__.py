"""The command line: one file a command. It needs the extra `gdpnet[cli]`.

Heavy imports stand inside the functions of the commands.
"""

import sys


def main() -> None:
    """Run the command `gdpnet`, or say in a sentence what it needs."""
    try:
        from gdpnet.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(
            f"The command gdpnet needs {error.name}, which is not installed. "
            "pip install 'gdpnet[cli]'"
        )
    app(prog_name="gdpnet")
