"""How types are checked at every call during tests."""

from typing import Any, Self

from beartype import BeartypeConf, FrozenDict, beartype

# An int is a float where PEP 484 says so. `Self` is left to pyright: a method checked alone does not know its class.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({Self: Any})))
