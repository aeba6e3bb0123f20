"""What the commands are, as their own --help says it: manual pages and completion are made of this, and of nothing else.

    usage: spillway kv list [--count NUMBER] DEVICE     first, up to an empty line
    One a line, in no order.                            text, in paragraphs
      --count NUMBER    so many at most                 an option, or a word that the command takes, and what it is;
                        default all                     lines further in go on with it
      spillway kv list  DEVICE   print all keys         a subcommand, whose own --help is asked as well
"""
import dataclasses
import re
import subprocess

OPTION = re.compile(r"^ {2,6}(?P<names>-[^\s,]+(?:, --?\S+)?)(?: (?P<argument>\S+))?(?: +(?P<doc>\S.*))?$")
WORD = re.compile(r"^  (?P<names>[a-z0-9][\w.-]*) +(?P<doc>\S.*)$")
USAGE_OPTION = re.compile(r"\[(--?[\w-]+)(?: ([^\]\s]+))?\]")
MORE = re.compile(r"^ {8,}(\S.*)$")


@dataclasses.dataclass
class Entry:
    """An option, or a word."""
    names: list
    argument: str  # as it is spelled: "SIZE", "none|batch|sync"; "" for none
    doc: list = dataclasses.field(default_factory=list)  # lines


@dataclasses.dataclass
class Command:
    name: str  # "spillway kv put"
    doc: str = ""  # of one line
    usage: list = dataclasses.field(default_factory=list)  # lines
    text: list = dataclasses.field(default_factory=list)  # paragraphs
    options: list = dataclasses.field(default_factory=list)
    words: list = dataclasses.field(default_factory=list)  # that it takes in place of others, such as names of benchmarks
    subcommands: list = dataclasses.field(default_factory=list)

    def tree(self):
        """This one and all below."""
        return [self] + [command for subcommand in self.subcommands for command in subcommand.tree()]

    def all_options(self):
        """Those that only the usage names, too."""
        known = {name for option in self.options for name in option.names}
        found = dict(pair for line in self.usage for pair in USAGE_OPTION.findall(line))
        return self.options + [Entry([name], argument) for name, argument in found.items() if name not in known]


def parse(name, doc, text):
    """The command of this name whose --help says that; of its subcommands name and doc alone."""
    command = Command(name, doc)
    entry = None  # that the next line may go on with
    paragraph = []
    subcommand = re.compile(rf"^  {re.escape(name)} (?P<name>[a-z][\w-]*)(?: +(?P<words>.*?))? {{2,}}(?P<doc>\S.*)$")
    usage, _, rest = text.partition("\n\n")
    command.usage = [re.sub(r"^(usage:)? +", "", line) for line in usage.splitlines()]
    for line in rest.splitlines() + [""]:
        if entry is not None and (found := MORE.match(line)):
            entry.doc.append(found[1])
            continue
        entry = None
        if found := subcommand.match(line):
            command.subcommands.append(Command(f"{name} {found['name']}", found["doc"]))
        elif found := OPTION.match(line) or re.match(rf"^  {re.escape(name)} (?P<names>--\S+)(?P<argument>)(?P<doc>)$", line):
            entry = Entry(found["names"].split(", "), found["argument"] or "", [found["doc"]] if found["doc"] else [])
            command.options.append(entry)
        elif found := WORD.match(line):
            entry = Entry([found["names"]], "", [found["doc"]])
            command.words.append(entry)
        elif line.strip():
            paragraph.append(line)
            continue
        if paragraph:
            command.text.append("\n".join(paragraph))
            paragraph = []
    return command


def help_of(program, words):
    return subprocess.run([program, *words, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout


def read(program, name, doc=""):
    """The command `name` with all below it. `program`: the file that is called so in the name's first word."""
    command = parse(name, doc, help_of(program, name.split()[1:]))
    command.subcommands = [read(program, subcommand.name, subcommand.doc) for subcommand in command.subcommands]
    if not command.doc:  # the first sentence says what it is
        sentence = command.text[0].split(".")[0].replace("\n", " ")
        command.doc = sentence[0].lower() + sentence[1:]
    return command


def read_compiler(program, name):
    """spillcc, whose own part of --help stands before clang's, which has the usage."""
    _, own, clangs = help_of(program, []).split("OVERVIEW: ", 2)
    overview, _, rest = own.partition("\n\n")
    usage = re.search(r"^USAGE: \S+ (.*)$", clangs, re.M)[1]
    command = parse(name, overview, f"usage: {name} {usage}\n\n{rest}")
    command.text = ["All other options are those of clang 19."]  # in place of a heading
    return command
