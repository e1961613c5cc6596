"""The store at which ranks of several machines meet: PyTorch's interface over sockets that know a secret."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from omb_py.engine.rank import handshake
from omb_py.engine.rank.secret_socket import reach
from tests.support.machines.mpi import environment
from tests.support.optional import needs_torch
from tests.support.patience import PATIENCE_S

pytestmark = needs_torch
HERE = "127.0.0.1"
SECRET = handshake.new_secret()


def test_ranks_see_one_store() -> None:
    from omb_py.backends.gloo.secret_store import SecretStore

    root = SecretStore.served(HERE, SECRET)
    other = SecretStore.reached(HERE, root.port, SECRET)
    other.set("key", b"\x00value")
    assert root.get("key") == other.get("key") == b"\x00value"
    assert [other.add("count", 2), root.add("count", 1)] == [2, 3]
    assert other.compare_set("new", "", "first") == root.compare_set("new", "", "second") == b"first"
    assert other.check(["key", "new"]) and not root.check(["key", "nothing"])
    assert other.num_keys() == 3
    assert other.delete_key("new") and not other.delete_key("new")
    later = threading.Timer(0.05, root.set, ("late", b"1"))
    later.start()
    other.wait(["key", "late"], timedelta(seconds=20))
    later.join()
    with pytest.raises(RuntimeError, match="no rank has set never"):
        other.wait(["never"], timedelta(seconds=0))
    other.close()
    root.close()


def test_strangers_read_and_change_nothing() -> None:
    from omb_py.backends.gloo.secret_store import SecretStore

    root = SecretStore.served(HERE, SECRET)
    root.set("key", b"value")
    for secret in (SECRET, "store", f"store {SECRET[:-1]}", "plane " + SECRET):
        with pytest.raises(handshake.Stranger):
            reach((HERE, root.port), secret, {}, 5)
    with socket.create_connection((HERE, root.port), 5) as stranger, stranger.makefile("rb") as lines:
        assert json.loads(lines.readline())["type"] == "challenge"
        stranger.sendall(b'["set","key","other"]\n')
        assert lines.readline() == b""
    line = reach((HERE, root.port), f"store {SECRET}", {}, 5)
    for request in ("nonsense", ["drop", "everything"], 7):  # of a rank that is broken
        line.send(request)
        with pytest.raises(EOFError):
            line.receive()
        line.close()
        line = reach((HERE, root.port), f"store {SECRET}", {}, 5)
    line.close()
    assert root.get("key") == b"value"
    root.close()


RANK = """
import json, os, socket, sys
from omb_py.backends.gloo.rendezvous import RankSite, opened
import torch, torch.distributed as dist
rank, folder, one_host = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "one host"
def meet(place):
    path = os.path.join(folder, "place")
    if place is not None:
        with open(path + ".new", "w") as file: json.dump(place, file)
        os.rename(path + ".new", path)
        return place
    import time
    while not os.path.exists(path): time.sleep(0.01)
    return json.load(open(path))
store = opened(rank, RankSite(one_host, "127.0.0.1"), meet)
dist.init_process_group("gloo", rank=rank, world_size=2, store=store)
total = torch.tensor([rank + 1])
dist.all_reduce(total)
second = dist.new_group([0, 1])
dist.broadcast(total, 0, second)
inodes = set()
for entry in os.listdir("/proc/self/fd"):
    try: link = os.readlink("/proc/self/fd/" + entry)
    except OSError: continue
    if link.startswith("socket:["): inodes.add(link[8:-1])
listening = []
for table in ("tcp", "tcp6"):
    for line in open("/proc/self/net/" + table).readlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes: listening.append(words[1].rpartition(":")[0])
print(json.dumps({"total": int(total), "listening": listening, "place": meet(None)}))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.mpi
@pytest.mark.calm
@pytest.mark.slow
@pytest.mark.parametrize("where", ["one host", "several hosts"])
def test_gloo_meets_in_it_and_ranks_of_one_host_listen_on_loopback_alone(where: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen([*words, str(k), str(tmp_path), where], stdout=subprocess.PIPE, text=True, env=environment())
        for k in range(2)
    ]
    outputs = [rank.communicate(timeout=PATIENCE_S)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    reports = [json.loads(output) for output in outputs]
    assert [report["total"] for report in reports] == [3, 3]
    place = reports[0]["place"]
    if where == "one host":
        assert {address for report in reports for address in report["listening"]} <= {"0100007F"}
        assert not os.path.exists(place["folder"]), "rank 0 removes what it has made"
    else:
        assert len(place["secret"]) == 32
