#!/usr/bin/env python3
"""Opens a VTI file with VTK and compares it with values of voxels.

    vti_read.py FILE.vti VOXELS.txt

Each line of VOXELS.txt holds the middle of a voxel, the mean velocity and pressure of the flow there, and whether it is
a pore: x y z u v w p pore. All voxels are there. Exit code 77 (skipped) if VTK is not installed.
"""

import math
import sys

try:
    from vtkmodules.vtkCommonCore import reference
    from vtkmodules.vtkCommonDataModel import vtkImageData  # noqa: F401 (what the reader makes)
    from vtkmodules.vtkIOXML import vtkXMLImageDataReader
except ImportError:
    print("VTK for Python is not installed")
    sys.exit(77)


def check(file, voxels):
    reader = vtkXMLImageDataReader()
    reader.SetFileName(file)
    reader.Update()
    image = reader.GetOutput()
    data = image.GetCellData()
    velocity, pressure, pore = data.GetVectors(), data.GetScalars(), data.GetArray("pore")
    assert velocity is data.GetArray("velocity") and pressure is data.GetArray("pressure")
    seen = set()
    for line in open(voxels):
        *point, u, v, w, p, inside = map(float, line.split())
        cell = image.FindCell(point, None, -1, 0.0, reference(0), [0.0] * 3, [0.0] * 8)
        seen.add(cell)
        found = (*velocity.GetTuple3(cell), pressure.GetTuple1(cell), pore.GetTuple1(cell))
        for have, expected in zip(found, (u, v, w, p, inside), strict=True):
            same = math.isnan(have) if math.isnan(expected) else abs(have - expected) <= 1e-6 * abs(expected) + 1e-30
            assert same, f"at {point}: VTK has {found}, expected {line}"
    assert len(seen) == image.GetNumberOfCells(), "not all voxels are there"


if __name__ == "__main__":
    check(sys.argv[1], sys.argv[2])
