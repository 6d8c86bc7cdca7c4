"""The regular expressions of the package, and its functions on text."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import abridge
from abridge.lazy_re import LazyPattern
from abridge.providers.catalog import PROFILES
from abridge.summarizers.extractive.titles.english import ENGLISH

EXPRESSIONS: Any = (re.Pattern, LazyPattern)

METHODS = {
    **{name: name for name in ("match", "fullmatch", "search", "finditer")},
    **dict.fromkeys(("findall", "sub", "subn", "split"), "finditer"),
}
"""The methods that apply an expression, and the one which does the same to measure it."""

CALL = re.compile(rf"(\w*)\.({'|'.join(METHODS)})\b")
"""What is called or handed on in the source of a module, and the name before it, if any."""

MAX_DEPTH = 6
"""How deep the values of modules are looked through."""

NOT_CALLED = {
    "abridge.__main__": "runs the command",
    "abridge.sidecar.cli": "reads what its user types",
    "abridge.sidecar.demo": "shows what it was written to show",
    "abridge.sidecar.check": "reads the settings, and what the operator's own servers answer",
    "abridge.config": "reads the settings",
    "abridge.sidecar.server": "reads heads, which are bounded, and starts processes",
}
"""Folders of which no function is called here, and why."""

MAX_CONSTANT = 32
"""Characters up to which a text that a function names may be a mark that it looks for."""

COMPILES = ({"re", "compile"}, {"lazy_compile"})
"""Names in a function that compiles what it is given, which is never a client's."""

LARGE = 1 << 16
"""Given for any number: it is mostly a limit."""


@dataclass(slots=True)
class UsedPattern:
    """A regular expression, and the methods by which it is applied."""

    pattern: re.Pattern[Any]
    name: str
    methods: set[str] = field(default_factory=set)


@dataclass(slots=True)
class TextFunction:
    """A function that can be called with a text for each of its texts."""

    name: str
    call: Callable[[str], object]
    constants: tuple[str, ...]  # that its code names
    patterns: tuple[re.Pattern[Any], ...]  # that it looks for


Named = TypeVar("Named", UsedPattern, TextFunction)


@functools.cache
def modules() -> tuple[types.ModuleType, ...]:
    found = pkgutil.walk_packages(abridge.__path__, "abridge.")
    return tuple(
        importlib.import_module(module.name)
        for module in found
        if not module.name.endswith("__main__")
    )


@functools.cache
def folders() -> tuple[str, ...]:
    """Return the folders that hold modules, innermost first."""
    names = {module.__name__.rpartition(".")[0] or module.__name__ for module in modules()}
    return tuple(sorted(names, reverse=True))


def in_folder(folder: str, found: Iterable[Named]) -> list[Named]:
    """Return those of what was found whose innermost folder it is."""
    return [
        each
        for each in found
        if folder == next(name for name in folders() if each.name.startswith(f"{name}."))
    ]


# Regular expressions


@functools.cache
def find_patterns() -> list[UsedPattern]:
    """Return the expressions that modules hold, in whatever, with the methods that a module which
    holds them calls by their name, or else any module; both that search, if none does."""
    found: dict[int, UsedPattern] = {}
    for module in modules():
        for name, value in list(vars(module).items()):
            for pattern, inner in _patterns_in(value, name, 0, set()):
                used = found.setdefault(
                    id(pattern), UsedPattern(pattern, f"{module.__name__}.{name}")
                )
                used.methods |= _methods_in(module)[inner] | _methods_in(module)[name]
    for used in found.values():
        name = used.name.rpartition(".")[2]
        elsewhere = set[str]().union(*(_methods_in(module)[name] for module in modules()))
        used.methods = used.methods or elsewhere or {"match", "search"}
    return list(found.values())


@functools.cache
def _methods_in(module: types.ModuleType) -> defaultdict[str, set[str]]:
    """Return the methods of expressions that a module calls, by the name of what it calls."""
    methods = defaultdict[str, set[str]](set)
    for holder, method in CALL.findall(inspect.getsource(module)):
        methods[holder].add(METHODS[method])
    return methods


def _patterns_in(
    value: Any, name: str, depth: int, seen: set[int]
) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Yield the expressions in a value, each with the name under which it is held."""
    if isinstance(value, EXPRESSIONS):
        yield value, name
    elif depth < MAX_DEPTH and id(value) not in seen:
        seen.add(id(value))
        for inner_name, inner in _parts_of(value):
            yield from _patterns_in(inner, inner_name or name, depth + 1, seen)


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from (("", inner) for pair in value.items() for inner in pair)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("", inner) for inner in value)
    elif isinstance(value, functools.partial):
        yield from (("", inner) for inner in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, types.FunctionType):
        cells = value.__closure__ or ()
        yield from (("", cell.cell_contents) for cell in cells)
        yield from (("", default) for default in value.__defaults__ or ())
    elif str(getattr(value, "__module__", "")).startswith("abridge"):
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        yield from ((name, getattr(value, name, None)) for name in names)


# Functions


@functools.cache
def find_functions() -> list[TextFunction]:
    """Return the functions and methods that take text, as far as the rest of what they take can be
    made from its type."""
    found = {
        function.name: function
        for module in modules()
        if not module.__name__.startswith(tuple(NOT_CALLED))
        for name, value in list(vars(module).items())
        if getattr(value, "__module__", None) == module.__name__
        for function in _functions_in(value, f"{module.__name__}.{name}")
    }
    return list(found.values())


def _functions_in(value: Any, name: str) -> Iterator[TextFunction]:
    if isinstance(value, types.FunctionType):
        yield from _function(value, name, None)
    elif isinstance(value, type):
        for inner, member in vars(value).items():
            function = getattr(member, "__func__", member)
            if isinstance(function, types.FunctionType) and not inner.startswith("__"):
                owner = None if isinstance(member, staticmethod) else value
                yield from _function(function, f"{name}.{inner}", owner)


def _function(
    function: types.FunctionType, name: str, owner: type | None
) -> Iterator[TextFunction]:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if is_async or any(names <= {*function.__code__.co_names} for names in COMPILES):
        return
    parameters = list(inspect.signature(function).parameters.values())
    try:
        hints = get_type_hints(function)
    except (NameError, AttributeError):  # a type that is imported for type checkers alone
        return
    own = parameters[1:] if owner is not None else parameters
    if not any(_holds_text(hints.get(parameter.name)) for parameter in own):
        return

    def call(text: str) -> object:
        given = [] if owner is None else [make(owner, text)]
        named = {}
        for parameter in own:
            value = make(hints.get(parameter.name), text)
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                given.append(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
        result = function(*given, **named)
        return deque(result, maxlen=0) if isinstance(result, Iterator) else result

    try:
        call("a")
    except CannotMake:
        return
    except Exception:  # noqa: BLE001, S110 -- this text is wrong for it
        pass
    yield TextFunction(name, _quietly(call), *_looked_for(function))


def _quietly(call: Callable[[str], object]) -> Callable[[str], object]:
    def quiet(text: str) -> object:
        try:
            return call(text)
        except Exception:  # noqa: BLE001 -- how long it takes to refuse a text counts as well
            return None

    return quiet


def _looked_for(
    function: types.FunctionType,
) -> tuple[tuple[str, ...], tuple[re.Pattern[Any], ...]]:
    """Return the short texts and the expressions that a function names."""
    code, names = function.__code__, function.__globals__
    texts = [
        value.decode("latin-1") if isinstance(value, bytes) else value
        for value in (*code.co_consts[1:], *map(names.get, code.co_names))
        if isinstance(value, str | bytes)
    ]
    patterns = [names[name] for name in code.co_names if isinstance(names.get(name), EXPRESSIONS)]
    return tuple(text for text in texts if 0 < len(text) <= MAX_CONSTANT), tuple(patterns)


def _holds_text(hint: Any) -> bool:
    """Return whether a type is that of a text, or of several."""
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return False
    return hint in (str, bytes, bytearray) or (
        origin is not Literal and any(map(_holds_text, get_args(hint)))
    )


class CannotMake(Exception):
    """A value of this type cannot be made here."""


def make(hint: Any, text: str) -> Any:
    """Make a value of a type, with the text for each text in it. Raises CannotMake."""
    if hint in PLAIN:
        return PLAIN[hint]
    if hint in (str, Any, object):
        return text
    if hint in (bytes, bytearray):
        return hint(text.encode())
    if get_origin(hint) is not None or isinstance(hint, types.UnionType):
        return _make_generic(get_origin(hint), get_args(hint), text)
    if isinstance(hint, type) and hint.__module__.startswith("abridge"):
        return _make_instance(hint, text)
    raise CannotMake(hint)


def _make_generic(origin: Any, arguments: tuple[Any, ...], text: str) -> Any:
    """Make one of several types, a collection with one value, or what may be called."""
    if origin is Literal:
        return arguments[0]
    if origin in (Union, types.UnionType):
        texts = [each for each in arguments if _holds_text(each)]
        return make((texts or arguments)[0], text)
    if origin is tuple:
        return tuple(make(each, text) for each in arguments if each is not ...)
    if origin is Callable:
        return lambda *_, **__: None
    if not (isinstance(origin, type) and issubclass(origin, Iterable)):
        raise CannotMake(origin)
    if issubclass(origin, Mapping):
        return {make(arguments[0], text): make(arguments[1], text)}
    made = [make(arguments[0], text)]
    return origin(made) if origin in (list, set, frozenset) else made


def _make_instance(cls: type, text: str) -> Any:
    """Make an object of the package with the values that its class demands."""
    known = KNOWN.get(cls.__name__)
    if known is not None:
        return known
    if inspect.isabstract(cls) or getattr(cls, "_is_protocol", False):
        raise CannotMake(cls)
    maker = cls.__new__ if issubclass(cls, tuple) else cls.__init__
    try:
        hints = (
            get_type_hints(cls)
            if is_dataclass(cls) or issubclass(cls, tuple)
            else get_type_hints(maker)
        )
    except (NameError, AttributeError):
        raise CannotMake(cls) from None
    demanded = [
        parameter
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    values = {each.name: make(hints.get(each.name), text) for each in demanded}
    return cls(**values)


PLAIN: Mapping[Any, Any] = {int: LARGE, float: LARGE, bool: False, None: None, type(None): None}
"""What is given for types that hold no text."""

KNOWN = {"Profile": PROFILES["auto"], "Pattern": ENGLISH[0]}
"""Objects that stand for all of their class."""
