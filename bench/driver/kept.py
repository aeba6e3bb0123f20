"""What a benchmark has measured of each case, on disk as soon as it is measured: a run with --resume takes that, and measures the rest.

  if case not in context.kept:
      context.kept[case] = measure(case)        a row, or what else there is of it that JSON can hold
  rows.append(context.kept[case])

Cases that are measured together, those of context.kept.missing(cases), are kept so too; those of programs whose data is looked at in the end are kept then, all of them.
"""
import collections
import copy
import hashlib
import json

import report

SUFFIX = ".cases.json"


def build_of(context):
    """Tells results of this build from those of another one."""
    digest = hashlib.sha256()
    root = context.spillway.parent.parent
    for path in [context.spillway, *sorted((root / "lib").glob("**/libspillway*.so")), *sorted((root / "lib").glob("**/spillway-compiler*.so"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def made_by(context):
    """All that a figure depends on and that is given."""
    return {"build": build_of(context), "quick": context.quick, "pairs": context.pairs, "storage": str(context.storage), "traces": str(context.traces or "")}


def of_same(path, made_by):
    """What a file holds whose `made_by` is this one, or None."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("made_by") == made_by else None


class Kept(collections.UserDict):
    """{case: what was measured of it} of the benchmark `name`, in a file in the folder `out`; with `resume` it begins with what an earlier run has left there, made by the same."""

    def __init__(self, out, name, made_by, resume):
        super().__init__()
        self.out, self.name, self.made_by = out, name, made_by
        if not resume:
            self.remove()
        elif found := of_same(self.path, made_by):
            self.data = found["cases"]

    @property
    def path(self):
        return self.out / (self.name + SUFFIX)

    def __setitem__(self, case, measured):
        # As it is read later, so that it makes no difference which run has measured it.
        self.data[case] = json.loads(json.dumps(measured))
        report.write_files(self.out, self.name, {SUFFIX: json.dumps({"made_by": self.made_by, "cases": self.data}) + "\n"})

    def __getitem__(self, case):
        """A copy, which may be changed."""
        return copy.deepcopy(self.data[case])

    def missing(self, cases):
        """Those that are not kept, in their order: of names, or of tuples that begin with one."""
        return [case for case in cases if (case[0] if isinstance(case, tuple) else case) not in self]

    def remove(self):
        self.path.unlink(missing_ok=True)
