#!/usr/bin/env python3
"""tutti-topo on machines of the fixtures: what it says, its JSON, its pictures, and how it refuses."""
import json
import pathlib
import subprocess
import tempfile
import xml.etree.ElementTree

from support import BUILD, SOURCE, check, environment, main

TOOL = BUILD / "tools/tutti_topo/tutti-topo"
MACHINES = SOURCE / "tests/fixtures/topo"


def run(*arguments, **env):
    """Exit status, stdout, stderr."""
    ended = subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment(**env))
    return ended.returncode, ended.stdout, ended.stderr


def works(*arguments, **env):
    code, out, err = run(*arguments, **env)
    check(code == 0 and err == "", f"{arguments} ended with {code}: {err}")
    return out


def machine(name):
    return MACHINES / f"{name}.xml"


def search(name, *arguments):
    return json.loads(works("search", machine(name), "--json", *arguments))


def show_names_everything_in_120_columns():
    for name in ("own_dgx1v", "own_dgx_h100", "own_gb200_tray", "yccl_l20x16", "simai_a100x8_5cx6"):
        text = works("show", machine(name))
        check(max(map(len, text.splitlines())) <= 120, f"{name}: lines of more than 120 columns")
        tree = xml.etree.ElementTree.parse(machine(name))
        for gpu in tree.iter("gpu"):
            if name != "yccl_l20x16":  # its second half is another group
                check(f"GPU {gpu.get('dev')} " in text, f"{name}: GPU {gpu.get('dev')} is missing:\n{text}")
    check(works("show", machine("own_gb200_tray"), "--hosts", 18).count("GPU ") == 72, "not 72 GPUs in a rack")


def paths_are_a_matrix():
    text = works("paths", machine("own_dgx1v"))
    types = {line.split()[0]: line.split()[1:] for line in text.split("\n\n")[1].splitlines()[1:]}
    check(len(types) == 12 and all(len(row) == 12 for row in types.values()), f"not 12 x 12:\n{text}")
    check(types["GPU0"][:8] == ["X", "NVL", "NVL", "NVL", "NVL", "NVB", "NVB", "NVB"], f"GPU0: {types['GPU0']}")
    check("NVB  NVLink through one GPU" in text, "no legend")
    check("NVB" not in works("paths", machine("own_dgx1v"), NCCL_NVB_DISABLE=1), "NCCL_NVB_DISABLE has no effect")


def json_has_every_graph():
    found = search("own_dgx_h100", "--nodes", 2, "--collnet")
    graphs = {graph["graph"]: graph for graph in found["graphs"]}
    check(set(graphs) == {"ring", "tree", "collnetChain", "collnetDirect", "nvls"}, f"graphs: {set(graphs)}")
    ring = graphs["ring"]
    keys = {"pattern", "nChannels", "bwIntra", "bwInter", "typeIntra", "typeInter", "sameChannels", "crossNic", "channels",
            "searchMilliseconds", "bound"}
    check(keys <= set(ring), f"missing: {keys - set(ring)}")
    check(ring["pattern"] == "RING" and len(ring["channels"]) == ring["nChannels"] > 0, "pattern or channels of the ring")
    check(ring["nChannels"] * ring["bwInter"] >= 8 * 48 - 0.5, "the ring carries less than eight NICs")
    for channel in ring["channels"]:
        check(sorted(channel["gpus"]) == list(range(8)), f"a ring must visit each GPU once: {channel}")
        check(channel["netIn"]["name"].startswith("mlx5_") and channel["netOut"]["host"] == 0, f"NICs: {channel}")
    check(graphs["tree"]["nChannels"] == ring["nChannels"], "the tree has other channels than the ring")


def found_is_what_communicators_get():
    """Every tenth use of the table that the library's own search is held to."""
    rows = [line.split("\t") for line in (MACHINES / "expected.tsv").read_text().splitlines() if line[0] != "#"][1:]
    uses = {}
    for row in rows:
        uses.setdefault(tuple(row[:5]), {})[row[5]] = row[6:12]
    for (name, use, gpus, nodes, hosts), graphs in list(uses.items())[::10]:
        several = ["--nodes", nodes] + (["--collnet"] if nodes == "2" and hosts == "1" else [])
        for graph in search(name, "--hosts", hosts, *([] if hosts != "1" else ["--gpus", gpus]), *several)["graphs"]:
            if graph["nChannels"] == 0:
                continue
            pattern, channels, intra, inter, *_ = graphs[graph["graph"]]
            check(graph["pattern"] == pattern and graph["nChannels"] == int(channels) and
                  abs(graph["bwIntra"] - float(intra)) < 1e-3 and abs(graph["bwInter"] - float(inter)) < 1e-3,
                  f"{name} {use}: {graph['graph']} is {graph['pattern']} {graph['nChannels']} x {graph['bwIntra']}, not {graphs}")


def settings_are_obeyed():
    ring = json.loads(works("search", machine("own_dgx_h100"), "--nodes", 2, "--json", NCCL_CROSS_NIC=0))["graphs"][0]
    check(ring["crossNic"] == 0, "NCCL_CROSS_NIC has no effect")


def json_knows_what_was_chosen():
    found = search("own_dgx1v", "--gpus", "3,1,2")
    check([gpu["dev"] for gpu in found["gpus"]] and {g["dev"]: g["rank"] for g in found["gpus"]} == {3: 0, 1: 1, 2: 2},
          f"GPUs: {found['gpus']}")
    check(not found["interNode"] and found["graphs"][0]["channels"][0]["netIn"] is None, "NICs on one machine")
    rack = search("own_gb200_tray", "--hosts", 2)
    check(sorted(rack["graphs"][0]["channels"][0]["ranks"]) == list(range(8)), "ranks of two hosts")
    check({gpu["host"] for gpu in rack["gpus"]} == {0, 1}, "hosts")


def text_says_the_same_as_json():
    text = works("search", machine("own_dgx1v"))
    check("ring (RING): 6 channels x 20 GB/s" in text and "bound 120" in text, text)


def pictures_are_svg():
    with tempfile.TemporaryDirectory() as folder:
        for arguments in (["own_dgx1v"], ["own_dgx_h100", "--nodes", 2, "--graph", "tree"], ["own_dgx_h100", "--graph", "none"],
                          ["own_gb200_tray", "--hosts", 18, "--channels", "0,1"], ["own_single_gpu_pcie"]):
            path = pathlib.Path(folder) / "machine.svg"
            works("draw", machine(arguments[0]), *arguments[1:], "-o", path)
            root = xml.etree.ElementTree.parse(path).getroot()
            check(root.tag.endswith("svg") and len(list(root.iter())) > 20, f"{arguments}: {root.tag}")


def graph_files_are_checked():
    check(run("validate", machine("own_dgx1v"))[0] == 0, "what the search finds is not right")
    text = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="{}" speedinter="{}" latencyinter="0" typeintra="NVL" \
typeinter="PIX" samechannels="0">
    <channel>{}</channel>
  </graph>
</graphs>
"""
    gpus = "".join(f'<gpu dev="0x{gpu:x}" rank="{gpu}"/>' for gpu in (0, 1, 2, 3, 7, 6, 5, 4))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graphs.xml"
        path.write_text(text.format(20, 20, gpus))
        code, out, err = run("validate", machine("own_dgx1v"), path)
        check(code == 0 and out == "ring: 1 channel x 20 GB/s: the machine carries it\n", f"a good ring: {code} {out} {err}")
        works("draw", machine("own_dgx1v"), "--graphs", path)
        path.write_text(text.format(90, 90, gpus))
        code, out, err = run("validate", machine("own_dgx1v"), path)
        check(code == 1 and all(line.startswith("ring: the NVLink ") for line in out.splitlines()) and out.count("\n") == 8,
              f"too much bandwidth: {code} {out} {err}")
        path.write_text(text.format(20, 20, gpus.replace('rank="7"', 'rank="70"')))
        code, out, err = run("validate", machine("own_dgx1v"), path)
        check(code == 2 and str(path) in err, f"an unknown GPU: {code} {out} {err}")


def bad_input_is_refused_with_a_reason():
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder) / "broken.xml"
        whole = machine("own_dgx_h100").read_text()
        for cut in range(0, len(whole), len(whole) // 40):
            broken.write_text(whole[:cut])
            code, out, err = run("search", broken)
            check(code == 2 and str(broken) in err and out == "", f"cut at {cut}: {code} {out} {err}")
        broken.write_text(whole.replace('dev="3" sm', 'dev="three" sm'))
        code, out, err = run("show", broken)
        check(code == 2 and "line" in err and "three" in err, f"a wrong number: {err}")
        broken.write_bytes(b"\0\xff\xfe" * 1000)
        check(run("show", broken)[0] == 2, "bytes that are no text")
    for arguments in (["show", "/nowhere.xml"], ["show"], [], ["paint", "x"], ["search", machine("own_dgx1v"), "--gpus", "77"],
                      ["search", machine("own_dgx1v"), "--gpus", "x"], ["draw", machine("own_dgx1v"), "--channels", "50"],
                      ["draw", machine("own_dgx1v"), "--graph", "nvls"], ["draw", machine("own_dgx1v"), "-o", "/nowhere/x.svg"],
                      ["search", machine("own_dgx1v"), "--nodes", "0"]):
        code, out, err = run(*arguments)
        check(code == 2 and err.strip() != "" and out == "", f"{arguments}: {code} {out} {err}")


def live_is_this_machine_or_a_reason():
    code, out, err = run("show", "live")
    check((code == 0 and "GPU " in out) or (code == 2 and "live" in err), f"live: {code} {out} {err}")


def help_has_examples():
    check("tutti-topo draw machine.xml -o machine.svg" in works("--help"), "no examples")


main(show_names_everything_in_120_columns, paths_are_a_matrix, json_has_every_graph, found_is_what_communicators_get,
     settings_are_obeyed, json_knows_what_was_chosen, text_says_the_same_as_json, pictures_are_svg, graph_files_are_checked,
     bad_input_is_refused_with_a_reason, live_is_this_machine_or_a_reason, help_has_examples)
