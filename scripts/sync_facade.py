"""Writes `hitherto/sync/facade.py`, the synchronous classes, from the public asynchronous signatures.

    python scripts/sync_facade.py

Each public method of the classes below becomes one of the same signature that waits for its result.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "hitherto" / "sync" / "facade.py"

CLASSES = {
    "Memory": "hitherto/engine/memory.py",
    "Conversation": "hitherto/engine/conversation.py",
    "Documents": "hitherto/engine/documents/documents.py",
    "Facts": "hitherto/engine/facts/facts.py",
    "Runs": "hitherto/engine/runs.py",
    "Keys": "hitherto/engine/keys.py",
    "Turn": "hitherto/engine/turn.py",
}
OPEN = "hitherto/wiring.py"
LEFT_OUT = {"Memory": {"start", "aclose", "with_reranker"}, "Turn": {"stream"}}
"""Methods that the synchronous classes have in another form, or not at all."""

HEADER = '''\
"""The synchronous classes. Written by scripts/sync_facade.py: change that, or the asynchronous classes, and run it."""

from __future__ import annotations

'''

DOC = {
    "Memory": "A `Memory` for code without an event loop. Any number of threads may share it.",
    "Conversation": "A `Conversation` for code without an event loop.",
    "Documents": "`Documents` for code without an event loop.",
    "Facts": "`Facts` for code without an event loop.",
    "Runs": "`Runs` for code without an event loop.",
    "Keys": "`Keys` for code without an event loop.",
    "Turn": "A `Turn` for code without an event loop.",
}


@dataclass
class Source:
    """A module that is read: where its names come from, and which of its own there are."""

    module: str
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def read(cls, path: str) -> Source:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        source = cls(path.removesuffix(".py").replace("/", "."), tree)
        for node in tree.body:
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    source.imports |= {one.name: f"from {module} import {one.name}" for one in names}
                case ast.ClassDef(name=name):
                    source.imports[name] = f"from {source.module} import {name}"
                case ast.Assign(targets=[ast.Name(id=name)]):
                    source.imports[name] = f"from {source.module} import {name}"
                case _:
                    pass
        return source

    def needed(self, *nodes: ast.AST | None) -> set[str]:
        """The imports for the names in `nodes`."""
        names = {one.id for node in nodes if node is not None for one in ast.walk(node) if isinstance(one, ast.Name)}
        return {self.imports[name] for name in names if name in self.imports}

    def find(self, name: str) -> ast.AST:
        return next(
            node for node in self.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
        )


Function = ast.FunctionDef | ast.AsyncFunctionDef


def passed_on(arguments: ast.arguments) -> str:
    """The arguments of a method as they are given to another one of the same signature."""
    given = [one.arg for one in (*arguments.posonlyargs, *arguments.args) if one.arg != "self"]
    given += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    given += [f"{one.arg}={one.arg}" for one in arguments.kwonlyargs]
    given += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join(given)


def described(function: Function, of: str) -> str:
    """The first paragraph of the docstring, and where the rest is."""
    first = " ".join((ast.get_docstring(function) or "").partition("\n\n")[0].split())
    first = first.replace("`async with", "`with").removesuffix(" See `Turn`.")
    lines = textwrap.wrap(f'"""{first} See `{of}`."""', 112)
    return textwrap.indent("\n".join(lines), " " * 8)


def method(function: Function, owner: str) -> str:
    signature = ast.unparse(function.args)
    returns = "" if function.returns is None else ast.unparse(function.returns)
    call = f"{function.name}({passed_on(function.args)})"
    part = owner.lower()
    if isinstance(function, ast.AsyncFunctionDef) and returns == "Conversation":
        body = (
            f"made = self._run(lambda {part}: {part}.{call})\n"
            "        return SyncConversation(\n"
            "            self._background, lambda memory: memory.conversation(made.id, scope=made.scope), made)"
        )
        returns = "SyncConversation"
    elif isinstance(function, ast.AsyncFunctionDef):
        body = f"return self._run(lambda {part}: {part}.{call})"
    elif returns == "Turn":
        body, returns = f"return SyncTurn(self._background, self._part.{call})", "SyncTurn"
    else:
        assert returns in CLASSES, f"{owner}.{function.name} is neither asynchronous nor gives a class that has one"
        body, returns = f"return Sync{returns}(self._background, lambda memory: memory.{call})", f"Sync{returns}"
    head = f"    def {function.name}({signature}) -> {returns}:"
    return "\n".join([head, described(function, f"{owner}.{function.name}"), f"        {body}", ""])


def passed(name: str, kind: str, description: str = "") -> str:
    """A property that is the other object's."""
    head = f"    @property\n    def {name}(self) -> {kind}:"
    return "\n".join([head, *([description] if description else []), f"        return self._part.{name}", ""])


def attributes(node: ast.ClassDef) -> list[str]:
    """The public attributes that the constructor sets."""
    return [
        one.targets[0].attr
        for one in ast.walk(node)
        if isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Attribute)
        and not one.targets[0].attr.startswith("_")
    ]


def synchronous(name: str, source: Source, imports: set[str]) -> str:
    node = source.find(name)
    assert isinstance(node, ast.ClassDef)
    base = {"Memory": "SyncMemoryBase", "Turn": "SyncTurnBase"}.get(name, f"SyncPart[{name}]")
    parts = [f'class Sync{name}({base}):\n    """{DOC[name]}"""\n']
    imports.add(f"from {source.module} import {name}")
    if name == "Conversation":
        imports.add("from hitherto.core.scope import Scope")
        parts += [passed("id", "str"), passed("scope", "Scope")]
        assert set(attributes(node)) == {"id", "scope"}
        parts.append("    def __repr__(self) -> str:\n        return repr(self._part)\n")
    for function in (one for one in node.body if isinstance(one, Function)):
        if function.name.startswith("_") or function.name in LEFT_OUT.get(name, ()):
            continue
        imports |= source.needed(function.args, function.returns)
        if function.decorator_list:
            assert function.returns is not None
            parts.append(
                passed(function.name, ast.unparse(function.returns), described(function, f"{name}.{function.name}"))
            )
        else:
            parts.append(method(function, name))
    return "\n".join(parts)


def opening(source: Source, imports: set[str]) -> str:
    function = source.find("open")
    assert isinstance(function, ast.FunctionDef)
    imports |= source.needed(function.args)
    imports |= {
        "from hitherto.wiring import open as open_memory",
        "from hitherto.sync.base import BackgroundMemory",
    }
    imports.add("from hitherto.sync.base import SyncMemoryBase, SyncPart, SyncTurnBase")
    return f'''\
def open_sync({ast.unparse(function.args)}) -> SyncMemory:
    """Open a memory for code without an event loop: `with hitherto.open_sync() as memory`, or keep it and call `close`
    in the end. It runs on one event loop in the background, which all memories of the process share.

    Takes and raises what `hitherto.open` does.
    """
    background = BackgroundMemory(open_memory({passed_on(function.args)}))
    background.memory()
    return SyncMemory(background)
'''


def facade() -> str:
    """The text of the module, as ruff formats it."""
    imports: set[str] = set()
    parts = [synchronous(name, Source.read(path), imports) for name, path in CLASSES.items()]
    parts.append(opening(Source.read(OPEN), imports))
    text = HEADER + "\n".join(sorted(imports)) + "\n\n\n" + "\n\n".join(parts)
    for words in (["check", "--quiet", "--fix", "--select", "I,F401"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--stdin-filename", str(OUTPUT), "-"]
        done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
        text = done.stdout
    return text


if __name__ == "__main__":
    OUTPUT.write_text(facade(), encoding="utf-8")
