"""What made traffic looks like: every choice there is, checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass

from scapy_zenoh.values import encoding_from_text

KEY_FORMS = ("text", "prefix", "declared", "mixed")
STAMPS = ("none", "router", "source")
TRANSPORTS = ("tcp", "udp")
CONGESTION = ("drop", "block", "block_first")
SN_BITS = {8: 0, 16: 1, 32: 2}  # name of a resolution -> its code

MAX_SESSIONS = 50_000
MAX_DECLARED = 60_000  # ids of keys have 16 bits, and a few are used otherwise
MAX_PAYLOAD = 1 << 26
MAX_UDP_BATCH = 65_487  # as nodes announce it on Linux
QUESTION_PAYLOAD = 255  # the largest payload of a query
OVERHEAD = 600  # more than key, extensions, attachment and headers of any message take together


@dataclass(frozen=True)
class Shape:
    """The shape of a capture. Shares and rates are between 0 and 1.

    ``sessions`` clients talk to one router. The first half of them publish and ask, the others subscribe
    and answer; each publisher has one of these, or several when the number is odd. Every put, deletion
    and query is seen twice: on its way to the router, and from there. A ValueError says what is impossible.
    """

    messages: int = 1000  # puts, deletions, queries and declarations; replies come on top
    sessions: int = 2
    seed: int = 0

    queries: float = 0.1
    deletes: float = 0.02
    declarations: float = 0.02  # subscribers, queryables, tokens and keys that come and go; the rest are puts

    keys: int = 10  # per publisher
    key_form: str = "mixed"  # whole text, declared prefix and text, declared key, or all of them
    payload: tuple[int, int] = (8, 128)
    large: float = 0.0  # share of puts with a large payload
    large_payload: tuple[int, int] = (100_000, 300_000)
    text: float = 0.5  # share of payloads that are text and can be compressed; the others are noise
    encodings: tuple[str, ...] = ("zenoh/bytes",)
    attachments: float = 0.0
    timestamps: str = "router"  # who stamps samples

    qos: bool = True  # one lane per priority
    priorities: tuple[int, ...] = (5,)
    congestion: tuple[str, ...] = ("drop",)
    express: float = 0.0
    best_effort: float = 0.0

    per_batch: int = 16  # messages per batch, at most
    batch_size: int = 49_152
    sn_bits: int = 32
    compression: bool = False
    low_latency: bool = False

    transport: str = "tcp"
    segment: int = 1448  # bytes in a TCP segment
    rate: float = 20_000.0  # messages per second of captured time
    loss: float = 0.0
    reorder: float = 0.0
    duplicate: float = 0.0

    events: int | None = None  # how many operations the truth file tells one by one; None: all

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_words()
        self._check_together()

    @property
    def publishers(self) -> int:
        """How many of the sessions publish."""
        return self.sessions // 2

    @property
    def largest_payload(self) -> int:
        """The size of the largest payload of a sample."""
        return max(self.payload[1], self.large_payload[1] if self.large else 0)

    def _check_numbers(self) -> None:
        bounds = {
            "messages": (0, 1 << 40),
            "sessions": (2, MAX_SESSIONS),
            "keys": (1, 1 << 20),
            "per_batch": (1, 1 << 16),
            "batch_size": (64, 65_535),
            "segment": (64, 65_000),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be between {least} and {most}, not {value}")
        shares = ("queries", "deletes", "declarations", "large", "text", "attachments", "express", "best_effort")
        for name in (*shares, "loss", "reorder", "duplicate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {getattr(self, name)}")
        for name in ("payload", "large_payload"):
            least, most = getattr(self, name)
            if not 0 <= least <= most <= MAX_PAYLOAD:
                raise ValueError(f"{name} sizes must rise from 0 to at most {MAX_PAYLOAD} bytes, not {least} to {most}")
        if self.rate <= 0:
            raise ValueError(f"rate must be above 0, not {self.rate}")
        if self.events is not None and self.events < 0:
            raise ValueError(f"events cannot be negative, not {self.events}")

    def _check_words(self) -> None:
        words = {"key_form": KEY_FORMS, "timestamps": STAMPS, "transport": TRANSPORTS}
        for name, known in words.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)}")
        if self.sn_bits not in SN_BITS:
            raise ValueError(f"sn_bits is one of {', '.join(map(str, SN_BITS))}, not {self.sn_bits}")
        if not self.priorities or not all(1 <= p <= 7 for p in self.priorities):
            raise ValueError("priorities of applications are between 1 (real time) and 7 (background)")
        if not self.congestion or not all(c in CONGESTION for c in self.congestion):
            raise ValueError(f"congestion control is one of {', '.join(CONGESTION)}")
        if not self.encodings:
            raise ValueError("at least one encoding is needed")
        for text in self.encodings:
            if len((encoding_from_text(text)[1] or "").encode()) > 255:
                raise ValueError(f"the encoding {text[:40]}... is longer than 255 bytes")

    def _check_together(self) -> None:
        if self.queries + self.deletes + self.declarations > 1:
            raise ValueError("the shares of queries, deletes and declarations are more than 1 together")
        if self.key_form in ("declared", "mixed") and 2 * self.keys > MAX_DECLARED:
            raise ValueError(f"{self.keys} keys cannot be declared, ids have 16 bits; use key_form text or prefix")
        if self.transport == "udp" and self.batch_size > MAX_UDP_BATCH:
            raise ValueError(f"a batch on udp has at most {MAX_UDP_BATCH} bytes, not {self.batch_size}")
        if self.low_latency:
            if self.qos:
                raise ValueError("low latency excludes the lanes of QoS: switch qos off")
            largest = self.largest_payload
            if largest + OVERHEAD > self.batch_size:
                raise ValueError(
                    f"low latency has no fragments: payloads of {largest} bytes need a batch_size of at least "
                    f"{largest + OVERHEAD}"
                )
