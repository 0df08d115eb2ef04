#!/usr/bin/env python3
"""Opens a VTU file with VTK and compares it with values from the solution itself.

    vtu_read.py FILE.vtu PROBES.txt [NAME ...]

Each line of PROBES.txt holds a point, the velocity and the pressure there: x y z u v w p, or, for Poisson's equation,
a point and the value there: x y z u; then the values of the other data that are named. VTK interpolates the file at
the points, which lie inside cells. Exit code 77 (skipped) if VTK is not installed.
"""

import sys

try:
    from vtkmodules.vtkCommonDataModel import vtkPointSet  # noqa: F401 (fails early without VTK)
    from vtkmodules.vtkCommonCore import reference
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader
except ImportError:
    print("VTK for Python is not installed")
    sys.exit(77)


def check(file, probes, names, tolerance=1e-9):
    reader = vtkXMLUnstructuredGridReader()
    reader.SetFileName(file)
    reader.Update()
    grid = reader.GetOutput()
    assert grid.GetNumberOfCells() > 0, "no cells"
    data = grid.GetPointData()
    vectors, scalars = data.GetVectors(), data.GetScalars()
    if vectors is None:
        assert scalars is data.GetArray("u")
    else:
        assert vectors is data.GetArray("velocity") and scalars is data.GetArray("pressure")

    others = [data.GetArray(name) for name in names]
    assert all(other is not None for other in others), f"{names} are not all there"

    worst = 0.0
    for line in open(probes):
        values = [float(word) for word in line.split()]
        point, expected = values[:3], values[3:]
        sub_id, local, weights = reference(0), [0.0] * 3, [0.0] * 1000
        cell = grid.FindCell(point, None, -1, 1e-12, sub_id, local, weights)
        assert cell >= 0, f"VTK finds no cell at {point}"
        nodes = grid.GetCell(cell).GetPointIds()
        found = [0.0] * len(expected)
        for i in range(nodes.GetNumberOfIds()):
            node = nodes.GetId(i)
            at_node = (vectors.GetTuple3(node) if vectors else ()) + (scalars.GetTuple1(node),)
            for other in others:
                at_node += tuple(other.GetComponent(node, c) for c in range(other.GetNumberOfComponents()))
            found = [f + weights[i] * value for f, value in zip(found, at_node, strict=True)]
        error = max(abs(f - e) for f, e in zip(found, expected))
        assert error < tolerance, f"at {point}: VTK has {found}, expected {expected}"
        worst = max(worst, error)
    print(f"{file}: {grid.GetNumberOfCells()} cells, {grid.GetNumberOfPoints()} points, largest difference {worst:.1e}")


if __name__ == "__main__":
    check(sys.argv[1], sys.argv[2], sys.argv[3:])
