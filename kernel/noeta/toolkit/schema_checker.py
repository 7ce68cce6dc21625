"""The JSON Schema library as noeta uses it. `noeta.toolkit.schema` loads it at its first call."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import regex  # type: ignore[import-untyped]
from jsonschema.exceptions import by_relevance  # type: ignore[import-untyped]
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from noeta.core.errors import told
from noeta.core.text import meant
from noeta.toolkit.schema_shortcut import Fits, shortcut

SHOWN_CHARS = 80
"""A value longer than this is not quoted whole."""
SHOWN_NAMES = 40
"""Of more names than these, or of more values, the rest is counted."""
MOST_ERRORS = 1_000
"""Of a value with more mistakes than these, the others are not looked for."""
PATTERN_SECONDS = 1.0
"""What all patterns may take for one value: some take for ever, and nothing else runs meanwhile."""


class Checker:
    """A schema, looked through once. `fault` says why it cannot be used, None when it can."""

    def __init__(self, schema: object) -> None:
        self.fault: str | None = None
        self._until = 0.0
        self._shortcut: Fits | None = None
        try:
            self.fault = self._prepare(schema)
        except RecursionError:
            self.fault = "it is nested too deep"
        except Exception as error:
            self.fault = told(error)

    def _prepare(self, schema: object) -> str | None:
        if not isinstance(schema, dict):
            return f"a schema is a dict, not a {type(schema).__name__}"
        if not isinstance(schema.get("$schema", ""), str):
            return "its $schema is no text"
        cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        if errors := list(cls(cls.META_SCHEMA, registry=REGISTRY).iter_errors(schema)):
            self._until = time.monotonic() + PATTERN_SECONDS
            return self._sentence(errors)
        draft = specification_with(cls.META_SCHEMA.get("$schema", ""), default=DRAFT202012)
        root: Any = draft.create_resource(schema)
        for resolver, part in _parts(REGISTRY.resolver_with_root(root), root):
            if why := _dead_end(resolver, part):
                return why
        own = {
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
        }
        tolerant = jsonschema.validators.extend(cls, own)
        # Without a registry of our own the library would fetch what it does not know.
        self._validator: Any = tolerant(schema, registry=REGISTRY)
        self._shortcut = shortcut(schema)
        return None

    def check(self, value: object) -> str | None:
        """What is wrong with `value`, None when it fits."""
        if self._shortcut and self._shortcut(value):
            return None
        self._until = time.monotonic() + PATTERN_SECONDS
        try:
            errors = list(islice(self._validator.iter_errors(value), MOST_ERRORS))
            return self._sentence(errors) if errors else None
        except TimeoutError as error:
            return str(error)
        except RecursionError:
            return "the schema is wrong: it refers to itself without end, or the value is nested too deep"
        except Exception as error:
            return f"the schema is wrong: {told(error)}"

    def _sentence(self, errors: Iterable[Any]) -> str:
        return sentence(errors, self._found)

    def _found(self, pattern: str, text: str) -> bool:
        """Whether the pattern is in the text. Raises `TimeoutError`."""
        try:
            # The search of the standard library cannot be stopped.
            return bool(regex.search(pattern, text, timeout=max(self._until - time.monotonic(), 0.001)))
        except TimeoutError:
            raise TimeoutError(f"{_shown(text)} takes too long to compare with {_shown(pattern)}") from None

    def _pattern(self, validator: Any, pattern: str, value: object, schema: object) -> Iterator[Any]:
        """The keyword ``pattern``, in every dialect: one that cannot be read here lets all pass."""
        try:
            fits = not isinstance(value, str) or self._found(pattern, value)
        except regex.error:
            return
        if not fits:
            yield jsonschema.ValidationError(f"{value!r} does not match the pattern {pattern!r}")

    def _pattern_properties(
        self, validator: Any, patterns: Mapping[str, Any], value: object, schema: object
    ) -> Iterator[Any]:
        held: dict[str, Any] = value if isinstance(value, dict) else {}
        for pattern, part in patterns.items():
            for name, inner in held.items():
                if self._found(pattern, name):
                    yield from validator.descend(inner, part, path=name, schema_path=pattern)

    def _additional_properties(
        self, validator: Any, allowed: Any, value: object, schema: Mapping[str, Any]
    ) -> Iterator[Any]:
        held: dict[str, Any] = value if isinstance(value, dict) else {}
        extras = [name for name in held if self._is_extra(name, schema)]
        if extras and allowed is False:
            yield jsonschema.ValidationError(f"{extras[0]!r} is no property of it")
        for name in extras if isinstance(allowed, dict) else ():
            yield from validator.descend(held[name], allowed, path=name)

    def _is_extra(self, name: str, schema: Mapping[str, Any]) -> bool:
        patterns = schema.get("patternProperties", ())
        return name not in schema.get("properties", ()) and not any(self._found(p, name) for p in patterns)


def _parts(resolver: Any, resource: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Every schema inside a schema, itself first, with what resolves its references."""
    if isinstance(resource.contents, Mapping):
        yield resolver, resource.contents
    for inner in resource.subresources():
        yield from _parts(resolver.in_subresource(inner), inner)


def _dead_end(resolver: Any, part: Mapping[str, Any]) -> str | None:
    try:
        if isinstance(ref := part.get("$ref"), str):
            resolver.lookup(ref)
        for pattern in part.get("patternProperties", ()):
            regex.compile(pattern)
        if "patternProperties" in part and "unevaluatedProperties" in part:
            return "it has patternProperties beside unevaluatedProperties: write additionalProperties instead"
    except Unresolvable:
        return f"it refers to {ref!r}, which is not in it"
    except regex.error as error:
        return f"the pattern {pattern!r} cannot be read: {error}"
    return None


# A misspelt name comes before the name that is missing because of it.
_relevance = by_relevance(strong={"additionalProperties"})


def sentence(errors: Iterable[Any], found: Callable[[str, str], bool]) -> str:
    """The place and the mistake of the error that says most. `found` tells whether a pattern is in a text."""
    error = max(errors, key=_relevance)
    while forms := _forms(error):
        nearest: list[Any] = min(forms, key=_distance)
        error = max(nearest, key=_relevance)
    place, value, allowed = _place(error.absolute_path), error.instance, error.validator_value
    match error.validator:
        case "additionalProperties" if allowed is False:
            known = error.schema.get("properties", {})
            patterns = error.schema.get("patternProperties", {})
            extra = next(n for n in value if n not in known and not any(found(p, n) for p in patterns))
            listed = f"; known are {_listed(known)}" if known else ""
            return f"{place}{_step(extra)}: there is no such property{_meant(extra, known)}{listed}"
        case "required":
            missing = next(name for name in allowed if name not in value)
            return f"{place}{_step(missing)}: it is required and missing"
        case "const":
            return f"{place}: must be {_shown(allowed)}, not {_shown(value)}"
        case "enum":
            hint = (
                _meant(value, [name for name in allowed if isinstance(name, str)])
                if isinstance(value, str)
                else ""
            )
            return f"{place}: must be one of {_listed(allowed)}, not {_shown(value)}{hint}"
        case "type" | "anyOf" | "oneOf" if types := _types(error):
            return f"{place}: must be of type {' or '.join(types)}, not {_type(value)}"
    said, whole = error.message, repr(value)
    return f"{place}: {said.replace(whole, 'it', 1) if len(whole) > SHOWN_CHARS else said}"


def _forms(error: Any) -> list[list[Any]]:
    """Where several forms are allowed: the errors of each one that is at least of the value's type."""
    forms: dict[int, list[Any]] = {}
    for inner in error.context if error.validator in ("anyOf", "oneOf") else ():
        forms.setdefault(inner.schema_path[0], []).append(inner)
    return [form for form in forms.values() if not any(map(_types_here, form))]


def _distance(form: list[Any]) -> tuple[int, int]:
    """How far the value is from a form with these errors. A fixed word is what tells forms apart."""
    return sum(inner.validator in ("const", "enum") for inner in form), len(form)


def _types(error: Any) -> list[str]:
    """The types that were allowed at the error's place; empty when it is about more than a type."""
    if error.validator == "type":
        one_or_more = error.validator_value
        return [one_or_more] if isinstance(one_or_more, str) else list(one_or_more)
    found = list(map(_types_here, error.context))
    return list(dict.fromkeys(name for names in found for name in names)) if all(found) else []


def _types_here(inner: Any) -> list[str]:
    """`_types` of an error of a form, when it is about the whole value and nothing inside it."""
    return [] if inner.relative_path else _types(inner)


def _type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _place(path: Sequence[str | int]) -> str:
    return "$" + "".join(map(_step, path))


def _step(name: str | int) -> str:
    plain = isinstance(name, str) and re.fullmatch(rf"[\w$-]{{1,{SHOWN_CHARS}}}", name)
    return f".{name}" if plain else f"[{_shown(name)}]"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def _listed(values: Iterable[object]) -> str:
    shown = list(map(_shown, values))
    rest = f" and {len(shown) - SHOWN_NAMES} more" if len(shown) > SHOWN_NAMES else ""
    return ", ".join(shown[:SHOWN_NAMES]) + rest


def _meant(given: str, known: Iterable[str]) -> str:
    # Comparing costs the product of the lengths, and who writes that much means no name.
    return meant(given, known) if len(given) <= SHOWN_CHARS else ""
