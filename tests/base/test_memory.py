"""What a process frees stays with it and with those that it starts."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of GNU's C library")

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
"""Prints how many pages of memory large arrays cost once there have been some before."""

KEEP = "from common.base.malloc import keep_memory\nkeep_memory()\n"


def pages(code: str, **variables: str) -> int:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")} | variables
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_large_arrays_cost_no_new_pages_here_or_in_what_is_started() -> None:
    assert pages(PAGES) > 1000
    assert pages(KEEP + PAGES) < 100
    started = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {PAGES!r}])"
    assert pages(KEEP + started) < 100


def test_what_the_environment_says_stays() -> None:
    trimmed = {"MALLOC_MMAP_MAX_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
    assert pages(KEEP + PAGES, **trimmed) > 1000
