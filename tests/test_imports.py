"""What importing costs and brings: no Scapy for the data side, all of Zenoh wherever Scapy's TCP is."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Modules that work on data alone, and so never import Scapy.
WITHOUT_SCAPY = [
    "scapy_zenoh",
    "scapy_zenoh.capture",
    "scapy_zenoh.cli",
    "scapy_zenoh.codec",
    "scapy_zenoh.commands",
    "scapy_zenoh.decode._generated",
    "scapy_zenoh.decode.codec",
    "scapy_zenoh.decode.reading",
    "scapy_zenoh.decode.records",
    "scapy_zenoh.decode.runtime",
    "scapy_zenoh.enums",
    "scapy_zenoh.expr",
    "scapy_zenoh.fault",
    "scapy_zenoh.follow",
    "scapy_zenoh.framing",
    "scapy_zenoh.generate",
    "scapy_zenoh.keyexpr",
    "scapy_zenoh.lua_command",
    "scapy_zenoh.pipeline.errors",
    "scapy_zenoh.pipeline.java",
    "scapy_zenoh.pipeline.spark",
    "scapy_zenoh.primitives",
    "scapy_zenoh.recording",
    "scapy_zenoh.rows",
    "scapy_zenoh.schema.model",
    "scapy_zenoh.schema.names",
    "scapy_zenoh.schema.slots",
    "scapy_zenoh.session.tracker",
    "scapy_zenoh.story",
    "scapy_zenoh.streams",
    "scapy_zenoh.synthetic.traffic",
    "scapy_zenoh.tls",
    "scapy_zenoh.values",
    "scapy_zenoh.websocket",
    "scapy_zenoh.wireshark",
]
#: The modules that declare messages, and those that work on them.
WITH_SCAPY = [
    "common",
    "compiled",
    "data",
    "declare",
    "decode.generator",
    "demo",
    "extension",
    "fields",
    "layers",
    "link",
    "message",
    "network",
    "parsing",
    "records",
    "scapy_session",
    "schema.extract",
    "scouting",
    "transport",
]

SCAPY_IS_MISSING = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "scapy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
NO_SCAPY = "\nassert [m for m in sys.modules if m.partition('.')[0] == 'scapy'] == []\n"

# A batch: its size in two bytes, the low one first, then KEEP_ALIVE, which is its id 0x04 alone.
IS_BOUND = """
import scapy_zenoh
from scapy.layers.inet import IP, TCP
packet = IP(bytes(IP() / TCP(sport=5000, dport=7447) / bytes.fromhex("0100 04")))
assert [type(m).__name__ for m in packet[scapy_zenoh.ZenohBatch].msgs] == ["ZenohKeepAlive"], packet
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def works(code: str) -> str:
    """What a program that ends well and says nothing on stderr prints."""
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- without Scapy ------------------------------------------------------------------------------


def test_data_side_works_where_scapy_is_missing() -> None:
    works(SCAPY_IS_MISSING + "".join(f"import {name}\n" for name in WITHOUT_SCAPY))


@pytest.mark.parametrize("name", WITHOUT_SCAPY)
def test_data_side_does_not_import_scapy(name: str) -> None:
    works(f"import sys, {name}" + NO_SCAPY)


def test_names_of_the_data_side_do_not_import_scapy() -> None:
    works("import sys\nfrom scapy_zenoh import VLE, Fault, FaultKind, WideText, capture, enums" + NO_SCAPY)


@pytest.mark.parametrize("name", ["read_capture", "to_table"])
def test_tables_are_looked_up_without_scapy(name: str) -> None:
    code = "import sys, types\nsys.modules['scapy_zenoh.tables'] = types.SimpleNamespace(read_capture=1, to_table=1)\n"
    works(code + f"from scapy_zenoh import {name}" + NO_SCAPY)


def test_layers_without_scapy_say_what_is_missing() -> None:
    done = run(SCAPY_IS_MISSING + "import scapy_zenoh\nscapy_zenoh.ZenohPush")
    assert "ImportError: scapy_zenoh.ZenohPush needs Scapy: No module named 'scapy'" in done.stderr


@pytest.mark.parametrize("name", ["__path__", "__wrapped__", "__all_", "_private", "nothing", "no.name", ""])
def test_asking_for_other_names_does_not_import_scapy(name: str) -> None:
    works(f"import sys, scapy_zenoh\nassert hasattr(scapy_zenoh, {name!r}) is {name == '__path__'}" + NO_SCAPY)


def test_unknown_name_is_an_attribute_error() -> None:
    done = run("import scapy_zenoh\nscapy_zenoh.nothing")
    assert "AttributeError: module 'scapy_zenoh' has no attribute 'nothing'" in done.stderr
    assert "ImportError: cannot import name 'nothing'" in run("from scapy_zenoh import nothing").stderr


# --- with Scapy ---------------------------------------------------------------------------------

ORDERS = {
    "alone": "import scapy_zenoh",
    "before all of Scapy": "import scapy_zenoh; from scapy.all import *; assert rdpcap and DNS and SMB2_Header",
    "after all of Scapy": "from scapy.all import *; import scapy_zenoh",
    "before TCP": "import scapy_zenoh; from scapy.layers.inet import TCP",
    "after TCP": "from scapy.layers.inet import TCP; import scapy_zenoh",
    "before IPv6": "import scapy_zenoh; import scapy.layers.inet6",
    "between parts of Scapy": "import scapy.packet; import scapy_zenoh; import scapy.layers.dns",
    "a part that needs no Scapy": "import scapy_zenoh.capture; from scapy.layers.inet import TCP",
    "one layer": "from scapy_zenoh.network import ZenohPush",
    "star": "from scapy_zenoh import *; assert ZenohPush and parse and bind and ZenohSession and enums.Priority",
    "star before all of Scapy": "from scapy_zenoh import *; from scapy.all import *; assert ZenohPush and rdpcap",
    "a name": "import scapy_zenoh; scapy_zenoh.ZenohPush",
    "twice": "import importlib, scapy_zenoh; importlib.reload(scapy_zenoh); importlib.reload(scapy_zenoh.binding)",
    "again with Scapy": "import scapy.layers.inet, importlib, scapy_zenoh; importlib.reload(scapy_zenoh)",
    "only looked for": "import scapy_zenoh; from importlib.util import find_spec; find_spec('scapy.layers.inet')",
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_ports_are_bound_in_whatever_order(order: str) -> None:
    works(order + IS_BOUND)


@pytest.mark.parametrize("name", WITH_SCAPY)
def test_any_module_can_be_imported_first(name: str) -> None:
    works(f"import scapy_zenoh.{name}" + IS_BOUND)


def test_ports_are_bound_without_a_name_being_asked_for() -> None:
    code = "import sys, scapy_zenoh\nfrom scapy.layers.inet import IP, TCP\n"
    code += "print(IP(bytes(IP() / TCP(dport=7447) / bytes.fromhex('0100 04'))).lastlayer().summary())\n"
    assert works(code) == "KEEP_ALIVE\n"


def test_nothing_is_left_waiting_once_the_ports_are_bound() -> None:
    code = "import sys\nbefore = list(sys.meta_path)\nimport scapy_zenoh\nassert len(sys.meta_path) > len(before)\n"
    code += "import scapy.layers.inet as inet\n"
    code += "assert [f for f in sys.meta_path if type(f).__module__.startswith('scapy_zenoh')] == []\n"
    code += "assert inet.__loader__ is inet.__spec__.loader and inet.__loader__.get_source(inet.__name__)\n"
    works(code)


def test_names_of_scapy_are_the_same_with_us() -> None:
    names = "print(sorted(k for k in globals() if k[0] != '_' and k != 'scapy_zenoh'))"
    alone = works("from scapy.all import *\n" + names)
    assert works("import scapy_zenoh\nfrom scapy.all import *\n" + names) == alone


FAILS_ONCE = """
import sys
import scapy_zenoh

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "scapy.layers.l2":  # which inet needs
            sys.meta_path.remove(self)
            raise ImportError("not today")

sys.meta_path.insert(0, Broken())
try:
    import scapy.layers.inet
except ImportError as error:
    assert str(error) == "not today"
else:
    raise AssertionError("no error")
"""


def test_scapy_that_fails_tells_who_asked_and_may_work_later() -> None:
    works(FAILS_ONCE + IS_BOUND)


TOGETHER = """
import sys
from threading import Barrier, Thread
sys.setswitchinterval(1e-5)
import scapy_zenoh
errors = []
start = Barrier(4)

def each(code):
    start.wait()
    try:
        exec(code, {})
    except BaseException as error:
        errors.append(error)

codes = ["import scapy.layers.inet", "from scapy_zenoh import ZenohPush", "import scapy.layers.dns",
         "import scapy_zenoh; scapy_zenoh.parse(b'\\\\x04', 'transport')"]
threads = [Thread(target=each, args=(code,)) for code in codes]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert errors == [], errors
"""


def test_threads_that_import_at_once_all_get_what_they_want() -> None:
    works(TOGETHER + IS_BOUND)


def test_every_public_name_is_known_before_the_layers_are_loaded() -> None:
    works(
        "import scapy_zenoh\n"
        "from scapy_zenoh import layers\n"
        "known = {*scapy_zenoh._PLAIN, *scapy_zenoh._OF_LAYERS, 'common', 'enums'}\n"
        "assert {n for n in layers.__all__ if not n.startswith('Zenoh')} <= known\n"
        "assert all(hasattr(layers, name) for name in scapy_zenoh._OF_LAYERS)\n"
    )


@pytest.mark.parametrize("name", ["common", "network", "ZenohExtQoS", "ZenohSession", "__all__", "LAYERS", "rebuild"])
def test_name_is_there_after_the_import_alone(name: str) -> None:
    works(f"import scapy_zenoh\nscapy_zenoh.{name}")


def test_dir_lists_the_classes() -> None:
    assert "ZenohPush" in works("import scapy_zenoh\nprint(dir(scapy_zenoh))")


def test_scapy_knows_the_layer_by_name() -> None:
    code = "import scapy_zenoh\nfrom scapy.all import explore, load_layer\nexplore('zenoh')\nload_layer('zenoh')\n"
    assert "ZenohPush" in works(code + "print(ZenohFragment)")


# --- pickles ------------------------------------------------------------------------------------


def test_pickled_packet_is_read_where_nothing_was_imported() -> None:
    import scapy_zenoh as z

    wire = "25 c1af803c 7d 00 06 64656d6f2f61 01 05 68656c6c6f"  # FRAME with PUSH demo/a and PUT hello
    packed = pickle.dumps(z.parse(bytes.fromhex(wire), "transport")[0])
    code = f"import pickle\npacket = pickle.loads({packed!r})\n"
    code += "print(packet.fault, type(packet.msgs[0]).__name__, packet.msgs[0].payload.data)\n"
    assert works(code + IS_BOUND) == "None ZenohPush b'hello'\n"


def test_functions_that_use_the_package_are_pickled_without_scapy() -> None:
    """As pipelines do for their workers; some pickles ask every module for a name."""
    code = "import sys, pickle, scapy_zenoh.keyexpr, scapy_zenoh.fault\nclass T:\n    __module__ = None\n"
    code += "pickle.whichmodule(T, 'T')\n"
    code += "pickle.loads(pickle.dumps([scapy_zenoh.keyexpr.intersects, scapy_zenoh.fault.FaultKind.GAP]))"
    works(code + NO_SCAPY)
