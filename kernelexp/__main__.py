"""The program: `kernelexp`, and `python -m kernelexp`."""

from __future__ import annotations

import sys

from kernelexp import interrupts


def main() -> None:
    """Signals are handled before anything that takes time is imported."""
    interrupts.handle_signals()
    try:
        from kernelexp import cli

        cli.main()
    except interrupts.Interrupted as interrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(interrupt.exit_code)


if __name__ == "__main__":
    main()
