"""``python -m tacit`` is the command ``tacit``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without what it needs, say what to install."""
    try:
        from .cli.program import main as run

        run()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "prompt_toolkit"):
            raise
        sys.stderr.write(f"error: the command line needs {error.name}\nhint: pip install 'tacit[cli]'\n")
        sys.exit(2)
    except KeyboardInterrupt:  # while it is loaded: nothing has begun
        sys.exit(130)


if __name__ == "__main__":
    main()
