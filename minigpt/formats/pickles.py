"""Reading a pickle without unpickling it.

A pickle is a program for a small stack machine. This is another machine for it, one that can only make plain values:
dicts, lists, tuples, sets, strings, bytes, whole and other numbers, True, False and None. Where the program asks for
anything else by name, the name is written down and a placeholder stands for what would have come of it: nothing is
imported, looked up, called or built. The few names that a caller allows become calls of the caller's own functions.
"""

import pickletools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sized
from io import BytesIO
from typing import Any, NamedTuple, cast

MOST_OPERATIONS = 2_000_000
"""Longest program that is followed, in operations; one makes at most a small object."""
MOST_OBJECTS = 500_000
"""Most dicts, lists, sets and tuples of any length that a program may make, which are larger."""
LONGEST_NAME = 500
"""Longest name that a program may ask for something by, in characters."""
LARGEST_KEY = 2**31
"""Whole numbers that name something are smaller; a dict of huge ones can be made to fill in quadratic time."""


class Named(NamedTuple):
    """Something that a pickle asks for by module and name."""

    module: str
    name: str

    def __str__(self) -> str:
        """Return the name as Python writes it."""
        return f"{self.module}.{self.name}"


class Unmade:
    """Stands for an object that only running code could make."""

    def __init__(self, made_by: object) -> None:
        self.made_by = str(made_by) if isinstance(made_by, Named) else type(made_by).__name__


class Content(NamedTuple):
    """What a pickle holds.

    Attributes:
        value: Plain values, with `Unmade` and `Named` where the pickle asks for more.
        foreign: The names it asks for that are not allowed, in order of appearance.
    """

    value: Any
    foreign: list[str]


Calls = Mapping[str, Callable[..., Any]]


def checked_key(value: Any) -> Any:  # noqa: ANN401 (whatever the program says)
    """Return what is to name an entry of a dict, or to be in a set.

    Raises:
        TypeError: If it is no text, number, None, or tuple of those. Python's hash of deeper ones can end the program.
    """
    parts = cast(tuple[Any, ...], value) if isinstance(value, tuple) else (value,)
    for part in parts:
        small = type(part) is int and -LARGEST_KEY < part < LARGEST_KEY
        if not small and not isinstance(part, str | bytes | float | bool | None):
            raise TypeError("the pickle in it names an entry by what is no text or number")
    return cast(Any, value)


def made_dict(items: Any = ()) -> dict[Any, Any]:  # noqa: ANN401 (whatever the program says)
    """Return a dict of pairs."""
    return {checked_key(key): value for key, value in items}


def made_set(items: Any = ()) -> set[Any]:  # noqa: ANN401 (whatever the program says)
    """Return a set."""
    return set(map(checked_key, items))


_PUSHED = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_NEW: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": set,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _operations(file: BytesIO) -> Iterator[tuple[Any, Any, int | None]]:
    """Yield the operations of a pickle; an escape that means nothing in one of its old texts is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield from pickletools.genops(file)


class Machine:
    """Follows one pickle program.

    Args:
        calls: Function for each name that may be called, by `module.name`.
        constants: Names that may be mentioned, but not called.
        stored: Turns the id of something kept outside the pickle into a value; None if there is nothing outside.
    """

    def __init__(
        self,
        calls: Calls | None = None,
        constants: frozenset[str] = frozenset(),
        stored: Callable[[Any], Any] | None = None,
    ) -> None:
        self.calls: Calls = calls or {}
        self.constants = constants
        self.stored = stored
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.foreign: dict[str, None] = {}
        self.objects = self.handled = 0

    def run(self, file: BytesIO) -> Content:
        """Read from the file up to the end of the program.

        Raises:
            ValueError, LookupError, TypeError and others of their kind: If it is no program, or one that makes no
                sense. Any of them means that the file is damaged.
        """
        for count, (opcode, argument, _) in enumerate(_operations(file)):
            if count > MOST_OPERATIONS:
                raise ValueError("the pickle in it is too long")
            if opcode.name in _PUSHED:
                self.stack.append(argument)
            elif opcode.name in _NEW:
                self._count(objects=1)
                self.stack.append(_NEW[opcode.name]())
            elif opcode.name in _TUPLES:
                self.stack.append(tuple(self._take(_TUPLES[opcode.name])))
            else:
                self._step(opcode.name, argument)
        return Content(self.stack.pop(), list(self.foreign))

    def _step(self, name: str, argument: Any) -> None:  # noqa: ANN401 (whatever the program says)
        """Do one operation that is no constant."""
        match name:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "MARK":
                self.marks.append(len(self.stack))
            case "POP" | "POP_MARK":
                self._take(1) if name == "POP" else self._since_mark()
            case "DUP":
                self.stack.append(self.stack[-1])
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                self.stack.append(self.memo[argument])
            case "TUPLE" | "LIST" | "FROZENSET":
                self._count(objects=1)
                items = self._since_mark()
                made = tuple(items) if name == "TUPLE" else frozenset(made_set(items)) if name == "FROZENSET" else items
                self.stack.append(made)
            case "DICT":
                self._count(objects=1)
                items = self._since_mark()
                self.stack.append({})
                self._set_items(items)
            case "APPEND" | "APPENDS" | "ADDITEMS":
                self._append(self._take(1) if name == "APPEND" else self._since_mark())
            case "SETITEM" | "SETITEMS":
                self._set_items(self._take(2) if name == "SETITEM" else self._since_mark())
            case "BINPERSID" if self.stored is not None:
                self.stack.append(self.stored(self.stack.pop()))
            case _:
                self._object(name, argument)

    def _object(self, name: str, argument: Any) -> None:  # noqa: ANN401 (whatever the program says)
        """Do one operation that would import, call or build."""
        match name:
            case "GLOBAL":
                self._name(*cast(str, argument).split(" ", 1))
            case "STACK_GLOBAL":
                self._name(*self._take(2))
            case "REDUCE" | "NEWOBJ":
                made_by, arguments = self._take(2)
                self._make(made_by, arguments, called=name == "REDUCE")
            case "NEWOBJ_EX":
                self._make(self._take(3)[0], (), called=False)
            case "OBJ":
                self._make(self._since_mark()[0], (), called=False)
            case "INST":
                self._since_mark()
                self._name(*cast(str, argument).split(" ", 1))
                self._make(self.stack.pop(), (), called=False)
            case "BUILD":
                self.stack.pop()
                if not isinstance(self.stack[-1], dict | Unmade):
                    raise ValueError("the pickle in it builds what cannot be built")
            case _:
                raise ValueError(f"the pickle in it uses the operation {name}")

    def _count(self, *, objects: int = 0, handled: int = 0) -> None:
        """Refuse a program that makes much of little: more objects, or more work in calls, than any model needs."""
        self.objects += objects
        self.handled += handled
        if self.objects > MOST_OBJECTS or self.handled > MOST_OPERATIONS:
            raise ValueError("the pickle in it makes too many objects")

    def _name(self, module: object, name: object) -> None:
        if not (isinstance(module, str) and isinstance(name, str) and len(module) + len(name) <= LONGEST_NAME):
            raise TypeError("the pickle in it asks for what has no name")
        named = Named(module, name)
        if str(named) not in self.calls and str(named) not in self.constants:
            self.foreign[str(named)] = None
        self.stack.append(named)

    def _make(self, made_by: object, arguments: object, *, called: bool) -> None:
        function = self.calls.get(str(made_by)) if called and isinstance(made_by, Named) else None
        if function is None:
            # A call of what is no name, or of a name that may only be mentioned, is as foreign as an unknown name.
            self.foreign[str(made_by) if isinstance(made_by, Named) else type(made_by).__name__] = None
            self.stack.append(Unmade(made_by))
        else:
            given = cast(tuple[Any, ...], arguments)
            self._count(objects=1, handled=len(given) + sum(len(each) for each in given if isinstance(each, Sized)))
            self.stack.append(function(*given))

    def _take(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise IndexError("the pickle in it takes more than there is")
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def _since_mark(self) -> list[Any]:
        mark = self.marks.pop()
        taken = self.stack[mark:]
        del self.stack[mark:]
        return taken

    def _append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            cast(list[Any], target).extend(items)
        elif isinstance(target, set):
            cast(set[Any], target).update(map(checked_key, items))
        elif not isinstance(target, Unmade):
            raise TypeError("the pickle in it appends to what is no list")

    def _set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, dict):
            cast(dict[Any, Any], target).update(zip(map(checked_key, items[::2]), items[1::2], strict=True))
        elif not isinstance(target, Unmade):
            raise TypeError("the pickle in it sets items of what is no dict")


def plain_pickle(value: object) -> bytes:
    """Return a pickle (protocol 2) of dicts, lists, strings and small integers, for programs that read no JSON.

    Raises:
        TypeError: If the value is of another type, or an integer needs more than 32 bits.
    """
    return b"\x80\x02" + _packed(value) + b"."


def _packed(value: object) -> bytes:
    if isinstance(value, dict):
        items = cast(dict[object, object], value).items()
        return b"}(" + b"".join(_packed(key) + _packed(item) for key, item in items) + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(_packed, cast(list[object], value))) + b"e"
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return b"X" + len(text).to_bytes(4, "little") + text
    if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31:
        return b"J" + value.to_bytes(4, "little", signed=True)
    raise TypeError(f"only dict, list, str and int of 32 bits can be packed, got {value!r}")
