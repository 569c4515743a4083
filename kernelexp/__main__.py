"""The program: `kernelexp`, and `python -m kernelexp`."""

from __future__ import annotations

import sys

from kernelexp.system.process import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> None:
    """Signals are handled before anything that takes time is imported."""
    interrupts.handle_signals()
    try:
        import kernelexp.cli

        kernelexp.cli.main()
    except interrupts.Interrupted as interrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(interrupt.exit_code)
    except Exception:  # Python would exit with 1, which says that a gate found a difference
        _say_bug()


def _say_bug() -> NoReturn:
    import traceback

    from kernelexp.model.errors import ENVIRONMENT

    traceback.print_exc()
    sys.stderr.write("error: this is a bug in kernelexp: please report the lines above.\n")
    sys.exit(ENVIRONMENT)


if __name__ == "__main__":
    main()
