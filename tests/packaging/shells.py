"""What shells offer by the completion that is installed."""
import shlex
import subprocess

FILES = {"bash": "bash-completion/completions/{}", "zsh": "zsh/vendor-completions/_{}", "fish": "fish/vendor_completions.d/{}.fish"}
BASH = """source {file}
COMP_WORDS=({words}) COMP_CWORD={last}
"$(complete -p {command} | sed 's/.*-F //; s/ .*//')" {command}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# In place of the functions that show something, and of a completion system that is at work.
ZSH = """_describe() {{ local name=$@[-1]; print -rl -- ${{${{(P)name}}%%:*}} }}
_files() {{ print -r FILES }}
_normal() {{ print -r -- "at $CURRENT of $words" }}
_gcc() {{ print -r GCC }}
_message() {{ }}
compadd() {{ shift; print -rl -- "$@" }}
words=({words}) CURRENT={current}
PREFIX=$words[CURRENT]
source {file}
"""
FISH = "source {file}; complete -C {line}"


def completed(shell, share, words, prefix=()):
    """What is offered for the last word. `prefix`: what the shell is called by, such as chroot's words; `share` is as the shell sees it."""
    file = share + "/" + FILES[shell].format(words[0])
    if shell == "fish":
        script = FISH.format(file=file, line=shlex.quote(" ".join(words)))
    else:
        script = {"bash": BASH, "zsh": ZSH}[shell].format(file=file, words=" ".join(map(shlex.quote, words)), last=len(words) - 1, current=len(words), command=words[0])
    call = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "-N", "-c"]}[shell]
    ended = subprocess.run([*prefix, *call, script], capture_output=True, text=True, timeout=100)
    if ended.returncode != 0 or ended.stderr:
        raise AssertionError(f"{shell} {words}: {ended}")
    return [line.split("\t")[0] for line in ended.stdout.splitlines() if line]
