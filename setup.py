"""The package list, which pyproject.toml cannot state; everything else about the build stands there.

`codegen/` and `runtime/` lie at the top level and are the packages `blocklang.codegen` and
`blocklang.runtime`. The mapping below makes wheels and editable installs right. The links `blocklang/codegen`
and `blocklang/runtime` serve bare checkouts and type checkers alone: discovery must not walk through them,
since an sdist does not carry them and since nothing may be packed twice.
"""

from __future__ import annotations

from setuptools import find_packages, setup

MAPPED = {"blocklang.codegen": "codegen", "blocklang.runtime": "runtime"}


def list_packages() -> list[str]:
    """Every package by the name that users import."""
    linked = [pattern for name in MAPPED for pattern in (name, f"{name}.*")]
    packages: list[str] = find_packages(include=["blocklang", "blocklang.*"], exclude=linked)
    for name, directory in MAPPED.items():
        packages += [name, *(f"{name}.{child}" for child in find_packages(directory))]
    return packages


setup(packages=list_packages(), package_dir=MAPPED)
