"""What shells complete of the commands: scripts for bash, zsh and fish, which ask no program but clang while one types."""
import re

FILES = {"FILE", "DIR", "DEVICE", "PATH", "LOG"}
ANYTHING = ":"  # a value that nothing is known of


def value_of(argument):
    """What an option takes: "" for nothing, FILE, words between blanks, ANYTHING."""
    if argument in FILES:
        return "FILE"
    return argument.replace("|", " ") if re.fullmatch(r"\w+(\|\w+)+", argument) else ANYTHING if argument else ""


def operand_of(command):
    """What a command takes besides options and subcommands, likewise, or PROGRAM: what comes after that is the program's."""
    if any(line.endswith("-- PROGRAM [ARGUMENT]...") for line in command.usage):
        return "PROGRAM"
    if command.words:
        return " ".join([name for word in command.words for name in word.names] + re.findall(r"\|([a-z]+)", command.usage[0]))
    usage = re.sub(r"\[-.*?\]|--\S+ \S+", "", " ".join(command.usage))
    if choice := re.search(r" ([a-z]+(?:\|[a-z]+)+)$", usage):
        return choice[1].replace("|", " ")
    words = set(re.findall(r"[A-Z]+", usage))
    return "FILE" if words & (FILES | {"COREFILE"}) else ""


def options_of(command):
    """(name, what it takes, what it is) of each spelling of each option."""
    known = [(name, value_of(option.argument), brief(option.doc)) for option in command.all_options() for name in option.names]
    return known if any(name == "--help" for name, _, _ in known) else known + [("--help", "", "what there is to say")]


def brief(doc):
    return doc[0].split(";")[0] if doc else ""


def bash_word(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash_table(name, rows):
    return "\n".join([f"declare -gA {name}=(", *(f"  [{bash_word(key)}]={bash_word(value)}" for key, value in rows if value), ")"])


BASH = """# Made of what spillway and its subcommands say to --help.
{tables}

_spillway() {{
  local command=spillway word=${{COMP_WORDS[COMP_CWORD]}} value= before= this i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    this=${{COMP_WORDS[i]}}
    if [[ $this == : ]]; then  # of a device string, which bash takes apart there: it goes on
      value=$before
      continue
    fi
    before=$value
    if [[ -n $value ]]; then
      [[ $this == = ]] || value=
    elif [[ $this == = ]]; then
      value={anything}
    elif [[ $this == -* && $this != -- ]]; then
      value=${{_spillway_values["$command $this"]-}}
    elif [[ " ${{_spillway_subcommands[$command]-}} " == *" $this "* ]]; then
      command+=" $this"
    elif [[ ${{_spillway_operands[$command]-}} == PROGRAM ]]; then
      break
    fi
  done
  [[ $word == : ]] && value=$before
  [[ $word == [:=] ]] && word=
  if [[ -n $value ]]; then
    :
  elif ((i < COMP_CWORD)) || [[ ${{_spillway_operands[$command]-}} == PROGRAM && $word != -* ]]; then
    [[ $this == -- ]] && ((++i))
    value=PROGRAM
  elif [[ $word == -* ]]; then
    value=${{_spillway_options[$command]-}}
  else
    value=${{_spillway_subcommands[$command]-${{_spillway_operands[$command]-}}}}
  fi
  case $value in
    PROGRAM)
      if declare -F _command_offset > /dev/null; then
        _command_offset "$i"
      elif ((i == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi ;;
    FILE)
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    {anything}) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$value" -- "$word") ;;
  esac
}}
complete -F _spillway spillway
"""


def bash(command):
    commands = command.tree()
    tables = [
        bash_table("_spillway_subcommands", [(each.name, " ".join(below.name.split()[-1] for below in each.subcommands)) for each in commands]),
        bash_table("_spillway_options", [(each.name, " ".join(name for name, _, _ in options_of(each))) for each in commands]),
        bash_table("_spillway_values", [(f"{each.name} {name}", value) for each in commands for name, value, _ in options_of(each)]),
        bash_table("_spillway_operands", [(each.name, operand_of(each)) for each in commands])]
    return BASH.format(tables="\n".join(tables), anything=ANYTHING)


ZSH = """#compdef spillway
# Made of what spillway and its subcommands say to --help.
_spillway_of() {{
  subcommands=() flags=() values=() operand=
  case $1 in
{cases}
  esac
}}

_spillway() {{
  local command=spillway value= operand this i
  local -a subcommands flags
  local -A values
  _spillway_of $command
  for ((i = 2; i < CURRENT; ++i)); do
    this=$words[i]
    if [[ -n $value ]]; then
      value=
    elif [[ $this == -* && $this != -- ]]; then
      [[ $this == *=* ]] || value=$values[$this]
    elif (( ${{subcommands[(I)${{(b)this}}:*]}} )); then
      command+=" $this"
      _spillway_of $command
    elif [[ $operand == PROGRAM ]]; then
      break
    fi
  done
  if (( i < CURRENT )) || [[ -z $value && $operand == PROGRAM && $PREFIX != -* ]]; then
    [[ $this == -- ]] && ((++i))
    shift $((i - 1)) words
    ((CURRENT -= i - 1))
    _normal
  elif [[ -z $value && $PREFIX == -* ]]; then
    _describe -o option flags
  elif [[ -z $value ]] && (( $#subcommands )); then
    _describe subcommand subcommands
  else
    case ${{value:-$operand}} in
      (FILE) _files ;;
      ({anything}|) _message value ;;
      (*) compadd -- ${{=value:-$operand}} ;;
    esac
  fi
}}
_spillway "$@"
"""


def zsh_described(name, doc):
    return bash_word(f"{name.replace(':', chr(92) + ':')}:{doc}")


def zsh(command):
    cases = []
    for each in command.tree():
        values = " ".join(f"{bash_word(name)} {bash_word(value)}" for name, value, _ in options_of(each) if value)
        cases += [f"    ({bash_word(each.name)})",
                  *(f"      subcommands+=({zsh_described(below.name.split()[-1], below.doc)})" for below in each.subcommands),
                  *(f"      flags+=({zsh_described(name, doc)})" for name, _, doc in options_of(each)),
                  f"      values=({values})", f"      operand={bash_word(operand_of(each))} ;;"]
    return ZSH.format(cases="\n".join(cases), anything=ANYTHING)


FISH = """# Made of what spillway and its subcommands say to --help.
function __spillway_in  # the subcommand is this one
    set -l typed (commandline -opc)
    set -l last (math 1 + (count $argv))
    test (count $typed) -ge $last; and test "$typed[2..$last]" = "$argv"
end
function __spillway_after  # nothing else has been typed but these words
    set -l typed (commandline -opc)
    test "$typed[2..]" = "$argv"
end
function __spillway_program  # what is offered of the program that stands behind --
    set -l typed (commandline -opc)
    set -l first (math 1 + (contains -i -- -- $typed))
    complete -C (string join ' ' -- (string escape -- $typed[$first..]) (commandline -ct))
end
complete -c spillway -f
"""


def fish_word(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(where, name, value, doc):
    kind = "-l " + name[2:] if name.startswith("--") else "-s " + name[1:] if len(name) == 2 else "-o " + name[1:]
    takes = {"": "", "FILE": " -rF", ANYTHING: " -x"}.get(value, f" -xa {fish_word(value)}")
    return f"complete -c spillway{where} {kind}{takes} -d {fish_word(doc)}"


def fish(command):
    lines = []
    for each in command.tree():
        below = " ".join(each.name.split()[1:])
        here, after = (f" -n '__spillway_in {below}'" if below else ""), f" -n '__spillway_after {below}'"
        for subcommand in each.subcommands:
            lines.append(f"complete -c spillway{after} -a {subcommand.name.split()[-1]} -d {fish_word(subcommand.doc)}")
        # What all below this would take as well.
        where = after if each.subcommands else here
        lines += [fish_option(where, *option) for option in options_of(each)]
        operand = operand_of(each) if not each.subcommands else ""
        if operand == "PROGRAM":
            lines.append(f"complete -c spillway -n '__spillway_in {below}; and contains -- -- (commandline -opc)' -xa '(__spillway_program)'")
        elif operand == "FILE":
            lines.append(f"complete -c spillway{where} -F")
        elif operand:
            lines.append(f"complete -c spillway{where} -xa {fish_word(operand)}")
    return FISH + "\n".join(lines) + "\n"


def scripts(command):
    """The scripts of a command with all below it, by shell."""
    return {"bash": bash(command), "zsh": zsh(command), "fish": fish(command)}


COMPILER_BASH = """# spillcc's own options, made of what it says to --help, and clang's, which clang tells.
_{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}}
  COMPREPLY=()
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "{words} $("$1" --autocomplete="$word" 2> /dev/null | cut -f 1)" -- "$word")
  fi
  [[ ${{COMPREPLY[0]-}} != *= ]] || compopt -o nospace 2> /dev/null
}}
complete -o default -F _{function} {name}
"""
COMPILER_ZSH = """#compdef {name}
# spillcc's own options, made of what it says to --help, and clang's.
local -a flags=({described})
[[ $PREFIX == -* ]] && _describe -o option flags
_gcc "$@"
"""


def spellings(option):
    """An option of spillcc with what stands behind its sign of equality: -fa[=SIZE], -fb=1|2."""
    name, _, values = option.names[0].partition("=")
    if name.endswith("["):
        return [name[:-1], name[:-1] + "="]
    return [f"{name}={value}" for value in values.split("|")] if values else [name]


def compiler_scripts(command):
    """Those of spillcc and spillc++."""
    spelled = [(name, brief(option.doc)) for option in command.options for name in spellings(option)]
    lines = [f"complete -c {command.name} -o {fish_word(name[1:])} -d {fish_word(doc)}" for name, doc in spelled]
    return {
        "bash": COMPILER_BASH.format(name=command.name, function=command.name.replace("+", "x"), words=" ".join(name for name, _ in spelled)),
        "zsh": COMPILER_ZSH.format(name=command.name, described="\n  ".join(zsh_described(name, doc) for name, doc in spelled)),
        "fish": "\n".join([f"# What {command.name} says to --help.", f"complete -c {command.name} -w clang", *lines]) + "\n"}
