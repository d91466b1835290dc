"""Clients and their router at work: from a shape to batches on links, and to what the truth file tells.

Work goes in rounds. In a round a few publishers each do a handful of things; what that causes further
on is computed at once, but sent in four steps, each after the other: publisher to router, router to
subscriber, subscriber to router, router to publisher. So nothing is seen before its cause.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from scapy_zenoh.synthetic import wire
from scapy_zenoh.synthetic.nodes import (
    DOWN,
    EXTRA,
    PREFIX,
    QUESTIONS,
    UP,
    Client,
    Encoding,
    KeyName,
    Payloads,
    Publisher,
    Quality,
    Subscriber,
    encoding,
    quality,
)
from scapy_zenoh.synthetic.recorder import (
    Host,
    Recorder,
    TcpLink,
    UdpLink,
    host,
    interleaved,
)
from scapy_zenoh.synthetic.sender import Counts, Sender
from scapy_zenoh.synthetic.shape import SN_BITS, Shape
from scapy_zenoh.synthetic.truth import (
    SAMPLES_PER_NODE,
    Received,
    TruthFile,
    described,
)

START = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
PORT = 7447
LEASE_S = 10
KEEP_ALIVE_NS = LEASE_S * 10**9 // 4
AT_ONCE = 4  # publishers that work at the same time
ROUND_BYTES = 1 << 20  # of messages after which a publisher makes a pause: bounds what a round holds
TIMEOUT_MS = 10_000
OFFERED_BATCH = 65_480  # what clients ask for on TCP

FIRST_EXTRA = 65_000  # id of the first declaration that comes and goes
EXTRAS = 4  # entities that a client has at most beside its own
SUBSCRIBER, QUERYABLE, INTEREST = 1, 2, 1
QUERYABLE_ENTITY = 6
ROUTER = "router"

BEST_MATCHING, ALL = (0, "BEST_MATCHING"), (1, "ALL")
NO_CONSOLIDATION, LATEST = (1, "NONE"), (3, "LATEST")


class Traffic:
    """All nodes of a shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.counts = Counts()
        self.messages = 0  # operations of applications, replies included
        self._random = Random(shape.seed)
        self._chance = self._random.random
        self._payloads = Payloads(shape, self._random)
        self._qualities = [
            quality(p, c, x)
            for p in shape.priorities
            for c in shape.congestion
            for x in ((False, True) if shape.express else (False,))
        ]
        self._plain = [q for q in self._qualities if not q.express]
        self._fast = [q for q in self._qualities if q.express]
        self._various = len(self._qualities) > 1
        self._encodings = [encoding(text) for text in shape.encodings]
        self._stamped = shape.timestamps != "none"
        self._by_router = shape.timestamps == "router"
        self._told = 0  # operations told one by one
        self._events: list[tuple[int, str]] = []
        self._later: list[list[str]] = [[], [], [], []]  # events of this round that happen after a step
        self._samples: list[str] = []
        self._mask = {0: 0x7F, 1: 0x3FFF, 2: 0x0FFFFFFF}[SN_BITS[shape.sn_bits]]
        self.router_zid = self._zid()
        self._router_wire = wire.zid_bytes(self.router_zid)
        self._router_host = host(0, PORT)
        self.publishers: list[Publisher] = []
        self.subscribers: list[Subscriber] = []
        for i in range(shape.publishers):
            self.publishers.append(Publisher(*self._client(f"pub{i}", i)))
        for i in range(shape.sessions - shape.publishers):
            subscriber = Subscriber(*self._client(f"sub{i}", shape.publishers + i))
            self.subscribers.append(subscriber)
            self.publishers[i % shape.publishers].subscribers.append(subscriber)

    @property
    def clients(self) -> list[Client]:
        """All but the router."""
        return [*self.publishers, *self.subscribers]

    def nodes(self) -> dict[str, Any]:
        """The nodes as the truth file has them."""
        made: dict[str, Any] = {"implementation": "scapy-zenoh generate", "zenoh": "synthetic"}
        clients = {c.name: {**made, "role": "client", "zid": c.zid} for c in self.clients}
        return {ROUTER: {**made, "role": "router", "zid": self.router_zid}, **clients}

    def received(self) -> dict[str, Any]:
        """What each subscriber got on each key."""
        told = {}
        for publisher in self.publishers:
            for subscriber in publisher.subscribers:
                keys = {publisher.keys[i].text: r.summary() for i, r in sorted(subscriber.received.items())}
                if keys:
                    told[subscriber.name] = {"s1": keys}
        return told

    def run(self, recorder: Recorder, truth: TruthFile, progress: Callable[[int], object] | None = None) -> None:
        """Everything from the first packet to the last."""
        self._recorder, self._truth = recorder, truth
        self._event(ROUTER, f'"op": "open", "zid": "{self.router_zid}"')
        for client in self.clients:
            self._open(client)
        for publisher in self.publishers:
            self._introduce(publisher)
        self._write_events()
        self._keep_alive_at = recorder.now + KEEP_ALIVE_NS
        self._work(progress)
        recorder.now += KEEP_ALIVE_NS + 1
        self._keep_alive()
        for client in reversed(self.clients):
            self._close(client)
        self._event(ROUTER, '"op": "close"')
        self._write_events()
        recorder.finish()

    # --- opening and closing

    def _zid(self) -> str:
        return f"{1 + int(self._chance() * 15):x}{self._random.randbytes(16).hex()[1:]}"

    def _client(self, name: str, number: int) -> tuple[str, str, TcpLink | UdpLink, Sender, Sender]:
        zid = self._zid()
        mine: Host = host(1 + number, 32_768 + int(self._chance() * 28_000))
        link: TcpLink | UdpLink = (
            TcpLink(mine, self._router_host, self.shape.segment, self._random)
            if self.shape.transport == "tcp"
            else UdpLink(mine, self._router_host, self._random)
        )
        ends = wire.zid_bytes(zid), self._router_wire
        up, down = (Sender(self.shape, self.counts, self._initial_sn(*pair), self._mask) for pair in (ends, ends[::-1]))
        return name, zid, link, up, down

    def _initial_sn(self, mine: bytes, theirs: bytes) -> int:
        """The first number of all lanes, computed from both ids as nodes do."""
        return int.from_bytes(hashlib.shake_128(mine + theirs).digest(4), "little") & self._mask

    def _open(self, client: Client) -> None:
        shape = self.shape
        resolution = wire.DEFAULT_RESOLUTION & 0x0C | SN_BITS[shape.sn_bits]
        offered = max(shape.batch_size, OFFERED_BATCH) if shape.transport == "tcp" else shape.batch_size
        exts = (
            wire.EXT_LANES if shape.qos else b"",
            wire.EXT_LOW_LATENCY if shape.low_latency else b"",
            wire.EXT_COMPRESSION if shape.compression else b"",
            wire.EXT_PATCH,
        )
        cookie = b"\x30" + self._random.randbytes(48)
        sn_up = self._initial_sn(client.zid_wire, self._router_wire)
        sn_down = self._initial_sn(self._router_wire, client.zid_wire)
        steps = [
            (UP, wire.init(client.zid_wire, wire.CLIENT, resolution, offered, *exts)),
            (DOWN, wire.init(self._router_wire, wire.ROUTER, resolution, shape.batch_size, *exts, cookie=cookie)),
            (UP, wire.open_syn(LEASE_S, sn_up, cookie)),
            (DOWN, wire.open_ack(LEASE_S, sn_down)),
        ]
        self._recorder.add(client.link.open())
        for way, message in steps:
            client.ways[way].put(client.ways[way].framed(message, plain=True))
            self._emit(way, [client])
        self._event(client.name, f'"op": "open", "zid": "{client.zid}"')

    def _introduce(self, publisher: Publisher) -> None:
        """The declarations with which everything begins."""
        name = publisher.name
        prefixes = {PREFIX: f"plant/{name}", QUESTIONS: f"ask/{name}"}
        text = self.shape.key_form == "text"
        for client in (publisher, *publisher.subscribers):
            for number, prefix in {} if text else prefixes.items():
                client.up.declare(wire.declare_keyexpr(number, prefix))

        def everything(number: int) -> tuple[int, str]:
            return (0, f"{prefixes[number]}/**") if text else (number, "/**")

        for subscriber in publisher.subscribers:
            up = subscriber.up
            up.declare(wire.declare_subscriber(SUBSCRIBER, *everything(PREFIX), True))
            up.declare(wire.declare_queryable(QUERYABLE, *everything(QUESTIONS), True, True))
        self._emit(UP, publisher.subscribers)
        for subscriber in publisher.subscribers:
            told = f'"op": "declare_subscriber", "id": "s1", "key": "{prefixes[PREFIX]}/**"'
            self._event(subscriber.name, told)
            told = f'"op": "declare_queryable", "id": "q1", "key": "{prefixes[QUESTIONS]}/**", "complete": true'
            self._event(subscriber.name, told)
        interest = wire.interest_in_subscribers(INTEREST, *everything(PREFIX))
        publisher.up.send(interest, wire.CONTROL, at_once=True)
        self._emit(UP, [publisher])
        answer = wire.declare_subscriber(SUBSCRIBER, *everything(PREFIX), text)  # by the id of the one who asked
        publisher.down.declare(answer, INTEREST)
        publisher.down.declare(wire.FINAL_DECLARATION, INTEREST)
        self._emit(DOWN, [publisher])

    def _close(self, client: Client) -> None:
        up, down = client.ways
        if self.shape.low_latency and self.shape.transport == "tcp":
            up.put(up.framed(wire.CLOSE))
            down.put(down.last_close())
        up.put(up.last_close())
        self._emit(UP, [client])
        self._emit(DOWN, [client])
        self._recorder.add(client.link.close())
        self._event(client.name, '"op": "close"')

    def _keep_alive(self) -> None:
        """Every side that was silent for a quarter of the lease says that it lives."""
        now = self._recorder.now
        self._keep_alive_at = now + KEEP_ALIVE_NS
        for way in (UP, DOWN):
            silent = [c for c in self.clients if now - c.last[way] >= KEEP_ALIVE_NS]
            for client in silent:
                client.ways[way].put(client.ways[way].framed(wire.KEEP_ALIVE))
            self._emit(way, silent)

    # --- rounds

    def _emit(self, way: int, clients: Iterable[Client]) -> None:
        """Send what one side of some links has ready; the other side acknowledges."""
        flows, links = [], []
        for client in clients:
            batches = client.ways[way].take()
            if batches:
                flows.append(client.link.send(way, batches))
                links.append(client)
        if not flows:
            return
        self._recorder.add(interleaved(flows))
        now = self._recorder.now
        for client in links:
            client.last[way] = now
            acknowledgement = client.link.acknowledge(1 - way)
            if acknowledgement:
                self._recorder.add(acknowledgement)

    def _work(self, progress: Callable[[int], object] | None) -> None:
        shape, recorder = self.shape, self._recorder
        left = shape.messages
        burst = shape.per_batch * (len(set(shape.priorities)) if shape.qos else 1)
        interval = max(1, int(1e9 / shape.rate))
        at_once = min(AT_ONCE, len(self.publishers))
        turn = 0
        while left > 0:
            busy = [self.publishers[(turn + i) % len(self.publishers)] for i in range(at_once)]
            turn = (turn + at_once) % len(self.publishers)
            base, done = recorder.now, 0
            for i, publisher in enumerate(busy):
                done += self._burst(publisher, min(burst, left - done), base + i * interval, at_once * interval)
            left -= done
            recorder.now = base + done * interval
            subscribers = [s for p in busy for s in p.subscribers]
            steps: list[tuple[int, Sequence[Client]]]
            steps = [(UP, busy), (DOWN, subscribers), (UP, subscribers), (DOWN, busy)]
            for number, (way, clients) in enumerate(steps):
                self._emit(way, clients)
                for told in self._later[number]:
                    self._events.append((recorder.now, told))
                self._later[number].clear()
                if number == 1:
                    self._write_samples()
            self._write_events()
            if recorder.now >= self._keep_alive_at:
                self._keep_alive()
            if progress is not None:
                progress(shape.messages - left)

    def _burst(self, publisher: Publisher, count: int, start: int, step: int) -> int:
        """Up to ``count`` operations of a publisher; how many they were."""
        shape, chance = self.shape, self._chance
        asked = shape.queries
        deleted = asked + shape.deletes
        declared = deleted + shape.declarations
        budget = ROUND_BYTES
        for n in range(count):
            budget -= 64  # what an operation without payload takes
            kind = chance()
            t = start + n * step
            if kind >= declared:
                budget -= self._sample(publisher, t, False)
            elif kind < asked:
                self._get(publisher, t)
            elif kind < deleted:
                self._sample(publisher, t, True)
            else:
                self._declaration(publisher, t)
            if budget < 0:
                self.messages += n + 1
                return n + 1
        self.messages += count
        return count

    def _event(self, node: str, told: str) -> None:
        self._events.append((self._recorder.now, f'"node": "{node}", {told}'))

    def _write_events(self) -> None:
        self._events.sort(key=lambda event: event[0])
        event = self._truth.event
        for t, told in self._events:
            event(f'  {{"t": {t}, {told}}}')
        self._events.clear()

    def _write_samples(self) -> None:
        now, sample = self._recorder.now, self._truth.sample
        for told in self._samples:
            sample(f'  {{"t": {now}, "op": "rx_sample", {told}}}')
        self._samples.clear()

    def _tells(self) -> bool:
        """True while operations are told one by one."""
        limit = self.shape.events
        if limit is not None and self._told >= limit:
            return False
        self._told += 1
        return True

    # --- operations

    def _quality(self) -> Quality:
        fast = self._fast and self._chance() < self.shape.express
        choice = self._fast if fast else self._plain
        return choice[int(self._chance() * len(choice))] if len(choice) > 1 else choice[0]

    def _encoding(self) -> Encoding:
        choice = self._encodings
        return choice[int(self._chance() * len(choice))] if len(choice) > 1 else choice[0]

    def _attachment(self) -> bytes | None:
        if not self.shape.attachments or self._chance() >= self.shape.attachments:
            return None
        return self._random.randbytes(4 + int(self._chance() * 20))

    def _size(self, bounds: tuple[int, int]) -> int:
        least, most = bounds
        return least + int(self._chance() * (most - least + 1))

    def _sample(self, publisher: Publisher, t: int, deletion: bool) -> int:
        """A put or a deletion, and its way to the subscribers; the size of its payload.

        Nearly all the time goes here, so it is one function and looks at what a shape uses before it calls.
        """
        shape, chance = self.shape, self._chance
        index = int(chance() * shape.keys)
        key = publisher.keys.get(index) or publisher.name_key(index, shape)
        qos = self._quality() if self._various else self._plain[0]
        reliable = not shape.best_effort or chance() >= shape.best_effort
        attachment = self._attachment() if shape.attachments else None
        by_router, ntp, stamp = self._by_router, 0, b""
        if self._stamped:
            ntp = wire.ntp64(t)
            stamp = wire.timestamp(ntp, self._router_wire if by_router else publisher.zid_wire)
        enc = self._encodings[0]
        if deletion:
            payload = b""
            body = wire.delete(stamp, attachment)
            sent = wire.delete(b"", attachment) if by_router else body
        else:
            if len(self._encodings) > 1:
                enc = self._encoding()
            least, most = shape.large_payload if shape.large and chance() < shape.large else shape.payload
            payload = self._payloads.take(least + int(chance() * (most - least + 1)))
            body = wire.put(payload, enc.wire, stamp, attachment)
            sent = wire.put(payload, enc.wire, b"", attachment) if by_router else body
        priority, express, head_of = qos.priority, qos.express, (index, qos.byte)
        head = publisher.heads.get(head_of)
        if head is None:
            head = publisher.heads[head_of] = publisher.head(index, key, qos.byte)
        publisher.up.send(head + sent, priority, reliable, express)
        content = ""  # what sender and receivers tell alike
        if self._tells():
            content = self._content(deletion, payload, attachment)
            told = f'"node": "{publisher.name}", "op": "{"delete" if deletion else "put"}", "key": {key.told}{content}'
            told += "" if deletion else enc.optional
            told += "" if qos.byte == wire.DEFAULT_QOS else f", {qos.told}"
            told += f', "timestamp": "{ntp}/{publisher.zid}"' if stamp and not by_router else ""
            self._events.append((t, told))
        for subscriber in publisher.subscribers:
            head = subscriber.heads.get(head_of)
            if head is None:
                head = subscriber.heads[head_of] = subscriber.head(index, key, qos.byte)
            subscriber.down.send(head + body, priority, reliable, express)
            got = subscriber.received.get(index)
            if got is None:
                got = subscriber.received[index] = Received()
            if deletion:
                got.deletes += 1
            else:
                got.puts += 1
                got.bytes += len(payload)
                got.hash.update(payload)
            if subscriber.samples < SAMPLES_PER_NODE:
                subscriber.samples += 1
                content = content or self._content(deletion, payload, attachment)
                told = f'"node": "{subscriber.name}", "sub": "s1", "key": {key.told}{content}, {qos.told}'
                told += ', "kind": "DELETE"' if deletion else f', "kind": "PUT"{enc.told}'
                told += f', "timestamp": "{ntp}/{self.router_zid if by_router else publisher.zid}"' if stamp else ""
                self._samples.append(told)
        return len(payload)

    def _content(self, deletion: bool, payload: bytes, attachment: bytes | None) -> str:
        told = "" if deletion else f', "payload": {described(payload)}'
        return told if attachment is None else f'{told}, "attachment": "{attachment.hex()}"'

    def _get(self, publisher: Publisher, t: int) -> None:
        """A query, and what the queryables answer."""
        shape, chance = self.shape, self._chance
        index = shape.keys + int(chance() * shape.keys)
        key = publisher.keys.get(index) or publisher.name_key(index, shape)
        priority = shape.priorities[int(chance() * len(shape.priorities))]
        qos = quality(priority, "block", False)
        everyone = chance() < 0.25
        (target, target_name), (mode, mode_name) = (ALL, NO_CONSOLIDATION) if everyone else (BEST_MATCHING, LATEST)
        parameters = f"n={self.messages};unit=K" if chance() < 0.5 else ""
        attachment = self._attachment()
        enc = self._encoding()
        body = (enc.wire, self._payloads.take(int(chance() * 256))) if chance() < 0.3 else None
        question = wire.query(mode, parameters, body, attachment)
        rid = publisher.next_request(UP)
        expression = publisher.expression(index, key)
        publisher.up.send(wire.request(rid, *expression, qos.byte, target, TIMEOUT_MS) + question, priority)
        tells = self._tells()
        content = f', "payload": {described(body[1])}{enc.optional}' if body is not None and tells else ""
        content += f', "attachment": "{attachment.hex()}"' if attachment is not None else ""
        selector = json.dumps(key.text + (f"?{parameters}" if parameters else ""), ensure_ascii=False)
        replies = []
        for subscriber in publisher.subscribers if everyone else publisher.subscribers[:1]:
            hop = subscriber.next_request(DOWN)
            there = subscriber.expression(index, key)
            subscriber.down.send(wire.request(hop, *there, qos.byte, target, TIMEOUT_MS) + question, priority)
            if tells:
                asked = f'"node": "{subscriber.name}", "op": "rx_query", "qable": "q1", "selector": {selector}, '
                self._later[1].append(f'{asked}"key": {key.told}, "parameters": {json.dumps(parameters)}{content}')
            reply = self._reply(publisher, subscriber, key, rid, hop, qos, t, tells)
            subscriber.up.send(wire.response_final(hop, qos.byte), priority)
            replies.append(reply)
        publisher.down.send(wire.response_final(rid, qos.byte), priority)
        if tells:
            told = f'"node": "{publisher.name}", "op": "get", "selector": {selector}, "target": "{target_name}", '
            told += f'"consolidation": "{mode_name}", "timeout_s": {TIMEOUT_MS // 1000}, {qos.told}{content}, '
            self._events.append((t, f'{told}"replies": [{", ".join(replies)}]'))

    def _reply(
        self, publisher: Publisher, subscriber: Subscriber, key: KeyName, rid: int, hop: int, qos: Quality, t: int,
        tells: bool,
    ) -> str:  # fmt: skip
        """One answer on both links, as the one who asked tells it."""
        chance = self._chance
        self.messages += 1
        kind = chance()
        enc = self._encoding()
        by = f'"replier": "{subscriber.zid}"'
        made = f'"node": "{subscriber.name}", "op": "%s", "qable": "q1"'
        payload = self._payloads.take(self._size(self.shape.payload)) if kind < 0.92 else b""
        content = f"{described(payload)}{enc.told}" if tells else ""
        stamp, stamped = b"", ""
        if self.shape.timestamps == "source":
            ntp = wire.ntp64(t)
            stamp, stamped = wire.timestamp(ntp, subscriber.zid_wire), f', "timestamp": "{ntp}/{subscriber.zid}"'
        if kind < 0.1:
            answer = wire.err(payload, enc.wire)
            event, told = f'{made % "reply_err"}, "payload": {content}', f'{{"err": {content}, {by}}}'
        elif kind < 0.92:
            attachment = self._attachment()
            attached = f', "attachment": "{attachment.hex()}"' if attachment is not None else ""
            answer = wire.reply(wire.put(payload, enc.wire, stamp, attachment))
            content = f'"key": {key.told}, "payload": {content}{attached}{stamped}'
            event, told = f"{made % 'reply'}, {content}", f'{{"kind": "PUT", {content}, {qos.told}, {by}}}'
        else:
            answer = wire.reply(wire.delete(stamp))
            content = f'"key": {key.told}{stamped}'
            event, told = f"{made % 'reply_del'}, {content}", f'{{"kind": "DELETE", {content}, {qos.told}, {by}}}'
        if key.form == "prefix":
            there, back = (key.prefix_id, key.suffix, True), (key.prefix_id, key.suffix, False)
        else:
            there = back = (0, key.text, True)
        zid = subscriber.zid_wire
        subscriber.up.send(wire.response(hop, *there, qos.byte, zid, QUERYABLE_ENTITY) + answer, qos.priority)
        publisher.down.send(wire.response(rid, *back, qos.byte, zid, QUERYABLE_ENTITY) + answer, qos.priority)
        if tells:
            self._later[2].append(event)
        return told

    def _declaration(self, publisher: Publisher, t: int) -> None:
        """Something is declared, or what was declared for the longest time goes."""
        client: Client = publisher if self._chance() < 0.5 else publisher.subscribers[0]
        extras = client.extras
        if len(extras) == EXTRAS or (extras and self._chance() < 0.5):
            what, number, name = extras.popleft()
            client.up.declare(EXTRA[what].undeclare(number))
            told = f'"op": "undeclare", "id": "{name}", "kind": "{EXTRA[what].kind}"'
        else:
            what = list(EXTRA)[client.extra_count % len(EXTRA)]
            client.extra_count += 1
            number = FIRST_EXTRA + client.extra_count
            if what == "keyexpr":  # these ids have 16 bits: take them again, as nodes do
                number = FIRST_EXTRA + client.extra_count // len(EXTRA) % (EXTRAS + 1)
            name, key = f"x{client.extra_count}", f"extra/{client.name}/{what}/{client.extra_count}"
            client.up.declare(EXTRA[what].declare(number, key))
            extras.append((what, number, name))
            told = f'"op": "declare_{what}", "id": "{name}", "key": "{key}"'
            told += ', "complete": false' if what == "queryable" else ""
        if self._tells():
            told = f'"node": "{client.name}", {told}'
            if client is publisher:
                self._events.append((t, told))
            else:
                self._later[2].append(told)
