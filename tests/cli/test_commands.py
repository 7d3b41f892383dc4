"""The command as a user types it: what it prints, and what each mistake is answered.

Commands run in this process, in the directory of the scripts; the answers to mistakes are golden files.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import blocklang.ops  # noqa: F401  (registers the operations)
from blocklang.cli import main
from blocklang.ir import parse_kernel, print_kernel, verify

GoldenCheck = Callable[[str, str], None]
SCRIPTS = Path(__file__).parent / "golden"
SIG = ["--sig", "*fp32,*fp32,*fp32,i32", "-D", "BLOCK=256"]


@pytest.fixture(autouse=True)
def in_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCRIPTS)
    monkeypatch.delenv("NO_COLOR", raising=False)


def invoke(arguments: Sequence[str]) -> Result:
    result = CliRunner().invoke(main, list(arguments), prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def output_of(*arguments: str) -> str:
    """Standard output of a command that must succeed."""
    result = invoke(arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


# ---- finding the kernel ----


@pytest.mark.parametrize(
    "arguments",
    [
        ("one.py", "--from-run"),
        ("one.py:add", "--from-run"),
        ("one.py", *SIG),
        ("one.py:add", *SIG),
        ("several.py:negate", "--from-run"),
        ("several.py:double", "--sig", "*fp32", "-D", "BLOCK=8"),
    ],
)
def test_block_ir_is_found(arguments: tuple[str, ...]) -> None:
    text = output_of("ir", *arguments, "--level", "block")
    kernel = parse_kernel(text)
    verify(kernel)
    assert kernel.level == "block"
    assert print_kernel(kernel) == text


def test_from_run_stops_at_the_launch() -> None:
    result = invoke(["ir", "one.py", "--from-run", "--level", "block"])
    assert "standard error" in result.stderr
    assert "standard error" not in result.stdout
    assert "not reached" not in result.output


def test_from_run_passes_arguments_on() -> None:
    plain = output_of("ir", "one.py", "--from-run", "--after", "frontend")
    divisible = output_of("ir", "one.py", "--from-run", "4096", "--after", "frontend")
    assert "%n: i32)" in plain
    assert "%n: i32 divisible=16)" in divisible


def test_from_run_sees_launches_of_other_threads(tmp_path: Path) -> None:
    script = tmp_path / "threaded.py"
    program = f"""
        import sys, threading
        sys.path.insert(0, {str(SCRIPTS)!r})
        import one
        thread = threading.Thread(target=one.main)
        thread.start()
        thread.join()
    """
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    result = invoke(["ir", str(script), "--from-run", "--after", "frontend"])
    assert result.exit_code == 0, result.output
    assert result.stdout == output_of("ir", "one.py", "--from-run", "--after", "frontend")
    assert "Traceback" not in result.stderr


def test_from_run_equals_the_signature_that_it_found() -> None:
    signature = ["--sig", "*fp32:16,*fp32:16,*fp32:16,i32", "-D", "BLOCK=256"]
    from_run = output_of("ir", "one.py", "--from-run", "--after", "frontend")
    told = output_of("ir", "one.py", *signature, "--after", "frontend")
    strip = re.compile(r' alias="\w+"')
    assert strip.sub("", from_run) == strip.sub("", told)


# ---- the stages ----


def test_all_levels_by_default() -> None:
    text = output_of("ir", "one.py", *SIG)
    assert re.findall(r"^(kernel|tile|placed) @add", text, re.MULTILINE) == ["kernel", "tile", "placed"]


@pytest.mark.parametrize("level", ["block", "tile", "placed"])
def test_levels_parse_back(level: str) -> None:
    text = output_of("ir", "one.py", *SIG, "--level", level)
    assert print_kernel(parse_kernel(text)) == text


def test_after_a_pass() -> None:
    assert output_of("ir", "one.py", *SIG, "--after", "lower_to_tile").startswith("tile @add")
    assert output_of("ir", "one.py", *SIG, "--after", "frontend").startswith("kernel @add")


def test_all_passes_names_each() -> None:
    from blocklang.passes.pipeline import pass_names

    text = output_of("ir", "one.py", *SIG, "--all-passes")
    assert re.findall(r"^// after (\w+)", text, re.MULTILINE) == ["frontend", *pass_names()]


def test_schedule_and_times_are_comments() -> None:
    text = output_of("ir", "one.py", *SIG, "--level", "placed", "--schedule", "--time")
    assert "// schedule for host" in text
    assert re.search(r"^// total +[\d.]+ ms$", text, re.MULTILINE)
    assert parse_kernel(text).level == "placed"


def test_schedule_alone() -> None:
    assert output_of("ir", "one.py", *SIG, "--schedule").startswith("// schedule for host")


def test_llvm() -> None:
    assert re.search(r"^define .*@.?blocklang_add\b", output_of("llvm", "one.py", *SIG), re.MULTILINE)
    optimised = output_of("llvm", "one.py", *SIG, "--optimised")
    assert re.search(r"^define .*@.?blocklang_add\b", optimised, re.MULTILINE)


def test_asm() -> None:
    assert re.search(r"^_?blocklang_add:", output_of("asm", "one.py", *SIG), re.MULTILINE)


# ---- files of IR ----


def test_a_file_of_ir_is_printed() -> None:
    assert output_of("ir", "add.blir") == (SCRIPTS / "add.blir").read_text(encoding="utf-8")


def test_a_file_of_ir_is_lowered() -> None:
    assert output_of("ir", "add.blir", "--level", "placed").startswith("placed @add")
    assert "blocklang_add" in output_of("asm", "add.blir")


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "add.blir"
    assert output_of("ir", "one.py", *SIG, "--after", "frontend", "-o", str(file)) == ""
    again = output_of("ir", str(file), "--level", "placed")
    assert again == output_of("ir", "one.py", *SIG, "--level", "placed")


# ---- colours ----


def test_colours_on_request_only() -> None:
    plain = output_of("ir", "add.blir")
    coloured = output_of("ir", "add.blir", "--color")
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert click.unstyle(coloured) == plain
    assert output_of("ir", "add.blir", "--no-color") == plain


# ---- running ----


def test_run_passes_arguments_on() -> None:
    assert "not reached" in output_of("run", "one.py", "64")


def test_run_shows_the_scripts_traceback_only() -> None:
    result = invoke(["run", "raises.py"])
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "raises.py" in lines[1]
    assert lines[-1] == "ValueError: the script's own mistake"
    assert "runpy" not in result.stderr


def test_run_keeps_the_exit_status(tmp_path: Path) -> None:
    script = tmp_path / "leaves.py"
    script.write_text("import sys\nsys.exit(7)\n", encoding="utf-8")
    assert invoke(["run", str(script)]).exit_code == 7


# ---- mistakes ----

MISTAKES: dict[str, list[str]] = {
    "no_such_file": ["ir", "ona.py", "--from-run"],
    "no_such_script": ["run", "missing/one.py"],
    "a_directory": ["ir", "."],
    "no_kernel": ["ir", "none.py", *SIG],
    "no_launch": ["ir", "never.py", "--from-run"],
    "no_types": ["ir", "one.py"],
    "several_launched": ["ir", "several.py", "--from-run"],
    "several_defined": ["ir", "several.py", "--sig", "*fp32", "-D", "BLOCK=8"],
    "unknown_kernel_launched": ["ir", "several.py:negat", "--from-run"],
    "unknown_kernel_defined": ["ir", "one.py:sub", *SIG],
    "kernel_name": ["ir", "one.py:not a name", *SIG],
    "too_few_types": ["ir", "one.py", "--sig", "*fp32,i32", "-D", "BLOCK=256"],
    "missing_constant": ["ir", "one.py", "--sig", "*fp32,*fp32,*fp32,i32"],
    "unknown_constant": ["ir", "one.py", *SIG, "-D", "BLOC=256"],
    "wrong_type": ["asm", "one.py", "--sig", "*fp32,*fp33,*fp32,i32", "-D", "BLOCK=256"],
    "two_selections": ["ir", "one.py", *SIG, "--after", "frontend", "--level", "block"],
    "both_sources": ["llvm", "one.py", "--from-run", *SIG],
    "arguments_without_run": ["ir", "one.py", "4096", *SIG],
    "kernel_at_fault": ["ir", "wrong.py", "--from-run"],
    "kernel_at_fault_in_run": ["run", "wrong.py"],
    "ir_syntax": ["ir", "unparsable.blir"],
    "ir_rule": ["ir", "unverifiable.blir"],
    "ir_options": ["ir", "add.blir", "--from-run"],
    "ir_of_lower_level": ["asm", "lowered.blir"],
    "ir_level_above": ["ir", "lowered.blir", "--level", "tile"],
    "unwritable_output": ["ir", "add.blir", "-o", "missing/file.blir"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(golden: GoldenCheck, name: str) -> None:
    result = invoke(MISTAKES[name])
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    answer = result.stderr.replace(str(SCRIPTS), "SCRIPTS").replace(os.sep, "/")
    golden(f"mistake_{name}.txt", f"{answer}exit status {result.exit_code}\n")


def test_unknown_pass_lists_the_valid_ones() -> None:
    from blocklang.passes.pipeline import pass_names

    result = invoke(["ir", "one.py", *SIG, "--after", "expand_math"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no pass 'expand_math'\nhelp: did you mean expand_maths?")
    assert all(name in result.stderr for name in ("frontend", *pass_names()))


def test_unknown_level_lists_the_valid_ones() -> None:
    result = invoke(["ir", "one.py", *SIG, "--level", "machine"])
    assert result.exit_code == 2
    assert "'machine' is not one of 'block', 'tile', 'placed'" in result.stderr


def test_a_file_that_is_not_python() -> None:
    result = invoke(["ir", "syntax.py", "--from-run"])
    assert result.exit_code == 1
    assert result.stderr.startswith("syntax.py:5:")
    assert "    def broken(x:\n" in result.stderr


# ---- help ----


@pytest.mark.parametrize("command", sorted(main.commands))
def test_help_shows_an_example(command: str) -> None:
    examples = "blocklang doctor" if command == "doctor" else f"\n    blocklang {command} "
    assert examples in output_of(command, "--help")


def test_version() -> None:
    assert output_of("--version").startswith("blocklang ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_BLOCKLANG_COMPLETE", f"{shell}_source")
    assert "blocklang" in invoke([]).output
