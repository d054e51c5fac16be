"""State of the whole process is shared by threads without harm."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from tacit import process
from tacit.process import deep_recursion
from tacit.sql import Catalog, Column, Table, compile_batch


def test_the_limit_is_the_largest_in_use_and_then_the_one_of_before() -> None:
    before = sys.getrecursionlimit()
    with deep_recursion(before + 500):
        with deep_recursion(before + 900), deep_recursion(10):
            assert sys.getrecursionlimit() == before + 900
        assert sys.getrecursionlimit() == before + 500
    assert sys.getrecursionlimit() == before


def test_leaving_first_does_not_lower_the_limit_of_another_thread() -> None:
    before = sys.getrecursionlimit()
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with deep_recursion(before + 2000):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with deep_recursion(before + 1000):
        leave.set()
        thread.join()
        assert sys.getrecursionlimit() == before + 1000
    assert sys.getrecursionlimit() == before, "the raised limit of the first thread is not what is restored"


def test_deep_statements_compile_in_many_threads_at_once() -> None:
    before = sys.getrecursionlimit()
    catalog = Catalog((Table("t", (Column("i", "INTEGER"),)),))
    text = f"SELECT count(*) FROM t WHERE {'(' * 99}i = 1{')' * 99}"
    failures: list[BaseException] = []

    def compile_some() -> None:
        try:
            for _ in range(5):
                compile_batch(text, catalog)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=compile_some) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sys.getrecursionlimit() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_does_not_inherit_a_lock_that_another_thread_holds() -> None:
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with process._recursion_limit._lock, process._blas_limit._lock, process.memory_ledgers._lock:
            held.set()
            end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that hangs is killed, and the test fails
        with deep_recursion(5000), process.one_blas_thread():
            process.memory_ledgers.get("none")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    end.set()
    thread.join()
    assert status == 0
