"""Changes of bytes, text and protobuf messages, drawn from a `random.Random`."""

import random
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

_EDGES = (1 << 15, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 31), -2, -3)
NUMBERS: tuple[int, ...] = (0, 1, -1, 2, 3, 7, 8, 64, 127, 128, 255, 256, *_EDGES)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"), 0.5, 1e9)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """`data` with a few bytes changed, cut out, copied or repeated."""
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        place = rng.randrange(len(changed))
        match rng.randrange(6):
            case 0:
                changed[place] = rng.randrange(256)
            case 1:
                changed[place] ^= 1 << rng.randrange(8)
            case 2:
                del changed[place : place + rng.randrange(1, 9)]
            case 3:
                other = rng.randrange(len(changed))
                changed[place : place + 8] = changed[other : other + 8]
            case 4:
                end = place + rng.randrange(1, 33)
                changed[place:place] = changed[place:end]
            case _:
                changed[place : place + 8] = (rng.choice(NUMBERS) & (1 << 64) - 1).to_bytes(8, "little")
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def mutate_text(data: bytes, rng: random.Random) -> bytes:
    """Text with words and numbers replaced by others of its own or by extreme ones, or changed as bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    words = _words(data.decode(errors="replace"))
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(words))
        match rng.randrange(4):
            case 0:
                words[place] = rng.choice(words)
            case 1:
                numbers = [k for k, word in enumerate(words) if word.isdigit()]
                if numbers:
                    words[rng.choice(numbers)] = str(rng.choice(NUMBERS))
            case 2:
                words.insert(place, rng.choice(words))
            case _:
                del words[place : place + rng.randrange(1, 4)]
                words = words or [""]
    return "".join(words).encode()


def _words(text: str) -> list[str]:
    """Runs of letters, runs of digits, and other characters one by one."""
    words = [""]
    kind = ""
    for character in text:
        now = "digit" if character.isdigit() else "letter" if character.isalpha() or character in "_-" else ""
        if now and now == kind:
            words[-1] += character
        else:
            words.append(character)
        kind = now
    return words


def message_mutator(message: Any) -> Callable[[bytes, random.Random], bytes]:
    """Changes of serialized messages of one class: fields set, cleared, repeated, moved, as the format knows them."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.15:
            return mutate_bytes(data, rng)
        try:
            parsed = message.FromString(data)
        except (DecodeError, RecursionError, UnicodeDecodeError):
            return mutate_bytes(data, rng)
        for _ in range(rng.choice((1, 1, 2, 3, 6))):
            _change(rng.choice(_inner(parsed)), rng)
        result: bytes = parsed.SerializePartialToString()
        return result

    return mutate


def _inner(message: Any) -> list[Any]:
    """The message and every message in it."""
    found = [message]
    for current in found:
        for field, value in current.ListFields():
            if field.type != field.TYPE_MESSAGE:
                continue
            if not field.is_repeated:
                found.append(value)
            elif _is_map(field):
                found += list(value.values()) if hasattr(next(iter(value.values())), "ListFields") else []
            else:
                found += list(value)
        if len(found) > 3000:
            break
    return found


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _change(message: Any, rng: random.Random) -> None:
    """Change one field of a message: mostly one that is set."""
    if not message.DESCRIPTOR.fields:
        return
    set_fields = [field for field, _ in message.ListFields()]
    field = rng.choice(set_fields if set_fields and rng.random() < 0.85 else message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if _is_map(field):
        if value and rng.random() < 0.5:
            del value[rng.choice(sorted(value))]
        elif len(value) > 1 and hasattr(next(iter(value.values())), "CopyFrom"):
            one, other = rng.sample(sorted(value), 2)
            value[one].CopyFrom(value[other])
    elif field.is_repeated:
        _change_repeated(value, field, rng)
    elif field.type == field.TYPE_MESSAGE:
        if rng.random() < 0.3:
            message.ClearField(field.name)
        else:
            value.SetInParent()
    elif rng.random() < 0.1:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(field, value, rng))


def _change_repeated(values: Any, field: Any, rng: random.Random) -> None:
    kind = rng.randrange(4)
    if kind == 0 and len(values):
        del values[rng.randrange(len(values))]
    elif kind == 1 and len(values) > 1:
        one, other = rng.sample(range(len(values)), 2)
        if field.type == field.TYPE_MESSAGE:
            values[one].CopyFrom(values[other])
        else:
            values[one], values[other] = values[other], values[one]
    elif field.type == field.TYPE_MESSAGE:
        new = values.add()
        if len(values) > 1:
            new.CopyFrom(values[rng.randrange(len(values) - 1)])
    elif kind == 2 and len(values):
        place = rng.randrange(len(values))
        values[place] = _scalar(field, values[place], rng)
    else:
        values.append(_scalar(field, values[-1] if len(values) else None, rng))


def _scalar(field: Any, old: Any, rng: random.Random) -> Any:
    if field.type == field.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice(FLOATS)
    if field.type == field.TYPE_STRING:
        text = old if isinstance(old, str) else ""
        return rng.choice(("", "x", text + "x", "../x", "%s\n", text[:-1]))
    if field.type == field.TYPE_BYTES:
        return mutate_bytes(old or b"x", rng)
    if field.type == field.TYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    number = rng.choice(NUMBERS) if rng.random() < 0.6 or old is None else old + rng.choice((-1, 1))
    if field.type in (field.TYPE_UINT32, field.TYPE_FIXED32):
        return number & 0xFFFFFFFF
    if field.type in (field.TYPE_UINT64, field.TYPE_FIXED64):
        return number & (1 << 64) - 1
    if field.type in (field.TYPE_INT32, field.TYPE_SINT32, field.TYPE_SFIXED32):
        return (number + (1 << 31)) % (1 << 32) - (1 << 31)
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
