#!/usr/bin/env python3
"""Two processes on a software GPU that looks like a DGX-1: rings from its links, files written and forced, and what is
said when two ranks of a host are given different graphs."""
import pathlib
import tempfile
import xml.etree.ElementTree as ElementTree

from support import BUILD, SOURCE, Process, check, free_port, main

MACHINE = SOURCE / "tests/fixtures/topo/own_dgx1v.xml"
RING = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel><gpu dev="1"/><gpu dev="0"/></channel>
  </graph>
</graphs>
"""


def run(settings):
    """Output and exit status of hello's two ranks; `settings[rank]` is set for that rank."""
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(8, [BUILD / "tests/e2e/hello"], RANK=rank, SIZE=2, NCCL_COMM_ID=address, SOFTGPU_TOPO=MACHINE,
                     NCCL_MAX_NCHANNELS=4, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,GRAPH,ENV", **settings[rank])
             for rank in range(2)]
    try:
        return [(rank.wait(120), rank.output()) for rank in ranks]
    finally:
        for rank in ranks:
            rank.close()


def graphs_are_said_and_written():
    with tempfile.TemporaryDirectory() as folder:
        files = {"NCCL_TOPO_DUMP_FILE": f"{folder}/machine.xml", "NCCL_GRAPH_DUMP_FILE": f"{folder}/graphs.xml",
                 "NCCL_GRAPH_DUMP_FILE_RANK": 1}
        results = run([files, files])
        for rank, (status, output) in enumerate(results):
            check(status == 0, f"rank {rank} ended with {status}:\n{output}")
            for line in ("=== System : maxBw", "Pattern 4, crossNic 0, nChannels", f"Ring 00 : {1 - rank} -> {rank} -> {1 - rank}",
                         "Tree 0 : ", "GPU/0-"):
                check(line in output, f"rank {rank} does not say {line!r}:\n{output}")
        machine = ElementTree.parse(f"{folder}/machine.xml").getroot()
        check(len(list(machine.iter("gpu"))) == 2, "the machine that was written has the GPUs in use alone")
        graphs = ElementTree.parse(f"{folder}/graphs.xml").getroot()
        check(len(graphs.find("graph[@id='0']").findall("channel")) > 0, "the ring that was written has channels")


def different_graphs_are_refused_by_name():
    with tempfile.TemporaryDirectory() as folder:
        forced = pathlib.Path(folder) / "graphs.xml"
        forced.write_text(RING)
        for status, output in run([{}, {"NCCL_GRAPH_FILE": forced}]):
            check(status != 0, f"ended well:\n{output}")
            check("Mismatched graphs : rank 0 and rank 1 of host" in output, f"does not name the ranks:\n{output}")


if __name__ == "__main__":
    main(graphs_are_said_and_written, different_graphs_are_refused_by_name)
