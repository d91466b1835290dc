"""Clients and their router at work: from a shape to batches on links, and to what the truth file tells.

Work goes in rounds. In a round a few publishers each do a handful of things; what that causes further
on is computed at once, but sent in four steps, each after the other: publisher to router, router to
subscriber, subscriber to router, router to publisher. So nothing is seen before its cause.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from random import Random
from typing import Any

from scapy_zenoh.synthetic import wire
from scapy_zenoh.synthetic.nodes import (
    DOWN,
    EXTRA,
    KEYEXPR,
    PREFIX,
    QUESTIONS,
    TIMEOUT_MS,
    UP,
    Client,
    Encoding,
    Flow,
    Hop,
    Publisher,
    Quality,
    Question,
    Subscriber,
    encoding,
    payloads,
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
from scapy_zenoh.synthetic.shape import QUESTION_PAYLOAD, SN_BITS, Shape
from scapy_zenoh.synthetic.truth import (
    NOTHING,
    SAMPLES_PER_NODE,
    TruthFile,
    described,
)

START = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
PORT = 7447
LEASE_S = 10
KEEP_ALIVE_NS = LEASE_S * 10**9 // 4
AT_ONCE = 4  # publishers that work at the same time
ROUND_BYTES = 1 << 20  # of messages after which a publisher makes a pause: bounds what a round holds
OFFERED_BATCH = 65_480  # what clients ask for on TCP

FIRST_EXTRA = 65_000  # id of the first declaration that comes and goes
EXTRAS = 4  # entities that a client has at most beside its own
SUBSCRIBER, QUERYABLE, INTEREST = 1, 2, 1
ROUTER = "router"

BEST_MATCHING, ALL = (0, "BEST_MATCHING"), (1, "ALL")
NO_CONSOLIDATION, LATEST = (1, "NONE"), (3, "LATEST")


# a put or deletion: time, the same as NTP64, flow, payload, encoding, attachment, and whether it is told
Sample = tuple[int, int, Flow, bytes | None, Encoding, bytes | None, bool]


class Traffic:
    """All nodes of a shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.counts = Counts()
        self.messages = 0  # operations of applications, replies included
        self._random = Random(shape.seed)
        self._chance = self._random.random
        self._payload = payloads(shape, self._random)
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
        self._to_tell = float("inf") if shape.events is None else shape.events  # operations told one by one
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
            self._tell_prefixes(subscriber, {} if text else prefixes)
            told = f'"op": "declare_subscriber", "id": "s1", "key": "{prefixes[PREFIX]}/**"'
            self._event(subscriber.name, told)
            told = f'"op": "declare_queryable", "id": "q1", "key": "{prefixes[QUESTIONS]}/**", "complete": true'
            self._event(subscriber.name, told)
        interest = wire.interest_in_subscribers(INTEREST, *everything(PREFIX))
        publisher.up.lane(wire.CONTROL).add(interest, at_once=True)
        self._emit(UP, [publisher])
        self._tell_prefixes(publisher, {} if text else prefixes)
        answer = wire.declare_subscriber(SUBSCRIBER, *everything(PREFIX), text)  # by the id of the one who asked
        publisher.down.declare(answer, INTEREST)
        publisher.down.declare(wire.FINAL_DECLARATION, INTEREST)
        self._emit(DOWN, [publisher])

    def _tell_prefixes(self, client: Client, prefixes: dict[int, str]) -> None:
        for number, prefix in prefixes.items():
            self._event(client.name, f'"op": "declare_keyexpr", "id": "k{number}", "key": "{prefix}"')

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
        if shape.qos:  # declarations have a lane of their own: as many operations as it takes to fill the fuller one
            burst = int(burst / max(1 - shape.declarations, shape.declarations / 2))
        interval = max(1, int(1e9 / shape.rate))
        at_once = min(AT_ONCE, len(self.publishers))
        turn = 0
        while left > 0:
            busy = [self.publishers[(turn + i) % len(self.publishers)] for i in range(at_once)]
            turn = (turn + at_once) % len(self.publishers)
            base, longest = recorder.now, 0
            for i, publisher in enumerate(busy):
                done = self._burst(publisher, min(burst, left), base + i * interval, at_once * interval)
                left -= done
                longest = max(longest, done)
            recorder.now = base + longest * at_once * interval  # nothing is on the wire before it happens
            subscribers = [s for p in busy for s in p.subscribers]
            steps: list[tuple[int, Sequence[Client]]]
            steps = [(UP, busy), (DOWN, subscribers), (UP, subscribers), (DOWN, busy)]
            for number, (way, clients) in enumerate(steps):
                self._emit(way, clients)
                now, later = recorder.now, self._later[number]
                self._events += [(now, f'  {{"t": {now}, {told}}}') for told in later]
                later.clear()
                if number == 1:
                    self._write_samples()
            self._write_events()
            if recorder.now >= self._keep_alive_at:
                self._keep_alive()
            if progress is not None:
                progress(shape.messages - left)

    def _burst(self, publisher: Publisher, count: int, start: int, step: int) -> int:
        """Up to ``count`` operations of a publisher; how many they were.

        Puts are made here and not in a function of their own, and told all together afterwards: most operations
        are puts, and both loops are faster by a tenth when they are small and look up everything once.
        """
        shape, chance, take, vle = self.shape, self._chance, self._payload, wire.vle
        asked = shape.queries
        deleted = asked + shape.deletes
        declared = deleted + shape.declarations
        keys, best_effort, attachments = shape.keys, shape.best_effort, shape.attachments
        various, encodings, by_router = self._various, self._encodings, self._by_router
        large, usual = shape.large, shape.payload
        enc, qos = encodings[0], self._plain[0]
        flows = publisher.flows.setdefault(qos.byte, {})
        reliable, attachment = True, None
        limited, tells = self.shape.events is not None, True
        samples: list[Sample] = []
        done, budget = 0, ROUND_BYTES
        times = range(start, start + count * step, step)
        ntps, stamps = self._stamps(times, self._router_wire if by_router else publisher.zid_wire)
        for t, ntp, stamp in zip(times, ntps, stamps, strict=True):
            if budget < 0:
                break
            done += 1
            budget -= 64  # what an operation without payload takes
            kind = chance()
            if kind < declared:
                if kind < asked:
                    self._get(publisher, t)
                elif kind < deleted:
                    samples.append(self._delete(publisher, t, ntp, stamp))
                else:
                    self._declaration(publisher, t)
                continue
            index = int(chance() * keys)
            if various:
                qos = self._quality()
                flows = publisher.flows.setdefault(qos.byte, {})
            flow = flows.get(index) or self._flow(publisher, index, qos)
            if best_effort:
                reliable = chance() >= best_effort
            if attachments:
                attachment = self._attachment()
            if len(encodings) > 1:
                enc = self._encoding()
            least, most = shape.large_payload if large and chance() < large else usual
            size = least + int(chance() * (most - least + 1))
            payload = take(size)
            if attachment is None:
                rest = vle(size) + payload
                sent = enc.put + rest
                body = enc.stamped + stamp + enc.wire + rest if stamp else sent
            else:
                sent = wire.put(payload, enc.wire, b"", attachment)
                body = wire.stamped(sent, stamp) if stamp else sent
            flow.lane.add(flow.head + (sent if by_router else body), reliable, qos.express)
            for delivery in flow.deliveries:
                delivery.lane.add(delivery.head + body, reliable, qos.express)
            if limited:
                tells = self._tells()
            samples.append((t, ntp, flow, payload, enc, attachment, tells))
            budget -= size
        self._tell(publisher, samples)
        self.messages += done
        return done

    def _tell(self, publisher: Publisher, samples: list[Sample]) -> None:
        """Puts and deletions as those who sent and received them tell them."""
        events, by_source = self._events, self._stamped and not self._by_router
        for t, ntp, flow, payload, enc, attachment, tells in samples:
            attached = "" if attachment is None else f', "attachment": "{attachment.hex()}"'
            if tells:
                end = f', "timestamp": "{ntp}/{publisher.zid}"}}' if by_source else "}"
                if payload is None:
                    told = f'  {{"t": {t}, {flow.deletion}{attached}{flow.optional}{end}'
                else:
                    told = f'  {{"t": {t}, {flow.put}{described(payload)}{attached}{enc.optional}{flow.optional}{end}'
                events.append((t, told))
            for delivery in flow.deliveries:
                delivery.received.add(payload)
                if delivery.subscriber.samples < SAMPLES_PER_NODE:
                    kind, content = ("DELETE", NOTHING) if payload is None else ("PUT", described(payload) + enc.told)
                    told = f', "payload": {content}{attached}, {flow.qos.told}, "kind": "{kind}"'
                    self._tell_sample(publisher, delivery.subscriber, flow, told, ntp)

    def _stamps(self, times: Sequence[int], zid: bytes) -> tuple[list[int], list[bytes]]:
        """Times as NTP64 and as timestamps on the wire, which are empty when nobody stamps."""
        if not self._stamped or not times:
            return [0] * len(times), [b""] * len(times)
        return wire.timestamps(times, zid)

    def _event(self, node: str, told: str) -> None:
        now = self._recorder.now
        self._events.append((now, f'  {{"t": {now}, "node": "{node}", {told}}}'))

    def _write_events(self) -> None:
        self._events.sort(key=itemgetter(0))
        self._truth.events([line for _, line in self._events])
        self._events.clear()

    def _write_samples(self) -> None:
        now = self._recorder.now
        self._truth.samples([f'  {{"t": {now}, "op": "rx_sample", {told}}}' for told in self._samples])
        self._samples.clear()

    def _tells(self) -> bool:
        """True while operations are told one by one."""
        self._to_tell -= 1
        return self._to_tell >= 0

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

    def _flow(self, publisher: Publisher, index: int, qos: Quality) -> Flow:
        flow = Flow(publisher, index, publisher.key(index, self.shape), qos)
        publisher.flows[qos.byte][index] = flow
        return flow

    def _tell_sample(self, publisher: Publisher, subscriber: Subscriber, flow: Flow, told: str, ntp: int) -> None:
        """A sample as a subscriber tells it."""
        subscriber.samples += 1
        zid = self.router_zid if self._by_router else publisher.zid
        told += f', "timestamp": "{ntp}/{zid}"' if self._stamped else ""
        self._samples.append(f'"node": "{subscriber.name}", "sub": "s1", "key": {flow.key.told}{told}')

    def _delete(self, publisher: Publisher, t: int, ntp: int, stamp: bytes) -> Sample:
        """A deletion, and its way to the subscribers."""
        shape, chance = self.shape, self._chance
        index = int(chance() * shape.keys)
        qos = self._quality() if self._various else self._plain[0]
        flow = publisher.flows.setdefault(qos.byte, {}).get(index) or self._flow(publisher, index, qos)
        reliable = not shape.best_effort or chance() >= shape.best_effort
        attachment = self._attachment()
        body = wire.delete(stamp, attachment)
        sent = wire.delete(b"", attachment) if self._by_router else body
        flow.lane.add(flow.head + sent, reliable, qos.express)
        for delivery in flow.deliveries:
            delivery.lane.add(delivery.head + body, reliable, qos.express)
        return t, ntp, flow, None, self._encodings[0], attachment, self._tells()

    def _get(self, publisher: Publisher, t: int) -> None:
        """A query, and what the queryables answer."""
        shape, chance = self.shape, self._chance
        index = shape.keys + int(chance() * shape.keys)
        priority = shape.priorities[int(chance() * len(shape.priorities))]
        question = publisher.questions.get((index, priority))
        if question is None:
            question = Question(publisher, index, publisher.key(index, shape), priority)
            publisher.questions[index, priority] = question
        everyone = chance() < 0.25
        (target, target_name), (mode, mode_name) = (ALL, NO_CONSOLIDATION) if everyone else (BEST_MATCHING, LATEST)
        parameters = f"n={self.messages};unit=K" if chance() < 0.5 else ""
        attachment = self._attachment() if shape.attachments else None
        enc = self._encoding()
        body = (enc.wire, self._payload(int(chance() * (QUESTION_PAYLOAD + 1)))) if chance() < 0.3 else None
        asked = wire.query(mode, parameters, body, attachment)
        wire_id = wire.vle(publisher.next_request(UP))
        before, after = question.requests[target]
        question.ask(before + wire_id + after + asked)
        tells = self._tells()
        content = f', "payload": {described(body[1])}{enc.optional}' if body is not None and tells else ""
        content += f', "attachment": "{attachment.hex()}"' if attachment is not None else ""
        key, qos, (final, final_end) = question.key.told, question.qos, question.final
        selector = f'{key[:-1]}?{parameters}"' if parameters else key
        replies = []
        for hop in question.to(everyone):
            subscriber = hop.subscriber
            hop_id = wire.vle(subscriber.next_request(DOWN))
            before, after = hop.requests[target]
            hop.ask(before + hop_id + after + asked)
            if tells:
                told = f'"node": "{subscriber.name}", "op": "rx_query", "qable": "q1", "selector": {selector}, '
                self._later[1].append(f'{told}"key": {key}, "parameters": "{parameters}"{content}')
            answer, told = self._reply(hop, key, qos, t, tells)
            before, after = hop.there
            hop.answer(before + hop_id + after + answer)
            before, after = hop.back
            question.answer(before + wire_id + after + answer)
            hop.answer(final + hop_id + final_end)
            replies.append(told)
        question.answer(final + wire_id + final_end)
        if tells:
            told = f'  {{"t": {t}, "node": "{publisher.name}", "op": "get", "selector": {selector}, '
            told += f'"target": "{target_name}", "consolidation": "{mode_name}", "timeout_s": {TIMEOUT_MS // 1000}, '
            self._events.append((t, f'{told}{qos.told}{content}, "replies": [{", ".join(replies)}]}}'))

    def _reply(self, hop: Hop, key: str, qos: Quality, t: int, tells: bool) -> tuple[bytes, str]:
        """An answer as it is on both links, and as the one who asked tells it."""
        chance, subscriber = self._chance, hop.subscriber
        self.messages += 1
        kind = chance()
        enc = self._encoding()
        payload = self._payload(self._size(self.shape.payload)) if kind < 0.92 else b""
        stamp, stamped = b"", ""
        if self.shape.timestamps == "source":
            ntp = wire.ntp64(t)
            stamp, stamped = wire.timestamp(ntp, subscriber.zid_wire), f', "timestamp": "{ntp}/{subscriber.zid}"'
        attachment = self._attachment() if self.shape.attachments and 0.1 <= kind < 0.92 else None
        if kind < 0.1:
            op, answer = "reply_err", wire.err(payload, enc.wire)
        elif kind < 0.92:
            op, answer = "reply", wire.reply(wire.put(payload, enc.wire, stamp, attachment))
        else:
            op, answer = "reply_del", wire.reply(wire.delete(stamp))
        if not tells:
            return answer, ""
        by = f'"replier": "{subscriber.zid}"'
        if kind < 0.1:
            content = f"{described(payload)}{enc.told}"
            told = f'{{"err": {content}, {by}}}'
            content = f'"payload": {content}'
        elif kind < 0.92:
            attached = f', "attachment": "{attachment.hex()}"' if attachment is not None else ""
            content = f'"key": {key}, "payload": {described(payload)}{enc.told}{attached}{stamped}'
            told = f'{{"kind": "PUT", {content}, {qos.told}, {by}}}'
        else:
            content = f'"key": {key}{stamped}'
            told = f'{{"kind": "DELETE", {content}, "payload": {NOTHING}, {qos.told}, {by}}}'
        self._later[2].append(f'"node": "{subscriber.name}", "op": "{op}", "qable": "q1", {content}')
        return answer, told

    def _declaration(self, publisher: Publisher, t: int) -> None:
        """Something is declared, or what was declared for the longest time goes; nothing else relies on it."""
        chance = self._chance
        client: Client = publisher if chance() < 0.5 else publisher.subscribers[0]
        extras = client.extras
        if len(extras) == EXTRAS or (extras and chance() < 0.5):
            extra, number, count = extras.popleft()
            client.control(extra.before + number + extra.after)
            told = f'"node": "{client.name}", "op": "undeclare", "id": "x{count}", "kind": "{extra.kind}"'
        else:
            extra = EXTRA[client.extra_count % len(EXTRA)]
            count = client.extra_count = client.extra_count + 1
            # ids of keys have 16 bits: take them again, as nodes do
            number = wire.vle(FIRST_EXTRA + (count // len(EXTRA) % (EXTRAS + 1) if extra is KEYEXPR else count))
            key = f"extra/{client.name}/{extra.name}/{count}"
            client.control(extra.declares + number + wire.whole_key(key))
            extras.append((extra, number, count))
            told = f'"node": "{client.name}", "op": "{extra.op}", "id": "x{count}", "key": "{key}"{extra.more}'
        if not self._tells():
            return
        if client is publisher:
            self._events.append((t, f'  {{"t": {t}, {told}}}'))
        else:
            self._later[2].append(told)
