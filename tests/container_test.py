#!/usr/bin/env python3
"""packaging/Dockerfile installs the packages of the libraries that the programs are linked with, no others; docs/building.md
has its stages and its base image; what .dockerignore leaves out git leaves out too.

container_test.py PROGRAM...    exit status 1 if something differs, 77 if the packages could not be compared: that
                                needs the image's Debian and a static release build with HDF5
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def text_problems(dockerfile):
    page = (ROOT / "docs/building.md").read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)", dockerfile, re.MULTILINE)
    yield from (f"docs/building.md builds {target}, which is no stage"
                for target in re.findall(r"^docker build .*--target (\S+)", page, re.MULTILINE) if target not in stages)
    yield from (f"docs/building.md does not name the image {image}"
                for image in sorted(set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) - set(stages))
                if f"`{image}`" not in page)
    git = (ROOT / ".gitignore").read_text().splitlines()
    yield from (f".dockerignore has {line}, which git does not ignore"
                for line in (ROOT / ".dockerignore").read_text().splitlines()
                if not line.startswith("#") and line.removeprefix("**/") not in git)


def needed_packages(dockerfile, programs):
    """Those of the libraries that the programs name; None where they are others than in the image."""
    codename = re.search(r"^VERSION_CODENAME=(\S+)", output("cat", "/etc/os-release"), re.MULTILINE)
    build = json.loads(output(programs[0], "info", "--json"))
    if (codename is None or f"FROM debian:{codename[1]}-slim" not in dockerfile or build["build_type"] != "Release"
            or build["library"] != "static" or "HDF5" not in str(build["dependencies"])):
        return None
    owners = {}
    for program in programs:
        paths = dict(re.findall(r"(\S+) => (\S+)", output("ldd", program)))
        for library in re.findall(r"NEEDED.*\[(lib.+)\]", output("readelf", "--dynamic", program)):
            names = output("dpkg", "-S", paths[library], "/usr" + paths[library])  # /lib and /usr/lib are the same
            owners[library] = names.partition(":")[0]
    return set(owners.values()) if all(owners.values()) else None  # none is of one who builds libraries himself


dockerfile = (ROOT / "packaging/Dockerfile").read_text()
wrong = list(text_problems(dockerfile))
needed = needed_packages(dockerfile, sys.argv[1:])
listed = set(re.search(r"--no-install-recommends \\\n(.*) \\\n", dockerfile)[1].split())
if needed is not None and listed != needed:
    wrong.append(f"packaging/Dockerfile installs {' '.join(sorted(listed))}, needed are {' '.join(sorted(needed))}")
if wrong:
    sys.exit("\n".join(wrong))
sys.exit(77 if needed is None else 0)
