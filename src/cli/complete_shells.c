/* SPDX-License-Identifier: BSD-3-Clause */
/* What bash, zsh and fish read: each asks `hale complete -- WORD…` with the words behind hale, up
 * to the one at the cursor. Answers are lines "word TAB what it is"; ":file", ":folder" and
 * ":program" leave it to the shell. */
#include "cli/complete.h"

#include <string.h>
#include "base/base.h"

const char cli_complete_help[] =
    "hale complete bash|zsh|fish\n"
    "hale complete -- WORD …\n"
    "\n"
    "Prints what a shell has to read to complete command lines of hale: options, their values,\n"
    "jobs, nodes and ranks that are there. `make install` puts it where shells look; without it:\n"
    "\n"
    "  bash    eval \"$(hale complete bash)\"\n"
    "  zsh     eval \"$(hale complete zsh)\"      after compinit\n"
    "  fish    hale complete fish | source\n"
    "\n"
    "With -- it answers as those scripts ask: what may stand for the last WORD.\n";

static const char bash[] =
    "# bash completion for hale(1); printed by `hale complete bash`\n"
    "_hale()\n"
    "{\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} hale=${COMP_WORDS[0]/#\\~/$HOME} line\n"
    "\tlocal -a words=(\"${COMP_WORDS[@]:1:COMP_CWORD}\")\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tcase $line in\n"
    "\t\t:file) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "\t\t\tcompopt -o filenames 2>/dev/null ;;\n"
    "\t\t:folder) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "\t\t\tcompopt -o filenames 2>/dev/null ;;\n"
    "\t\t:program) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- \"$cur\"; compgen -f "
    "-- \"$cur\")\n"
    "\t\t\tcompopt -o filenames 2>/dev/null ;;\n"
    "\t\t*) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "\t\tesac\n"
    "\tdone < <(\"$hale\" complete -- \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _hale hale\n";

static const char zsh[] =
    "#compdef hale\n"
    "# zsh completion for hale(1); printed by `hale complete zsh`\n"
    "_hale()\n"
    "{\n"
    "\tlocal line tab=$'\\t'\n"
    "\tlocal -a offered\n"
    "\tfor line in \"${(@f)$(${~words[1]} complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; "
    "do\n"
    "\t\tcase $line in\n"
    "\t\t:file) _files ;;\n"
    "\t\t:folder) _files -/ ;;\n"
    "\t\t:program) _command_names -e; _files ;;\n"
    "\t\t?*) offered+=(\"${${line%%$tab*}//:/\\\\:}:${line#*$tab}\") ;;\n"
    "\t\tesac\n"
    "\tdone\n"
    "\tif (( $#offered )); then _describe -V 'hale' offered; fi\n"
    "}\n"
    "if [[ $funcstack[1] = _hale ]]; then _hale \"$@\"; else compdef _hale hale; fi\n";

static const char fish[] =
    "# fish completion for hale(1); printed by `hale complete fish`\n"
    "function __hale_complete\n"
    "\tset -l words (commandline -opc) (commandline -ct)\n"
    "\tfor line in (eval $words[1] complete -- (string escape -- $words[2..]) 2>/dev/null)\n"
    "\t\tswitch $line\n"
    "\t\t\tcase :file\n"
    "\t\t\t\t__fish_complete_path (commandline -ct)\n"
    "\t\t\tcase :folder\n"
    "\t\t\t\t__fish_complete_directories (commandline -ct)\n"
    "\t\t\tcase :program\n"
    "\t\t\t\t__fish_complete_command\n"
    "\t\t\tcase '*'\n"
    "\t\t\t\techo $line\n"
    "\t\tend\n"
    "\tend\n"
    "end\n"
    "complete -c hale -f -a '(__hale_complete)'\n";

const char *complete_script(const char *shell)
{
	static const struct {
		const char *shell, *script;
	} all[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(shell, all[i].shell) == 0)
			return all[i].script;
	return NULL;
}
