from typing import Any
def reader(cls: Any) -> Any:
    return lambda pkt, s: False
