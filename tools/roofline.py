#!/usr/bin/env python3
"""What kernels move and compute, counted by ncu, and the roofline plot of it.

    tools/roofline.py profile CASE RESULT.json COUNTS.csv
        prints the command that counts the kernels of a solve
    tools/roofline.py counts THROUGHPUT.json OUT.json RESULT.json:COUNTS.csv ...
        puts counts, and the ceilings of the study `throughput` on the same device, into one file
    tools/roofline.py plot OUT.json PLOT.svg
"""

import csv
import json
import re
import sys

METRICS = {
    "seconds": ["gpu__time_duration.sum"],
    "dram_bytes": ["dram__bytes.sum"],
    "l2_bytes": ["lts__t_sectors_srcunit_tex.sum"],
    "shared_bytes": ["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"],
    "l1_bytes": ["l1tex__data_pipe_lsu_wavefronts.sum"],
    "instructions": ["smsp__inst_executed.sum"],
    "tensor_flops": ["sm__ops_path_tensor_src_tf32_dst_fp32.sum", "sm__ops_path_tensor_src_fp64.sum"],
}
METRICS.update(
    (f"{precision}_flops", [f"smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum" for op in ("fma", "add", "mul")])
    for precision, letter in (("fp32", "f"), ("fp64", "d"))
)
FACTORS = {"seconds": 1e-9, "l2_bytes": 32, "shared_bytes": 128, "l1_bytes": 128}  # sectors, wavefronts

LABELS = [  # what kernels do, by the beginning of their names
    (r"smooth_parity", "smoother, one colour"),
    (r"apply_cells<(1|true)", "residual"),
    (r"apply_cells", "operator"),
    (r"restrict", "restriction"),
    (r"prolong", "prolongation"),
    (r"dots", "inner products"),
    (r"combine", "linear combination"),
    (r"convert", "conversion"),
    (r"scale", "scaling"),
]


def profile(case, result, counts):
    metrics = ",".join(name for names in METRICS.values() for name in names)
    print(
        "ncu --clock-control none --cache-control none --filter-mode per-launch-config --launch-count 2 --csv --page raw "
        f"--print-units base --metrics {metrics} --log-file {counts} solenoid solve {case} --device cuda --json {result}"
    )


def kernels_of(counts):
    """The longest launch of every kernel."""
    with open(counts) as file:
        rows = [row for row in csv.DictReader(line for line in file if line.startswith('"')) if row["ID"]]
    longest = {}
    for row in rows:
        name = re.sub(r"^void |(\w+::)|unnamed>::|<unnamed>::|\(anonymous namespace\)::", "", row["Kernel Name"])
        kernel = {"name": name.split("(")[0], "grid": row["Grid Size"]}
        for key, names in METRICS.items():
            values = [float(row[metric].replace(",", "")) for metric in names]
            if key.startswith("fp"):
                values[0] *= 2  # a fused multiply-add
            kernel[key] = sum(values) * FACTORS.get(key, 1)
        if kernel["seconds"] > longest.get(kernel["name"], kernel)["seconds"] or kernel["name"] not in longest:
            longest[kernel["name"]] = kernel
    most = max(kernel["seconds"] for kernel in longest.values())
    return [kernel for kernel in longest.values() if kernel["seconds"] > 0.1 * most]


def counts(throughput, out, *solves):
    with open(throughput) as file:
        study = json.load(file)
    content = {key: study[key] for key in ("device", "date", "commit", "ceilings")}
    content["solves"] = []
    for solve in solves:
        result, table = solve.split(":")
        with open(result) as file:
            report = json.load(file)
        order = report["settings"]["element"]["order"]
        content["solves"].append({"order": order, "dofs": report["dofs"], "kernels": kernels_of(table)})
    with open(out, "w") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


def label(name):
    for start, text in LABELS:
        if re.match(start, name):
            return text
    sys.exit(f"tools/roofline.py: LABELS has no text for the kernel {name!r}: add what it does")


def full_label(name):
    """What a kernel does, on how many vectors at once, in which precision."""
    arguments = re.search(r"<(.*)>", name)[1].split(", ")
    names = {"float": "fp32", "double": "fp64"}
    precisions = list(dict.fromkeys(names[argument] for argument in arguments if argument in names))
    vectors = {"dots": "with", "combine": "of"}.get(name.split("_")[0])
    count = f" {vectors} {arguments[-1]} vector{'s' * (arguments[-1] != '1')}" if vectors else ""
    return f"{label(name)}{count}, {' to '.join(precisions)}"


def plot(path, picture):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"  # text that is text: a small file, legible at any size
    plt.rcParams["svg.hashsalt"] = "solenoid"  # the same file each time

    with open(path) as file:
        content = json.load(file)
    ceilings = content["ceilings"]
    fma = {"fp32": ceilings["fma_fp32_per_second"], "fp64": ceilings["fma_fp64_per_second"]}
    memories = [
        ("dram_bytes", "DRAM", ceilings["copy_bytes_per_second"]),
        ("l2_bytes", "second-level cache", ceilings["cache_bytes_per_second"]),
        ("shared_bytes", "shared memory", ceilings["shared_bytes_per_second"]),
    ]
    precision = lambda kernel: "fp64" if kernel["fp64_flops"] > kernel["fp32_flops"] else "fp32"
    flops = lambda kernel: kernel[precision(kernel) + "_flops"]
    solves = content["solves"]
    names = sorted({label(kernel["name"]) for solve in solves for kernel in solve["kernels"] if flops(kernel) > 0})
    markers = dict(zip(names, "osD^vP*X<>hp"))
    colours = dict(zip([solve["order"] for solve in solves], plt.get_cmap("viridis")([0.0, 0.3, 0.6, 0.85])))

    figure = plt.figure(figsize=(10, 13), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    roofs, bars = figure.subfigures(2, 1, height_ratios=[8, 5])
    axes = list(roofs.subplots(2, 2).flat)
    for axis, (key, name, rate) in zip(axes, memories):
        x = [10**-1.5, fma["fp64"] / rate, fma["fp32"] / rate, 10**2]
        for kind, style in (("fp32", "-"), ("fp64", "--")):
            axis.loglog(x, [min(rate * i, fma[kind]) * 1e-12 for i in x], "k" + style, lw=1)
            axis.text(x[-1], fma[kind] * 1.06e-12, f"{kind}: {fma[kind] * 1e-12:.0f} TFLOP/s ", ha="right", fontsize=9)
        for solve in solves:
            for kernel in solve["kernels"]:
                if flops(kernel) == 0 or kernel[key] < 1e-2 * kernel["dram_bytes"]:
                    continue
                axis.loglog(
                    flops(kernel) / kernel[key],
                    flops(kernel) / kernel["seconds"] * 1e-12,
                    markers[label(kernel["name"])],
                    color=colours[solve["order"]],
                    mfc="none" if precision(kernel) == "fp64" else None,
                    ms=6,
                )
        axis.set_xlim(x[0], x[-1])
        axis.set_ylim(0.1, 120)
        axis.set_title(f"{name}, {rate * 1e-12:.1f} TB/s", fontsize=11)
        axis.set_xlabel(f"flops per byte, {name}")
        axis.set_ylabel("TFLOP/s")
        axis.grid(alpha=0.3)
    handles = [plt.Line2D([], [], marker=marker, color="k", ls="", label=name) for name, marker in markers.items()]
    handles += [plt.Line2D([], [], marker="s", color=colour, ls="", label=f"k = {order}") for order, colour in colours.items()]
    handles += [plt.Line2D([], [], marker="o", color="k", ls="", mfc="none", label="hollow: fp64")]
    axes[3].axis("off")
    axes[3].legend(handles=handles, loc="center", frameon=False)

    # What part of each ceiling the kernels of one order reach.
    axis = bars.subplots()
    solve = next((s for s in solves if s["order"] == 2), solves[0])
    kernels = sorted(solve["kernels"], key=lambda kernel: full_label(kernel["name"]), reverse=True)
    parts = [(name, lambda k, key=key, rate=rate: k[key] / k["seconds"] / rate) for key, name, rate in memories]
    parts.insert(2, ("first-level cache and shared memory", lambda k: k["l1_bytes"] / k["seconds"] / memories[2][2]))
    parts.append(("FMA", lambda k: flops(k) / k["seconds"] / fma[precision(k)]))
    for i, (name, part) in enumerate(parts):
        axis.barh([row - 0.17 * (i - 2) for row in range(len(kernels))], [part(k) for k in kernels], 0.17, label=name)
    axis.set_yticks(range(len(kernels)))
    axis.set_yticklabels([full_label(k["name"]) for k in kernels])
    axis.set_xlim(0, 1)
    axis.set_xlabel(f"part of the ceiling, k = {solve['order']}")
    axis.legend(loc="lower center", bbox_to_anchor=(0.3, 1.0), ncol=3, frameon=False)
    axis.grid(alpha=0.3, axis="x")
    figure.suptitle(f"{content['device']}; {content['date']}, {content['commit']}", fontsize=11)
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    commands = {"profile": profile, "counts": counts, "plot": plot}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
