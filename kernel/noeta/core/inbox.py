"""What others posted becomes records, in order. What it means is then for the fold and the runner."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import encode
from noeta.core.items import ITEMS, Cancel, Entry, Erase, Interrupt, decode_body
from noeta.core.log import InboxItem
from noeta.core.messages import Message, decode_message
from noeta.core.view import quoting
from noeta.core.work import Work

PAGE = 100


async def drain(work: Work) -> None:
    """Record everything in the inbox, or up to what stops the task or its turn."""
    while True:
        items = await work.outside.log.inbox(work.state.task, PAGE)
        for item in items:
            if item.n > work.taken:
                work.taken = item.n
                work.batch.consume.append(item.n)
                data = record(work, item)
                work.stops += [data] if isinstance(data, Interrupt | Cancel) else []
        # What stops the turn is consumed in the append that says so: a death between them would lose it.
        if work.stops or len(items) < PAGE:
            return
        await work.commit()


def record(work: Work, item: InboxItem) -> Any:
    """Record one item; its payload. An item that cannot be read is recorded without it."""
    data, message = payload(item)
    if isinstance(data, r.Answer):
        call = work.state.calls.get(data.call)
        late = call is None or call.status != "parked" or call.park != data.park
        work.put(r.Answered(n=item.n, key=item.key, answer=data, late=late))
    elif isinstance(data, r.ChildEnded):
        work.put(replace(data, n=item.n, key=item.key))
    else:
        raw = r.NULL if data is None else Raw(msgspec.json.encode(data))
        work.put(r.Received(n=item.n, key=item.key, item=item.kind, data=raw), message)
    if isinstance(data, Entry):
        work.place(encode(0, 0.0, data.extension, data.kind, msgspec.json.decode(data.data)))
    elif isinstance(data, Erase):
        along = quoting(work.state.conversation, data.seqs)
        work.put(r.Erased(seqs=data.seqs, along=along, by=data.by))
    return data


def payload(item: InboxItem) -> tuple[Any, Message | None]:
    """The payload of an item and its message, each None when there is none or it cannot be read."""
    try:
        body = decode_body(item.body)
        type_ = ITEMS.get(item.kind)
        data = msgspec.json.decode(body.data, type=type_) if type_ and body.data else None
        message = decode_message(bytes(body.message)) if body.message else None
        # Another version may let through what no log can hold: nobody could ever go on behind that.
        fact = r.Received(n=item.n, key=item.key, item=item.kind, data=body.data or r.NULL)
        encode(0, 0.0, r.CORE, fact.kind, fact, message=message)
        if isinstance(data, Entry):
            encode(0, 0.0, data.extension, data.kind, msgspec.json.decode(data.data))
    except (ValueError, RecursionError):
        return None, None
    return data, message
