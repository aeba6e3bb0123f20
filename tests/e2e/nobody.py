"""Programs of the build as a user without rights runs them, who may not be able to enter the build folder."""
import os
import pathlib
import shutil
import tempfile

NOBODY = 65534


def copied_for_everybody(test, bin_folder):
    """`spillway` and the library that it preloads, as they lie beside each other, in a folder that every user may enter until the test ends."""
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    os.chmod(folder.name, 0o755)
    root = pathlib.Path(folder.name)
    for path in (bin_folder / "spillway", bin_folder.parent / "lib" / "libspillway-preload.so"):
        copy = root / path.relative_to(bin_folder.parent)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    return root / bin_folder.name
