"""The signals that ask a command to end, and what ends with it.

Apart from `processes`, because every command begins here, also those that start none.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked this command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class _Ending:
    """The signal that ends this process, 0 for none yet; what is to be called then."""

    ending = 0
    stops: tuple[Callable[[], None], ...] = ()
    at_once = False


def handle_signals() -> None:
    """SIGINT, SIGTERM and SIGHUP end this process with all that it has started.

    The first one kills the children and raises Interrupted in the main thread; a second one ends
    the process at once. One that was ignored when the process started (nohup) stays ignored.
    """
    sys.unraisablehook = _end_unraisable
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)


def call_when_interrupted(stop: Callable[[], None]) -> None:
    """Has `stop` called by the signal's handler, in the main thread, before it raises."""
    _Ending.stops += (stop,)


def end_at_once() -> None:
    """Lets a signal end the process as soon as its children are killed, without a way out through
    code that waits for what nobody will send.

    Python calls handlers in the main thread alone, which does not wake where another thread has
    taken the signal (1 of some 1,000 servers went on for a minute): a thread of its own is told.
    """
    import threading  # not at the start of every command

    _Ending.at_once = True
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_end_when_written, args=(reader,), daemon=True).start()


def _end_when_written(reader: int) -> None:
    """Ends the process once the number of one of these signals is written to a pipe."""
    while data := os.read(reader, 1):
        if data[0] in SIGNALS:
            for stop in _Ending.stops:
                stop()
            os._exit(128 + data[0])


def raise_if_ending() -> None:
    """Raises Interrupted in any thread once a signal has come."""
    if _Ending.ending:
        raise Interrupted(_Ending.ending)


def _end_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Ends the process, where Python would print a traceback and go on.

    No code can catch what is raised in a destructor or in the callback of a weak reference, and
    each import ends with such a callback (1 of 220 signals within the first 0.9 s came in one).
    """
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)
        return
    os.write(2, b"interrupted\n")
    os._exit(unraisable.exc_value.exit_code)  # the watchdog kills what is left


def _on_signal(number: int, _frame: FrameType | None) -> None:
    if _Ending.ending:
        os._exit(128 + number)  # the watchdog kills what is left
    _Ending.ending = number
    for stop in _Ending.stops:
        stop()
    if _Ending.at_once:
        os._exit(128 + number)
    raise Interrupted(number)
