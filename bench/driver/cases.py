"""Which cases of a benchmark are measured."""
from lockstep import Failure

NAMED = 6  # in a message, of all cases that there are


class Cases:
    """What --only gives: words that names of cases begin with; without one all are wanted. It is true if there is one."""

    def __init__(self, words=()):
        self.words = list(words)

    def __bool__(self):
        return bool(self.words)

    def wants(self, case, or_below=False):
        """Whether this case is wanted. or_below: or one of those that its name and a slash begin."""
        return not self.words or any(_begins(case, word) or (or_below and word.startswith(case + "/")) for word in self.words)

    def chosen(self, cases):
        """Those that are wanted, of the names of all cases that a benchmark has, in their order. A word that begins none is refused."""
        cases = list(cases)
        for word in self.words:
            if not any(_begins(case, word) for case in cases):
                more = f" and {len(cases) - NAMED} more" if len(cases) > NAMED else ""
                raise Failure(f"no case begins with {word!r}; there are {', '.join(cases[:NAMED])}{more}", 2)
        return [case for case in cases if self.wants(case)]


def _begins(case, word):
    """A number counts as a whole: disk/read/1 does not begin disk/read/16."""
    return case.startswith(word) and not (word[-1:].isdigit() and case[len(word):][:1].isdigit())
