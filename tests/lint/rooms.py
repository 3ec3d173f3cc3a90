"""The rooms of src/, from low to high: what each is for, and which others it may include. Plain data, for all scripts.

A room is a folder under src/. A file belongs to the room with the longest folder that matches. `may` names what a room
may include, all of it below: a module (`base`) stands for all its rooms, a room of another module (`topo/xml`) for
itself, and `topo/.` for the files that lie in src/topo itself. Inside a module an arrow is needed as well, and there
`topo` means the files in src/topo itself. An arrow may be narrowed by patterns of whole file names: `only` says which
files may be included, `from` which files may include them.

tests/lint/layering.py checks the includes, tools/draw-map draws docs/pictures/map.svg, docs/architecture.md explains.
"""

ROOMS = {
    "base": {
        "for": "status, log, settings, sockets, threads, the control channel's interface",
        "may": {},
    },
    "device": {
        "for": "kernels in one source for GPUs and the software GPU; structs shared with the host",
        "may": {},
    },
    "gpu": {
        "for": "the CUDA driver behind one table; owners of contexts, streams, events, memory, kernels",
        "may": {
            "base": {},
            "device": {"only": r"(fatbins|simt_host_abi)\.h"},  # the embedded fatbins, the software GPU's kernel table
        },
    },
    "softgpu": {
        "for": "the names that the software GPU exports",
        "may": {},
    },
    "softgpu/core": {
        "for": "the software GPU: devices, memory, streams, graphs, fibers, blocks, weak memory",
        "may": {
            "base": {"only": r"(handle|hash|fd|dl|clock)\.h"},
            "device": {"only": r"simt.*"},
        },
    },
    "softgpu/api": {
        "for": "libcuda.so.1: the driver's calls",
        "may": {"softgpu": {}, "softgpu/core": {}},
    },
    "softgpu/runtime": {
        "for": "libcudart.so.13: the runtime's calls, over the driver's",
        "may": {},
    },
    "bootstrap": {
        "for": "unique id, joining, control channel, watch over peers",
        "may": {"base": {}},
    },
    "topo": {
        "for": "machines, paths, the search for graphs; channels, rings, trees and costs as values",
        "may": {
            "base": {},
            "gpu": {"only": r"(driver|nvml)\.h", "from": r"detect_live\.(h|cc)"},  # the facts of the live machine
        },
    },
    "plugin": {
        "for": "networks behind one interface: plugins of versions 6 to 12, found, loaded, adapted",
        "may": {"base": {}},
    },
    "proxy": {
        "for": "the progress engine that drives connections over networks",
        "may": {"base": {}},
    },
    "transport": {
        "for": "what all transports share: their interface, layouts of FIFOs, connection set-up",
        "may": {
            "base": {},
            "device": {"only": r"(work|policy|message_turn|packet_ll|packet_ll128)\.h"},
            "gpu": {},
            "topo": {},
            "proxy": {},
        },
    },
    "transport/p2p": {
        "for": "peer access within a process and by CUDA IPC",
        "may": {"base": {}, "gpu": {}, "topo": {}, "transport": {}},
    },
    "transport/shm": {
        "for": "host memory that two processes or devices share",
        "may": {"base": {}, "gpu": {}, "transport": {}},
    },
    "transport/net/socket": {
        "for": "the network that is built in: TCP sockets",
        "may": {"base": {}, "plugin": {}},
    },
    "transport/net": {
        "for": "connections over a network, with sharing and relays",
        "may": {
            "base": {},
            "device": {"only": r"(work|policy|message_turn|packet_ll|packet_ll128)\.h"},
            "gpu": {},
            "topo": {},
            "plugin": {},
            "proxy": {},
            "transport": {},
            "transport/shm": {},
        },
    },
    "comm": {
        "for": "communicator, init, groups, planner, launch, life cycle",
        "may": {"base": {}, "gpu": {}, "device": {}, "bootstrap": {}, "topo": {}, "plugin": {}, "proxy": {},
                "transport": {}},
    },
    "api": {
        "for": "the exported functions: argument checks and the error boundary",
        "may": {"base": {}, "comm": {}},
    },
}

# Folders below tests/ that have no folder of the same name below src/.
TEST_FOLDERS = ("bench", "e2e", "fixtures", "fuzz", "hosts", "lint", "mutation", "support", "tools")
