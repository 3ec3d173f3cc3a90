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
        "for": "status, results, log, handles, clock, host names: the words that all others use",
        "may": {},
    },
    "base/ranks": {
        "for": "what all modules see of a communicator: its first error, small messages between its ranks",
        "may": {"base": {}},
    },
    "base/settings": {
        "for": "settings of the environment: the table, what is read from it, its documentation",
        "may": {"base": {}},
    },
    "base/threads": {
        "for": "threads, processor sets, wakers of sleeping threads",
        "may": {"base": {}, "base/settings": {}},
    },
    "base/hwloc": {
        "for": "libhwloc by dlopen: its functions, its view of a machine, binding of threads and memory",
        "may": {"base": {}, "base/settings": {}},
    },
    "base/socket": {
        "for": "addresses, interfaces, sockets with deadlines and named errors",
        "may": {"base": {}, "base/ranks": {}},
    },
    "trace": {
        "for": "the time line of a process: its file, and the points that write it",
        "may": {"base/.": {}, "base/ranks": {}},
    },
    "device": {
        "for": "what host and kernels share: works, connections, lines, partitions, policies",
        "may": {},
    },
    "device/simt": {
        "for": "the contract between device code and its two worlds, CUDA and the software GPU",
        "may": {},
    },
    "device/number": {
        "for": "number types, reductions, 16-byte packs",
        "may": {"device": {}, "device/simt": {}},
    },
    "device/prims": {
        "for": "primitives: crews, FIFOs, the protocols LL, LL128 and Simple, direct access",
        "may": {"device": {}, "device/simt": {}, "device/number": {}},
    },
    "device/collectives": {
        "for": "ring, tree, PAT, direct algorithms and messages, over the primitives",
        "may": {"device": {}, "device/simt": {}, "device/prims": {}},
    },
    "device/kernels": {
        "for": "the kernels, their names, their sources and fatbins",
        "may": {"device": {}, "device/simt": {}, "device/prims": {}, "device/collectives": {}},
    },
    "gpu": {
        "for": "the CUDA driver behind one table; owners of contexts, streams, events, memory, kernels",
        "may": {"base": {}, "device/simt": {"only": r"simt_host_abi\.h"}, "device/kernels": {"only": r"fatbins\.h"}},
    },
    "softgpu": {
        "for": "what the software GPU offers beyond the CUDA calls: windows, hooks, its machine's text; what it says",
        "may": {"base/.": {}, "device/simt": {"only": r"simt_host_abi\.h", "from": r"ptx_library\.h"}},
    },
    "softgpu/memory": {
        "for": "memory of the devices, windows into it, what other processes share",
        "may": {"base/.": {}},
    },
    "softgpu/exec": {
        "for": "blocks of fibers, weak memory, operations as values, how threads wait",
        "may": {"device/simt": {}, "softgpu": {"only": r"ptx_library\.h"}, "softgpu/memory": {}},
    },
    "softgpu/device": {
        "for": "devices, contexts, streams, events, graphs, and the engines that run them",
        "may": {
            "base/.": {}, "device/simt": {}, "softgpu": {"only": r"(say|ptx_library)\.h"}, "softgpu/memory": {},
            "softgpu/exec": {},
        },
    },
    "softgpu/driver": {
        "for": "libcuda.so.1: the driver's calls",
        "may": {"softgpu": {}, "softgpu/memory": {}, "softgpu/device": {}},
    },
    "softgpu/driver/code": {
        "for": "modules and libraries of code, their kernels, launches, occupancy",
        "may": {"softgpu": {}, "softgpu/memory": {}, "softgpu/device": {}, "softgpu/driver": {}},
    },
    "softgpu/ptx/text": {
        "for": "PTX text and what it says, as plain values",
        "may": {},
    },
    "softgpu/ptx/support": {
        "for": "functions that translated code calls: odd roundings, small floats, lanes of a warp, printf",
        "may": {"device/simt": {"only": r"simt_host_abi\.h"}},
    },
    "softgpu/ptx/translate": {
        "for": "from PTX to LLVM's intermediate code",
        "may": {
            "device/simt": {"only": r"simt_host_abi\.h"}, "softgpu": {"only": r"ptx_library\.h"}, "softgpu/ptx/text": {},
        },
    },
    "softgpu/ptx/translate/instructions": {
        "for": "what each instruction becomes",
        "may": {
            "device/simt": {"only": r"simt_host_abi\.h"}, "softgpu": {"only": r"ptx_library\.h"},
            "softgpu/ptx/translate": {},
        },
    },
    "softgpu/ptx": {
        "for": "libsoftgpu-ptx.so: images in, machine code out, by LLVM; code kept on disk",
        "may": {
            "device/simt": {"only": r"simt_host_abi\.h"}, "softgpu": {"only": r"ptx_library\.h"}, "softgpu/ptx/text": {},
            "softgpu/ptx/support": {}, "softgpu/ptx/translate": {},
        },
    },
    "softgpu/runtime": {
        "for": "libcudart.so.13 and .12: the runtime's calls, over the driver's",
        "may": {"softgpu": {"only": r"say\.h"}},
    },
    "softgpu/runtime/code": {
        "for": "the code of programs: what nvcc registers, kernels, variables, launches",
        "may": {"softgpu/runtime": {}},
    },
    "softgpu/runtime/graph": {
        "for": "graphs, their nodes, capture",
        "may": {"softgpu/runtime": {}, "softgpu/runtime/code": {}},
    },
    "softgpu/runtime/cuda13": {
        "for": "calls and structures that CUDA 13 has changed, as it has them",
        "may": {"softgpu/runtime": {}, "softgpu/runtime/code": {}},
    },
    "softgpu/runtime/cuda12": {
        "for": "the same as CUDA 12 has them, and what it has alone",
        "may": {"softgpu/runtime": {}},
    },
    "softgpu/cupti": {
        "for": "libcupti.so.13 and .12: say that nothing can be profiled",
        "may": {"softgpu": {"only": r"say\.h"}},
    },
    "softgpu/nvml": {
        "for": "libnvidia-ml.so.1: NVML's calls, over what is known of devices before there are any",
        "may": {"softgpu/device": {"only": r"(device_facts|settings|topology)\.h"}},
    },
    "bootstrap/link": {
        "for": "a single connection: who may speak, what travels on it, and how a thread waits for many of them",
        "may": {"base": {}},
    },
    "bootstrap/loop": {
        "for": "all connections of a rank, the thread that serves them, watch over peers, news of failures",
        "may": {"base": {}, "bootstrap/link": {}},
    },
    "bootstrap": {
        "for": "unique id, joining, splitting and shrinking, the tree and its repair, control channel",
        "may": {"base": {}, "bootstrap/link": {}, "bootstrap/loop": {}},
    },
    "ras/report": {
        "for": "what is known of a job as plain values, and reports on it: text, JSON, events",
        "may": {"base/.": {}, "base/socket": {}},
    },
    "ras/network": {
        "for": "the processes of a job: who they are, whether they live, what their ranks do",
        "may": {"base": {}, "bootstrap/link": {}, "ras/report": {}},
    },
    "ras/client": {
        "for": "clients: what they ask, line by line, and what they are told",
        "may": {"base": {}, "bootstrap/link": {}, "ras/report": {}},
    },
    "ras": {
        "for": "reports on the job: the process's service, its communicators, its calls",
        "may": {"base": {}, "bootstrap/link": {}, "ras/report": {}, "ras/network": {}, "ras/client": {}},
    },
    "topo/xml": {
        "for": "topology files: elements, values, scanning, joining descriptions of nodes",
        "may": {"base/.": {}},
    },
    "topo/machine": {
        "for": "machines: nodes, links, paths and their bandwidths, places of ranks",
        "may": {"base": {}, "topo/xml": {}},
    },
    "topo/search": {
        "for": "the search for rings and trees, its bound, the graphs found, their proof",
        "may": {"base/.": {}, "topo/xml": {}, "topo/machine": {}},
    },
    "topo/channels": {
        "for": "from graphs to channels of all nodes: rings, trees, costs",
        "may": {"base/.": {}, "topo/machine": {}, "topo/search": {}},
    },
    "topo/detect": {
        "for": "what the live machine says of itself, as a topology file",
        "may": {
            "base/.": {}, "base/hwloc": {}, "gpu": {"only": r"(driver|nvml)\.h", "from": r"live\.(h|cc)"},
            "topo/xml": {}, "topo/machine": {},
        },
    },
    "plugin": {
        "for": "plugins of every kind: found, loaded, called; tuners, profilers and settings behind interfaces",
        "may": {"base": {}},
    },
    "plugin/network": {
        "for": "networks and collNets behind interfaces: plugins of all versions adapted, the choice of one",
        "may": {"base": {}, "plugin": {}},
    },
    "proxy": {
        "for": "the progress engine that drives connections over networks, and what profilers hear of it",
        "may": {"base": {}, "plugin/.": {"only": r"(event_mask|profiler)\.h"}},
    },
    "transport/common": {
        "for": "what all transports share: their interface, layout of FIFOs, self-test, handing out of descriptors",
        "may": {"base": {}, "device/.": {}, "gpu": {}, "topo/machine": {}, "proxy": {}},
    },
    "transport/p2p": {
        "for": "P2P: peer access within a process; by CUDA IPC or descriptors across",
        "may": {"base/.": {}, "gpu": {}, "transport/common": {}},
    },
    "transport/shm": {
        "for": "SHM: host memory that two processes or devices share",
        "may": {"base": {}, "gpu": {}, "transport/common": {}},
    },
    "transport/net/tcp": {
        "for": "the network that is built in: TCP sockets",
        "may": {"base": {}, "device/.": {}, "plugin/network": {}},
    },
    "transport/net/ib/nic": {
        "for": "NICs with verbs: the library, ports, GIDs, registrations, what they report",
        "may": {"base": {}, "plugin/network": {}},
    },
    "transport/net/ib": {
        "for": "the network that is built in for InfiniBand and RoCE: queue pairs, grants, messages",
        "may": {
            "base/.": {}, "base/settings": {}, "base/socket": {"only": r"io_outcome\.h"}, "plugin/network": {},
            "transport/net/ib/nic": {}, "transport/net/tcp": {},
        },
    },
    "transport/net/lane": {
        "for": "one protocol of a connection over a network: path, options, shared slots, probe",
        "may": {
            "base/.": {}, "trace": {}, "device/.": {}, "gpu": {}, "plugin/network": {}, "proxy": {},
            "transport/common": {},
        },
    },
    "transport/net/send": {
        "for": "the sending end: from slots to the network",
        "may": {"base/.": {}, "trace": {}, "device/.": {}, "proxy": {}, "transport/net/lane": {}},
    },
    "transport/net/recv": {
        "for": "the receiving end: from the network to slots, several receives in one",
        "may": {"base/.": {}, "trace": {}, "device/.": {}, "plugin/network": {}, "proxy": {}, "transport/net/lane": {}},
    },
    "transport/net/endpoint": {
        "for": "ends of connections, their network connections, memory and sharing",
        "may": {
            "base/.": {}, "device/.": {}, "gpu": {}, "plugin/network": {}, "transport/common": {},
            "transport/net/lane": {}, "transport/net/send": {}, "transport/net/recv": {},
        },
    },
    "transport/net/pxn": {
        "for": "PXN: connections that another rank of the host sends for",
        "may": {
            "base": {}, "device/.": {}, "gpu": {}, "topo/machine": {}, "plugin/network": {}, "proxy": {},
            "transport/common": {}, "transport/shm": {}, "transport/net/lane": {}, "transport/net/send": {},
            "transport/net/endpoint": {},
        },
    },
    "transport/net": {
        "for": "NET: the transport over a network",
        "may": {
            "base/.": {}, "device/.": {}, "gpu": {}, "plugin/network": {}, "transport/common": {},
            "transport/net/lane": {},
            "transport/net/endpoint": {}, "transport/net/pxn": {},
        },
    },
    "transport/collnet": {
        "for": "a head's connection to a network that reduces: lanes, steps as the network's calls",
        "may": {
            "base/.": {}, "base/ranks": {}, "base/threads": {}, "device/.": {}, "gpu": {}, "topo/machine": {},
            "plugin/network": {}, "proxy": {}, "transport/common": {}, "transport/net/lane": {},
        },
    },
    "comm/tuning": {
        "for": "which method an operation takes: cost model, choice, NCCL_ALGO's grammar",
        "may": {"base/.": {}, "device/.": {}, "device/kernels": {}, "topo/channels": {}},
    },
    "comm/settings": {
        "for": "what a communicator takes from environment and configuration, as plain values",
        "may": {
            "base": {}, "device/.": {}, "gpu": {}, "bootstrap": {}, "ras/.": {"only": r"settings\.h"},
            "topo/machine": {}, "transport": {}, "comm/tuning": {},
        },
    },
    "comm/plan": {
        "for": "what a group's operations become: launches and works; pure",
        "may": {
            "base/.": {}, "device/.": {}, "device/kernels": {}, "transport": {}, "comm/tuning": {},
            "comm/settings": {},
        },
    },
    "comm/launch": {
        "for": "launching plans, graphs that keep them, when kernels ran, devices in use",
        "may": {
            "base/.": {}, "base/threads": {"only": r"(shortage|thread)\.h"}, "trace": {},
            "device/.": {}, "gpu": {}, "proxy": {}, "plugin/.": {"only": r"profiler\.h", "from": r"channel_events\.(h|cc)"},
        },
    },
    "comm/connect": {
        "for": "which connections a plan needs, and making them",
        "may": {
            "base/.": {}, "base/ranks": {}, "base/hwloc": {"only": r"binding\.h"},
            "base/threads": {"only": r"activity\.h"}, "device/.": {},
            "device/collectives": {"only": r"(message_steps|pat|ring|tree)\.h", "from": r"step_counts\.cc"},
            "gpu": {}, "topo": {}, "proxy": {}, "transport/common": {}, "comm/plan": {}, "comm/launch": {},
        },
    },
    "comm/network": {
        "for": "a communicator's network: devices, NICs, fusion, GPUDirect, relays",
        "may": {
            "base": {}, "device/.": {}, "bootstrap": {}, "topo": {}, "plugin": {}, "transport": {}, "comm/settings": {},
            "comm/launch": {},
        },
    },
    "comm/collnet": {
        "for": "collectives in the network: heads and rails, what the ranks agree on, setting it up",
        "may": {
            "base": {}, "device/.": {}, "gpu": {}, "topo": {}, "plugin/network": {}, "proxy": {}, "transport": {},
            "comm/tuning": {}, "comm/settings": {}, "comm/connect": {}, "comm/network": {},
        },
    },
    "comm/diagnosis": {
        "for": "operations that do not end: readings, scans, and who holds them up",
        "may": {
            "base/.": {}, "base/threads": {"only": r"activity\.h"}, "device/.": {}, "device/kernels": {}, "gpu": {}, "bootstrap": {}, "topo/machine": {},
            "proxy": {}, "comm/settings": {"only": r"stall_limits\.h"}, "comm/plan": {"only": r"op\.h"},
            "comm/launch": {}, "comm/connect": {}, "comm/network": {},
        },
    },
    "comm/state": {
        "for": "the communicator itself: its parts, abort word, gate, custom reductions",
        "may": {
            "base": {}, "trace": {}, "device/.": {}, "device/kernels": {}, "gpu": {}, "bootstrap": {},
            "ras/.": {"only": r"registry\.h"}, "topo/machine": {},
            "proxy": {}, "transport/common": {}, "comm/settings": {}, "comm/plan": {}, "comm/launch": {},
            "comm/connect": {}, "comm/network": {}, "comm/collnet": {}, "comm/diagnosis": {},
        },
    },
    "comm/agreement": {
        "for": "what ranks know of themselves and their hosts, and agree on; values and a control channel",
        "may": {
            "base": {}, "device/.": {}, "gpu": {}, "topo": {}, "transport": {}, "comm/tuning": {}, "comm/settings": {},
            "comm/plan": {}, "comm/network": {}, "comm/collnet": {},
        },
    },
    "comm/ending": {
        "for": "watching kernels, failing, aborting, freeing",
        "may": {
            "base": {}, "trace": {}, "bootstrap": {}, "ras/.": {"only": r"registry\.h"}, "gpu": {},
            "topo/machine": {"only": r"peer_info\.h"}, "proxy": {"only": r"task\.h"},
            "comm/tuning": {"only": r"filter\.h"}, "comm/launch": {}, "comm/connect": {}, "comm/network": {},
            "comm/diagnosis": {}, "comm/state": {},
        },
    },
    "comm/init/transports": {
        "for": "making a communicator's transports, and what they are told: routes, NICs, steps of messages",
        "may": {
            "device/.": {}, "gpu": {}, "bootstrap": {}, "topo/machine": {}, "transport": {}, "comm/settings": {},
            "comm/plan": {}, "comm/launch": {}, "comm/network": {}, "comm/state": {}, "comm/agreement": {},
        },
    },
    "comm/init/channels": {
        "for": "a communicator's channels: tables, launcher, who drives and watches them, connections",
        "may": {
            "base": {}, "bootstrap": {}, "gpu": {}, "topo/machine": {}, "plugin/network": {}, "proxy": {},
            "comm/plan": {}, "comm/launch": {}, "comm/connect": {}, "comm/network": {}, "comm/collnet": {},
            "comm/diagnosis": {}, "comm/state": {}, "comm/agreement": {"only": r"peer_table\.h"},
            "comm/ending": {"only": r"watching\.h"},
        },
    },
    "comm/init": {
        "for": "the stages of init: each takes a communicator one step further",
        "may": {
            "base": {}, "trace": {}, "device/.": {}, "gpu": {}, "bootstrap": {}, "ras/.": {}, "topo": {}, "plugin": {},
            "comm/tuning": {}, "comm/settings": {}, "comm/plan": {}, "comm/launch": {},
            "comm/network": {}, "comm/collnet": {}, "comm/diagnosis": {}, "comm/state": {},
            "comm/agreement": {}, "comm/ending": {}, "comm/init/channels": {}, "comm/init/transports": {},
        },
    },
    "comm/suspend": {
        "for": "giving back the memory of connections for a while",
        "may": {
            "base": {}, "gpu": {}, "bootstrap": {}, "transport/common": {}, "comm/launch": {}, "comm/connect": {},
            "comm/network": {}, "comm/state": {}, "comm/ending": {}, "comm/init/channels": {},
            "comm/init/transports": {},
        },
    },
    "comm/enqueue/events": {
        "for": "what profilers and traces are told of operations",
        "may": {
            "base": {}, "trace": {}, "device/.": {"only": r"work\.h"}, "device/kernels": {}, "gpu": {},
            "plugin/.": {"only": r"(event_mask|profiler)\.h"}, "proxy": {"only": r"(step_events|task)\.h"},
            "transport/common": {"only": r"transport\.h"}, "comm/tuning": {"only": r"(filter|log)\.h"}, "comm/plan": {},
            "comm/launch": {}, "comm/connect": {}, "comm/collnet": {"only": r"comm_collnet\.h"}, "comm/state": {},
        },
    },
    "comm/enqueue": {
        "for": "calls and groups: from a checked call to a plan that is launched",
        "may": {
            "base": {}, "trace": {}, "device/kernels": {}, "gpu": {}, "topo/machine": {},
            "comm/tuning": {"only": r"(selection|tuning)\.h"}, "bootstrap": {}, "comm/plan": {}, "comm/launch": {},
            "comm/connect": {}, "comm/diagnosis": {"only": r"(call|message)_.*\.h"}, "comm/state": {},
            "comm/init/channels": {}, "comm/init/transports": {}, "comm/enqueue/events": {},
        },
    },
    "comm": {
        "for": "the calls of a communicator's life: init, finalize, destroy, abort",
        "may": {
            "base": {}, "gpu": {}, "bootstrap": {}, "comm/settings": {}, "comm/state": {}, "comm/ending": {},
            "comm/init": {}, "comm/suspend": {}, "comm/enqueue": {}, "comm/launch": {"only": r"device_pool\.h"},
            "plugin/.": {"only": r"env_source\.h", "from": r"library\.cc"},
            "comm/diagnosis": {"only": r"init_stall\.h", "from": r"library\.cc"},
        },
    },
    "api": {
        "for": "the exported functions: argument checks and the error boundary",
        "may": {"base": {}, "comm": {}, "trace": {}},
    },
}

# Folders below tests/ that have no folder of the same name below src/.
TEST_FOLDERS = ("adversary", "bench", "differential", "e2e", "fixtures", "fuzz", "hosts", "lifecycle", "lint", "mutation",
                "rdma", "support", "tools")
