"""Ctrl-C beside Spark: raised in the middle of a call to Java it is told in many words, and Java may stay behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_LOOK = 0.1  # seconds
_PATIENCE = 20.0  # seconds for tasks to end


@contextmanager
def counted() -> Iterator[list[int]]:
    """Ctrl-C only adds to a list."""
    interrupts: list[int] = []

    def count(number: int, _: Any) -> None:
        interrupts.append(number)

    in_main = current_thread() is main_thread()
    before = signal.signal(signal.SIGINT, count) if in_main else None
    try:
        yield interrupts
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)


@contextmanager
def deferred() -> Iterator[None]:
    """Ctrl-C takes effect at the end."""
    with counted() as interrupts:
        yield
    if interrupts:
        raise KeyboardInterrupt


def cancelling(spark: SparkSession) -> None:
    """Let Ctrl-C end the jobs of a session, as Spark does where the main thread starts it."""

    def cancel(_: int, __: Any) -> None:
        try:
            spark.sparkContext.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    if current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, cancel)


def until_interrupted(spark: SparkSession, work: Callable[[], T]) -> T:
    """What some work on Spark gives. Ctrl-C ends its tasks, and it may clean up; a second one does not wait for that.

    It is done in another thread: this one is in no call when the interrupt comes.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    with counted() as interrupts:
        thread = Thread(target=do, daemon=True)
        thread.start()
        while thread.is_alive() and not interrupts:
            thread.join(_LOOK)
        until = time.monotonic() + _PATIENCE
        while thread.is_alive() and len(interrupts) == 1 and time.monotonic() < until:
            spark.sparkContext.cancelAllJobs()  # again and again: others may follow
            thread.join(_LOOK)
    if interrupts:
        raise KeyboardInterrupt
    if failed:
        raise failed[0]
    return done[0]
