# Goal: ParaView opens the pictures, and finds extents, places and values as they were written.
# Method: file.c's "show" wrote values made of coordinates; each file named is opened by ParaView's
# own reader, and asked for every cell, or every point of those that have points.
import sys

from paraview import servermanager
from paraview.simple import OpenDataFile, VTKHDFReader

EXTENTS = (8, 10, 12)  # of file.c's array, in VTK's order
ORIGIN = (3, 2, 1)
SPACING = (0.75, 0.5, 0.25)
CELLS_IN_HDF = (5, 13)  # the first version seen to read values of cells in images of .vtkhdf


def version():
    manager = servermanager.vtkSMProxyManager
    return manager.GetVersionMajor(), manager.GetVersionMinor()


def check(condition, what):
    if not condition:
        sys.exit("open_pictures.py: " + what)


def check_file(path):
    points = "points" in path
    hdf = path.endswith(".vtkhdf")
    if hdf and not points and version() < CELLS_IN_HDF:
        print(path + ": left out, this version cannot read it")
        return
    reader = VTKHDFReader(FileName=[path]) if hdf else OpenDataFile(path)
    check(reader is not None, path + ": no reader")
    reader.UpdatePipeline()
    image = servermanager.Fetch(reader)
    check(image is not None and image.IsA("vtkImageData"), path + ": not an image")
    high = [n - points for n in EXTENTS]
    place = tuple(o + s / 2 * points for o, s in zip(ORIGIN, SPACING))
    check(image.GetExtent() == (0, high[0], 0, high[1], 0, high[2]),
          path + ": extent %s" % (image.GetExtent(),))
    check(image.GetOrigin() == place, path + ": origin %s" % (image.GetOrigin(),))
    check(image.GetSpacing() == SPACING, path + ": spacing %s" % (image.GetSpacing(),))
    values = (image.GetPointData() if points else image.GetCellData()).GetArray("density")
    count = EXTENTS[0] * EXTENTS[1] * EXTENTS[2]
    check(values is not None and values.GetNumberOfTuples() == count, path + ": no density")
    for at in range(count):
        x, y, z = at % EXTENTS[0], at // EXTENTS[0] % EXTENTS[1], at // EXTENTS[0] // EXTENTS[1]
        wanted = z * 10000 + y * 100 + x
        found = values.GetValue(at)
        check(found == wanted, "%s: %d is %g, not %g" % (path, at, found, wanted))


for name in sys.argv[1:]:
    check_file(name)
