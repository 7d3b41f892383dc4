"""The CPU level that the launcher finds: against the system's loader, and with features taken away."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from blocklang.target import X86_LEVELS
from tests.aot.conftest import ROOT

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="levels are of x86-64 CPUs"
)

# CPUID is answered with all features but one; XGETBV is this machine's.
WITHOUT_ONE = """
#include <cpuid.h>

static unsigned word, missing;

static int answer(unsigned *a, unsigned *b, unsigned *c, unsigned *d, unsigned of_b, unsigned of_c)
{
    *a = *d = 0;
    *b = word == of_b ? ~missing : ~0u;
    *c = word == of_c ? ~missing : ~0u;
    return 1;
}

#define __get_cpuid(leaf, a, b, c, d) answer(a, b, c, d, 0, leaf)
#define __get_cpuid_count(leaf, sub, a, b, c, d) answer(a, b, c, d, leaf, 0)
#include "launch.c"
#include <stdio.h>

int main(void)
{
    static const unsigned words[] = {1, 0x80000001, 7};
    printf("none %d\\n", blocklang_level_of_cpu());
    for (int i = 0; i < 3; i++)
        for (int bit = 0; bit < 32; bit++) {
            word = words[i];
            missing = 1u << bit;
            printf("%x.%d %d\\n", word, bit, blocklang_level_of_cpu());
        }
    (void)&blocklang_choose, (void)&blocklang_launch, (void)&blocklang_status_text;
    return 0;
}
"""
# The features of each level, from the AMD64 supplement of the System V ABI, as bits of CPUID's leaves: ECX of
# 1 and 80000001, EBX of 7.
NEEDED = {
    2: "1.0 1.9 1.13 1.19 1.20 1.23 80000001.0",
    3: "1.12 1.22 1.27 1.28 1.29 80000001.5 7.3 7.5 7.8",
    4: "7.16 7.17 7.28 7.30 7.31",
}


def test_every_feature_of_a_level_is_needed(linker: list[str], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(WITHOUT_ONE, encoding="utf-8")
    include = f"-I{ROOT / 'blocklang/aot'}"
    command = [*linker, "-std=gnu11", "-pthread", "-w", include, "main.c", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    found = {name: int(level) for name, level in re.findall(r"^(\S+) (\d)$", said, re.MULTILINE)}
    most = found.pop("none")  # what the operating system saves of the registers
    expected = dict.fromkeys(found, most)
    for level, bits in NEEDED.items():
        expected |= {bit: min(most, level - 1) for bit in bits.split()}
    assert found == expected


def test_the_systems_loader_finds_the_same(
    build: Callable[[str], Path], run_without_compiler: Callable[..., str]
) -> None:
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    said = (
        subprocess.run([loader, "--help"], capture_output=True, text=True).stdout if loader.exists() else ""
    )
    supported = re.findall(r"^  (x86-64-v\d) \(supported", said, re.MULTILINE)
    if "x86-64-v" not in said:
        pytest.skip("the C library's loader names no levels")
    ours = run_without_compiler(build("add") / "site", "import add; print(add.cpu_level())").strip()
    assert ours == (max(supported, key=X86_LEVELS.index) if supported else "None")
