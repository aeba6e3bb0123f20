"""What the tests of bindings share: an installation of a C library, and how an example behaves."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, Failure  # noqa: E402


def run(*command, cwd=None, **settings):
    """What the command prints. Failure if it fails."""
    ended = subprocess.run([str(word) for word in command], cwd=cwd, env={**CLEAN, **{name: str(value) for name, value in settings.items()}},
                           capture_output=True, text=True, timeout=800)
    if ended.returncode != 0:
        raise Failure(f"{' '.join(str(word) for word in command)} ends with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def install(build, prefix, component="kv"):
    """Installs one library, the store if none is said, what programs are built with, and nothing else, to the prefix; the library's folder."""
    for part in (component, f"{component}_dev"):
        run("cmake", "--install", build, "--component", part, "--prefix", prefix)
    found = list(prefix.rglob(f"libspillway_{component}.so"))
    if len(found) != 1:
        raise Failure(f"{prefix} has {len(found)} libraries called libspillway_{component}.so")
    return found[0].parent


def check_example(work, *command, **settings):
    """An example counts words, and goes on counting when it is started again."""
    store = work / "store"
    store.unlink(missing_ok=True)
    for expected in ({"spill": 1, "way": 1}, {"spill": 2, "way": 2}):
        printed = run(*command, store, "spill", "way", **settings)
        if printed != "".join(f"{word} {count}\n" for word, count in expected.items()):
            raise Failure(f"{command} prints {printed!r}, not {expected}")
    store.unlink()
