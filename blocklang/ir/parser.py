"""Reads the text syntax of IR (see `printer`) back into a kernel.

Errors are `ParseError`s that point at the line and column of the text. The parser checks syntax, names and
types; the rules of the IR are `verifier`'s.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from blocklang.diagnostics import UNKNOWN_LOCATION, Location, ParseError
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import OPERATIONS
from blocklang.ir.index_map import parse_index_map
from blocklang.ir.printer import LEVEL_KEYWORDS
from blocklang.ir.types import SCALARS, Type, parse_type

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<map>map<[^<>]*>)
      | (?P<type>(?:block|buffer)<(?:[^<>]|<[^<>]*>)*>|ptr<[^<>]*>)
      | (?P<value>%[A-Za-z0-9_.$]+)
      | (?P<symbol>@[A-Za-z0-9_.$<>]+)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<punctuation>[{}()\[\],:=])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.source = text
        self.file = file
        self.tokens = self._tokenise()
        self.position = 0
        self.values: dict[str, Value] = {}

    # ---- tokens ----

    def _tokenise(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(self.source):
            match = _TOKEN.match(self.source, at)
            if match is None:
                self._fail(f"unexpected character {self.source[at]!r}", at)
            kind = match.lastgroup or ""
            if kind != "space":
                tokens.append(_Token(kind, match[0], at))
            at = match.end()
        tokens.append(_Token("end", "end of text", len(self.source)))
        return tokens

    def _location(self, at: int, length: int = 1) -> Location:
        line = self.source.count("\n", 0, at) + 1
        start = self.source.rfind("\n", 0, at) + 1
        column = len(self.source[start:at].encode())
        return Location(self.file, line, column, line, column + length)

    def _fail(self, message: str, at: int, length: int = 1, help: str | None = None) -> NoReturn:
        raise ParseError(message, location=self._location(at, length), source=self.source, help=help)

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def fail_here(self, message: str, help: str | None = None) -> NoReturn:
        self._fail(message, self.token.start, len(self.token.text) if self.token.kind != "end" else 1, help)

    def accept(self, text: str) -> bool:
        if self.token.text == text and self.token.kind != "string":
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail_here(f"expected {text!r}, got {self.token.text!r}")

    def expect_kind(self, kind: str, what: str) -> str:
        if self.token.kind != kind:
            self.fail_here(f"expected {what}, got {self.token.text!r}")
        self.position += 1
        return self.tokens[self.position - 1].text

    # ---- pieces ----

    def type_(self) -> Type:
        try:
            parsed = parse_type(self.token.text)
        except ValueError:
            self.fail_here(f"expected a type, got {self.token.text!r}")
        self.position += 1
        return parsed

    def attribute(self) -> Any:
        token = self.token
        if self.accept("["):
            items: list[Any] = []
            while not self.accept("]"):
                items.append(self.attribute())
                if self.token.text != "]":
                    self.expect(",")
            return tuple(items)
        if token.kind == "type" or token.text in SCALARS:
            return self.type_()
        self.position += 1
        if token.kind == "string":
            return json.loads(token.text)
        if token.kind == "map":
            try:
                return parse_index_map(token.text)
            except ValueError as error:
                self._fail(str(error), token.start, len(token.text))
        if token.kind == "number":
            return int(token.text) if re.fullmatch(r"-?\d+", token.text) else float(token.text)
        if token.text in ("true", "false"):
            return token.text == "true"
        self.position -= 1
        self.fail_here(f"expected an attribute value, got {token.text!r}")

    def use(self) -> Value:
        name = self.token.text
        if self.token.kind != "value":
            self.fail_here(f"expected a value, got {name!r}")
        if name not in self.values:
            self.fail_here(
                f"{name} is not defined here",
                "a value must be defined above its use, in this region or one around it",
            )
        self.position += 1
        return self.values[name]

    def define(self, value: Value, name: str, at: int) -> None:
        if name in self.values:
            self._fail(f"{name} is defined twice", at, len(name))
        bare = name[1:]
        value.name = "" if re.fullmatch(r"v\d+", bare) else bare
        self.values[name] = value

    # ---- operations ----

    def operation(self) -> Operation:
        start = self.token.start
        result_names = self._result_names()
        name_token = self.token
        name = self.expect_kind("word", "an operation")
        cls = OPERATIONS.get(name)
        if cls is None:
            self._fail(f"unknown operation {name!r}", name_token.start, len(name))
        positional, named, attributes = self._arguments(cls)
        types = self._result_types(len(result_names)) if result_names else []
        location = self._explicit_location()
        regions: list[Region] = []
        if self.accept("{"):
            regions.append(self.region())
            while self.accept("{"):
                regions.append(self.region())
        op = self._assemble(cls, positional, named, attributes, types, regions, location, name_token)
        if len(op.results) != len(result_names):
            self._fail(f"{name} has {len(op.results)} results, {len(result_names)} are named", start)
        for value, (text, at) in zip(op.results, result_names, strict=True):
            self.define(value, text, at)
        return op

    def _result_names(self) -> list[tuple[str, int]]:
        names: list[tuple[str, int]] = []
        while self.token.kind == "value":
            names.append((self.token.text, self.token.start))
            self.position += 1
            if not self.accept(","):
                self.expect("=")
                break
        return names

    def _arguments(self, cls: type[Operation]) -> tuple[list[Value], dict[str, Value], dict[str, Any]]:
        positional: list[Value] = []
        named: dict[str, Value] = {}
        attributes: dict[str, Any] = {}
        has_operands = bool(cls.operand_fields)  # without any, a value belongs to the next operation
        first = True
        while True:
            if has_operands and self.token.kind == "value" and (first or self.accept(",")):
                positional.append(self.use())
            elif self.token.kind == "word" and self.tokens[self.position + 1].text == "=":
                key = self.expect_kind("word", "a name")
                self.expect("=")
                if self.token.kind == "value":
                    named[key] = self.use()
                elif key in {f.name for f in cls.attribute_fields}:
                    attributes[key] = self.attribute()
                else:
                    self.fail_here(f"{cls.name} has no attribute {key!r}")
            elif not first:
                self.fail_here(f"expected an operand or attribute, got {self.token.text!r}")
            else:
                return positional, named, attributes
            if not self.accept(","):
                return positional, named, attributes
            first = False
            if self.token.kind == "value":
                first = True

    def _result_types(self, count: int) -> list[Type]:
        self.expect(":")
        types = [self.type_()]
        while len(types) < count:
            self.expect(",")
            types.append(self.type_())
        return types

    def _explicit_location(self) -> Location:
        if self.token.text != "loc":
            return UNKNOWN_LOCATION
        self.position += 1
        self.expect("(")
        file = json.loads(self.expect_kind("string", "a file name"))
        self.expect(":")
        line = int(self.expect_kind("number", "a line"))
        self.expect(":")
        column = int(self.expect_kind("number", "a column"))
        self.expect(")")
        return Location(file, line, column)

    def _assemble(
        self,
        cls: type[Operation],
        positional: list[Value],
        named: dict[str, Value],
        attributes: dict[str, Any],
        types: list[Type],
        regions: list[Region],
        location: Location,
        at: _Token,
    ) -> Operation:
        operands: dict[str, Any] = {}
        rest = list(positional)
        for field in cls.operand_fields:
            if field.optional:
                operands[field.name] = named.pop(field.name, None)
            elif field.variadic:
                operands[field.name], rest = rest, []
            elif rest:
                operands[field.name] = rest.pop(0)
            else:
                self._fail(f"{cls.name} needs operand {field.name!r}", at.start, len(at.text))
        if rest or named:
            self._fail(f"{cls.name} does not take all of these operands", at.start, len(at.text))
        defaults = {f.name: f.default for f in cls.attribute_fields}
        for field_ in cls.attribute_fields:
            if field_.required and field_.name not in attributes:
                self._fail(f"{cls.name} needs attribute {field_.name!r}", at.start, len(at.text))
        stored = {k: v for k, v in attributes.items() if v != defaults[k] or type(v) is not type(defaults[k])}
        return cls(operands, stored, types, regions, location)

    def region(self) -> Region:
        """A region after its opening brace, through the closing one."""
        region = Region()
        outer = dict(self.values)
        if self.accept("("):
            while not self.accept(")"):
                at = self.token.start
                name = self.expect_kind("value", "an argument")
                self.expect(":")
                self.define(region.add_argument(self.type_()), name, at)
                if self.token.text != ")":
                    self.expect(",")
            self.expect(":")
        while not self.accept("}"):
            region.append(self.operation())
        self.values = outer
        return region

    def named_attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        while self.token.kind == "word":
            key = self.expect_kind("word", "a name")
            self.expect("=")
            attributes[key] = self.attribute()
        return attributes

    def kernel(self) -> Kernel:
        levels = {keyword: level for level, keyword in LEVEL_KEYWORDS.items()}
        start = self.token.start
        level = levels.get(self.token.text)
        if level is None:
            self.fail_here(f"expected {', '.join(map(repr, levels))}, got {self.token.text!r}")
        self.position += 1
        name = self.expect_kind("symbol", "the kernel's @name")[1:]
        kernel = Kernel(name, level=level, location=self._location(start))
        self.expect("(")
        while not self.accept(")"):
            at = self.token.start
            arg = self.expect_kind("value", "an argument")
            self.expect(":")
            self.define(kernel.body.add_argument(self.type_()), arg, at)
            kernel.argument_attributes.append(self.named_attributes())
            if self.token.text != ")":
                self.expect(",")
        kernel.attributes = self.named_attributes()
        self.expect("{")
        while not self.accept("}"):
            kernel.body.append(self.operation())
        return kernel


def parse_kernel(text: str, file: str = "<ir>") -> Kernel:
    """Read one kernel of any level. Only operations that are declared by then are known: import
    `blocklang.ops`.

    Raises:
        ParseError: with line, column and caret in `text`.
    """
    parser = _Parser(text, file)
    kernel = parser.kernel()
    if parser.token.kind != "end":
        parser.fail_here(f"expected the end of the text, got {parser.token.text!r}")
    return kernel
