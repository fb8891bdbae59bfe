"""What a process frees stays with it and with those that it starts."""

import os
import platform
import subprocess
import sys

import pytest

PAGES = """
import resource
def large():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        bytearray(b"x") * 2**25
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
large()
print(large())
"""
"""Prints the pages of memory of large arrays, after some earlier ones."""

KEEP = "from common.base.machine import keep_memory\nkeep_memory()\n"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of GNU's C library")
def test_large_arrays_cost_no_new_pages_here_or_in_what_is_started() -> None:
    started = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {PAGES!r}])"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    pages = []
    for code in (PAGES, KEEP + PAGES, KEEP + started):
        command = [sys.executable, "-c", code]
        pages.append(int(subprocess.check_output(command, env=environment)))
    assert pages[0] > 1000
    assert max(pages[1:]) < 100
