#!/usr/bin/env python3
"""Makes the shell completion of a program of what it prints for --help.

  completion.py bash|zsh PROGRAM OUTPUT

A word that is no option is a subcommand where the program has some, else a file; for a program that starts another
(COMMAND in its usage) the other's words are completed as its own are.
"""
import pathlib
import re
import sys

import help_text

OTHER_PROGRAM = "COMMAND [ARGUMENT...]"


def options_of(found):
    return [entry for _, entries in found.sections for entry in entries if entry.names]


def kind_of(option):
    """How an option's value is completed: its choices, "files", "nothing"; None: it has no value."""
    if option.value is None:
        return None
    if option.choices:
        return option.choices
    return "files" if option.is_file or option.value.endswith("FOLDER") else "nothing"


# --- bash

BASH = """# bash completion for {program}; made of what it prints for --help.
{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= options= at
  COMPREPLY=()
  # `--format=text` comes as three words.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
{find_command}
  case $command:$previous in
{values}
  esac
  case $command in
{options}
  esac
{reply}
}}
complete -o bashdefault -o default -F {function} {program}
"""

FIND_SUBCOMMAND = """  for ((at = 1; at < COMP_CWORD; ++at)); do
    case ${{COMP_WORDS[at]}} in {names}) command=${{COMP_WORDS[at]}}; break ;; esac
  done"""

# The first word that is neither option nor value of one is the other program.
FIND_OTHER_PROGRAM = """  for ((at = 1; at <= COMP_CWORD; ++at)); do
    case ${{COMP_WORDS[at]}} in
      --) ((++at)); break ;;
      {valued}) ((++at)) ;;
      -*) ;;
      *) break ;;
    esac
  done
  if ((at <= COMP_CWORD)); then
    if declare -F _command_offset >/dev/null; then
      _command_offset $at
    elif ((at == COMP_CWORD)); then
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -c -- "$current")
    fi
    return
  fi"""

REPLY_OPTIONS = """  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  fi"""

REPLY_SUBCOMMANDS = """  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [ -z "$command" ]; then
    compopt +o default +o bashdefault
    mapfile -t COMPREPLY < <(compgen -W '{names}' -- "$current")
  fi"""


def bash_values(command, found):
    for option in options_of(found):
        kind = kind_of(option)
        if kind is None:
            continue
        pattern = "|".join(f"{command}:{name}" for name in option.names)
        if kind == "files":
            yield f"    {pattern}) return ;;"
        elif kind == "nothing":
            yield f"    {pattern}) compopt +o default +o bashdefault; return ;;"
        else:
            yield f"    {pattern}) mapfile -t COMPREPLY < <(compgen -W '{' '.join(kind)}' -- \"$current\"); return ;;"


def bash(program, found):
    all_of_them = {"": found, **found.subcommands}
    values = [line for command, one in all_of_them.items() for line in bash_values(command, one)]
    options = [f"    {command or chr(39) * 2}) options='{' '.join(n for o in options_of(one) for n in o.names)}' ;;"
               for command, one in all_of_them.items()]
    find, reply = "", REPLY_OPTIONS
    if found.subcommands:
        find = FIND_SUBCOMMAND.format(names="|".join(found.subcommands))
        reply = REPLY_SUBCOMMANDS.format(names=" ".join(found.subcommands))
    elif OTHER_PROGRAM in found.usage:
        find = FIND_OTHER_PROGRAM.format(
            valued=" | ".join(name for option in options_of(found) if option.value for name in option.names))
    return BASH.format(program=program, function="_" + program.replace("-", "_"), find_command=find,
                       values="\n".join(values), options="\n".join(options), reply=reply)


# --- zsh

ZSH = """#compdef {program}
# zsh completion; made of what {program} prints for --help.
{function}() {{
  local context state line
  typeset -A opt_args
  _arguments -S {specs}
{states}
}}
{function} "$@"
"""


def zsh_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_specs(found):
    """What _arguments takes for the options."""
    for option in options_of(found):
        meaning = re.sub(r"([\[\]:\\])", r"\\\1", option.meaning)
        kind = kind_of(option)
        value = ""
        if kind is not None:
            what = {"files": "_files", "nothing": " "}.get(kind) if isinstance(kind, str) else f"({' '.join(kind)})"
            value = f":{re.sub(r'[^A-Za-z]', ' ', option.value.split(':')[0]).strip().lower() or 'value'}:{what}"
        together = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
        for name in option.names:
            yield zsh_quoted(f"{together}{name}[{meaning}]{value}")


def zsh(program, found):
    specs = list(zsh_specs(found))
    states = ""
    if found.subcommands:
        names = [zsh_quoted(f"{entry.left}:{entry.meaning}") for entry in found.entries("Subcommands")]
        cases = [f"    {command}) _arguments -S {' '.join([*zsh_specs(one), zsh_quoted('*:file:_files')])} ;;"
                 for command, one in found.subcommands.items()]
        specs += [zsh_quoted("1:command:->command"), zsh_quoted("*::argument:->argument")]
        states = "\n".join([f"  local -a commands=({' '.join(names)})", "  case $state in",
                            "    command) _describe command commands ;;", "    argument) case $line[1] in",
                            *("  " + case for case in cases), "    esac ;;", "  esac"])
    elif OTHER_PROGRAM in found.usage:
        specs += [zsh_quoted("*::command:_normal")]
    else:
        specs += [zsh_quoted("*:file:_files")]
    return ZSH.format(program=program, function="_" + program.replace("-", "_"), specs=" \\\n    ".join(specs),
                      states=states)


def main():
    shell, program, output = sys.argv[1:]
    name = pathlib.Path(program).name
    text = {"bash": bash, "zsh": zsh}[shell](name, help_text.of_program(program))
    pathlib.Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
