"""The generated pages leave nothing out. That the files are in sync is tested in `tests/architecture`."""

from __future__ import annotations

from blocklang.cli import main
from blocklang.passes.pipeline import pass_names
from docs.generators import cli, passes


def test_every_command_has_a_section() -> None:
    page = cli.render()
    assert all(f"\n## blocklang {name}\n" in page for name in main.commands)


def test_help_fits_its_width() -> None:
    assert max(map(len, cli.render().splitlines())) <= cli.WIDTH


def test_passes_stand_in_their_order() -> None:
    assert tuple(each.name for each in passes.list_passes()) == pass_names()


def test_every_pass_explains_itself() -> None:
    page = passes.render()
    for each in passes.list_passes():
        section = page.partition(f"\n## {each.run.__name__}\n")[2].partition("\n## ")[0]
        assert "Requires:" in section, each.name
        assert "Keeps:" in section, each.name
