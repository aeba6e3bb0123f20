"""Manual pages: one for each command of the first level, with all that is below it."""


def escaped(text):
    """For troff: a hyphen that can be copied, no line that is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def synopsis(command):
    lines = []
    for line in command.usage:
        name = command.name if line.startswith(command.name) else ""
        lines.append(f"\\fB{escaped(name)}\\fR{escaped(line[len(name):])}")
    return [".nf", *lines, ".fi"]


def entry(option):
    """An option or a word. A line of its help that says the default stays a line."""
    argument = f" \\fI{escaped(option.argument)}\\fR" if option.argument else ""
    lines = [".TP", ", ".join(f"\\fB{escaped(name)}\\fR" for name in option.names) + argument]
    for doc in option.doc:
        if doc.startswith("default ") and len(lines) > 2:
            lines.append(".br")
        lines.append(escaped(doc))
    return lines


def description(command):
    """What a command does, and the words that it takes."""
    lines = []
    for paragraph in command.text:
        lines += [".PP", escaped(paragraph)]
    return lines + entries(command.words)


def entries(options):
    return [line for option in options for line in entry(option)]


def file_name(command):
    return command.name.replace(" ", "-") + ".1"


def page(command, version, others):
    """The page of a command in `others`, which are all that have one."""
    title = escaped(command.name.replace(" ", "-"))
    lines = [f".\\\" Made of what {command.name} --help says.",
             f'.TH {title.upper()} 1 "" "{escaped(version)}" "Spillway"', ".nh",
             ".SH NAME", f"{title} \\- {escaped(command.doc)}",
             ".SH SYNOPSIS", *synopsis(command),
             ".SH DESCRIPTION", *description(command)]
    if command.options:
        lines += [".SH OPTIONS", *entries(command.options)]
    below = [each for each in command.subcommands if each not in others]
    if below:
        lines += [".SH SUBCOMMANDS"]
    for subcommand in below:
        lines += [f".SS {escaped(subcommand.name)}", *synopsis(subcommand), *description(subcommand), *entries(subcommand.options)]
    with_pages = [each for each in command.subcommands if each in others]
    if with_pages:
        lines += [".SH COMMANDS"]
    for subcommand in with_pages:
        lines += [".TP", f"\\fB{escaped(file_name(subcommand)[:-2])}\\fR(1)", escaped(subcommand.doc)]
    see = [f"\\fB{escaped(file_name(each)[:-2])}\\fR(1)" for each in others if each is not command and each not in with_pages]
    lines += [".SH SEE ALSO", ",\n".join(see), ".PP",
              "Documents that are named here, such as docs/storage.md, lie in share/doc/spillway of the installation (package spillway\\-doc)."]
    return "\n".join(lines) + "\n"
