#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completion of command lines in bash, zsh and fish, and man pages made from what --help prints."""

import pty
import select

from lib import *


def commands(s):
    """All that `hale help` lists."""
    found = re.findall(r"(?m)^  hale ([a-z]+) ", s.hale("help").out)
    expect(len(set(found)) > 15, found)
    return sorted(set(found) - {"help"})


def options_in(text):
    """As cli_test.py: its own, neither those of mpirun that mean nothing nor another command's."""
    text = re.sub(r"(?s)(Options of mpirun that mean nothing|Options are those of).*?\n\n", "", text + "\n\n")
    text = re.sub(r"(?<=[ =])'[^'\n]*'", "", text)
    return set(re.findall(r"(?<![\w…-])--?[a-z](?:[a-z-]*[a-z])?", text))


def bash(s, line, load='eval "$(hale complete bash)"'):
    """What bash's own completion puts into COMPREPLY for that line, up to its end."""
    words = line.split(" ")
    script = (f"{load}\nCOMP_WORDS=({' '.join(repr(w) for w in words)})\nCOMP_CWORD={len(words) - 1}\n"
              "_hale\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
    r = s.run("bash", "--norc", "-c", script, env={"PATH": BUILD + ":" + os.environ["PATH"]})
    expect(r.status == 0 and not r.err, r)
    return [x for x in r.out.split("\n") if x]


@test
def bash_offers_each_option_that_help_has(s):
    for command in commands(s):
        said = options_in(s.hale("help", command).out)
        offered = set(bash(s, f"hale {command} -"))
        expect(said <= offered, f"{command}: not offered", sorted(said - offered))
        expect(command == "restart" or offered <= said | {"--help"}, f"{command}: not in --help", sorted(offered - said))


@test
def hale_restart_offers_what_it_takes_of_hale_run(s):
    offered = set(bash(s, "hale restart -"))
    expect({"--ckpt-every", "--keep", "--nodes", "--report"} <= offered, offered)
    expect(not {"-n", "--no-mpi", "--wdir", "-x"} & offered, offered)
    for option in offered - {"--help"}:
        r = s.hale("restart", option, "1", s.path("nothing"))
        expect("unknown option" not in r.err and "comes from the checkpoint" not in r.err, r)


@test
def bash_offers_commands_words_values_jobs_nodes_and_ranks(s):
    expect(set(commands(s)) <= set(bash(s, "hale ")), bash(s, "hale "))
    expect(bash(s, "hale mig") == ["migrate"] and bash(s, "hale help adv") == ["advise"], "commands")
    expect(set(bash(s, "hale rules ")) >= {"check", "try"}, bash(s, "hale rules "))
    expect(bash(s, "hale run --bind-to l") == ["l3cache"], "a value")
    expect(bash(s, "hale run -n 2 --ckpt-every ") == ["auto", "off"], "values behind another option's")
    os.mkdir(s.path("some folder"))
    s.write("some program", "")
    os.chmod(s.path("some program"), 0o755)
    expect(bash(s, "hale run --ckpt-dir so") == ["some folder"], bash(s, "hale run --ckpt-dir so"))
    expect("some program" in bash(s, "hale run -n 2 so"), "the program")
    expect("some folder" in bash(s, "hale run -n 2 -- cat so"), "its arguments")
    expect(bash(s, "hale run -n 2 true --k") == [], "options behind the program are the program's")
    job = s.hale_start(2, "sleep", 100, options=["--no-mpi", "--host", "north,south", "--launcher", "exec %c"])
    job.ranks(2)
    name = job.info()["id"]
    for command in "ckpt", "inject kill", "nodes", "migrate", "events":
        expect(name in bash(s, f"hale {command} sleep."), command, name)
    expect(set(bash(s, "hale migrate --from ")) >= {"north", "south"}, bash(s, "hale migrate --from "))
    expect(set(bash(s, "hale inject kill --rank ")) >= {"0", "1"}, "ranks")
    job.kill(signal.SIGTERM)
    job.wait()


@test
def bash_completes_what_is_typed(s):
    """In a real terminal: a beginning, the tabulator, return."""
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(s.dir)
        os.execvpe("bash", ["bash", "--norc", "-i"],
                   dict(s.env, PATH=BUILD + ":" + os.environ["PATH"], PS1="ready> ", TERM="dumb",
                        INPUTRC="/dev/null", HISTFILE="/dev/null"))
    seen = b""

    def until(text, after=0):
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen[after:]:
            expect(time.monotonic() < end, f"waiting for {text}: {seen}")
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096)

    def typed(line):
        os.write(terminal, line)
        return len(seen)

    try:
        until(b"ready> ")
        start = typed(b'eval "$(hale complete bash)"; echo load""ed\r')
        until(b"loaded", start)
        until(b"ready> ", start + 40)
        start = typed(b"hale mod\t--he\t")
        until(b"hale model --help", start)
        start = typed(b"\r")
        until(b"hale model NAME", start)
    finally:
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)


@test
def zsh_offers_the_same(s):
    have("zsh")
    script = ('autoload -Uz compinit; compinit -u -d "$PWD/dump"; eval "$(hale complete zsh)"\n'
              "_describe() { print -rl -- ${(P)${@[-1]}} }\n_files() { print files $@ }\n_command_names() { print commands }\n"
              "words=(hale run --ckpt); CURRENT=3; _hale\necho --\nwords=(hale run ''); CURRENT=3; _hale\n"
              "echo --\nwords=(hale image show ''); CURRENT=4; _hale\n")
    r = s.run("zsh", "-f", "-c", script, env={"PATH": BUILD + ":" + os.environ["PATH"], "ZDOTDIR": s.dir})
    options, programs, files = r.out.split("--\n")[-3:] if r.out.count("--\n") == 2 else ("", "", "")
    expect(r.status == 0 and not r.err, r)
    expect("--ckpt-every:" in options and "--ckpt-dir:where to" in options and "--keep" not in options, r)
    expect(programs.split() == ["commands", "files"] and files.split() == ["files"], r)


@test
def fish_offers_the_same(s):
    have("fish")
    env = {"PATH": BUILD + ":" + os.environ["PATH"], "HOME": s.dir, "XDG_CONFIG_HOME": s.path("config"),
           "XDG_DATA_HOME": s.path("data"), "XDG_RUNTIME_DIR": s.dir}
    s.write("in.melt", "")

    def fish(line):
        r = s.run("fish", "--no-config", "-c", f"hale complete fish | source\ncomplete -C '{line}'", env=env)
        expect(r.status == 0 and not r.err, r)
        return dict((x + "\t").split("\t")[:2] for x in r.out.splitlines())

    expect(set(commands(s)) <= set(fish("hale ")), fish("hale "))
    got = fish("hale run --ckpt-")
    expect(got.get("--ckpt-dir", "").startswith("where to") and all(x.startswith("--ckpt-") for x in got), got)
    expect(list(fish("hale run --bind-to l")) == ["l3cache"], fish("hale run --bind-to l"))
    expect(list(fish("hale image show in.")) == ["in.melt"], fish("hale image show in."))


@test
def other_words_are_refused(s):
    for words in [], ["tcsh"], ["--"]:
        r = s.hale("complete", *words)
        expect(r.status == EXIT_USAGE and "bash, zsh or fish" in r.err, r)


@test
def each_command_has_a_man_page_with_its_options(s):
    have("groff")
    for command in commands(s):
        name = f"hale-{command}"
        page = os.path.join(BUILD, name + ".1")
        expect(os.path.exists(page), f"no page {name}(1) is made from --help")
        r = s.run("groff", "-K", "utf8", "-mandoc", "-Tutf8", "-ww", "-P-cbou", page)
        expect(r.status == 0 and not r.err, r)
        said = options_in(s.hale("help", command).out)
        shown = set(re.findall(r"(?<![\w-])--?[a-z](?:[a-z-]*[a-z])?", re.sub(r"[‐-]\n\s+", "", r.out.replace("−", "-"))))
        expect(said <= shown, f"{name}(1) lacks", sorted(said - shown))
        expect(re.search(f"hale[ -]{command}", r.out) and "SYNOPSIS" in r.out and "a command of hale" not in r.out or command == "agent", r)


@test
def a_man_page_says_beyond_help_only_what_is_about_something_there(s):
    def made(text):
        return s.run(PYTHON, os.path.join(ROOT, "scripts/manpage.py"), HALE, "cp", s.path("cp.1"), s.write("cp.more", text))

    r = made("# why\n\n@ --sync\nIt waits for it.\n\n@ EXAMPLES\n\n  hale cp a n1:b\n\n@ EXIT STATUS\n\n  7  never\n")
    page = s.read("cp.1")
    expect(r.status == 0, r)
    expect(re.search(r"Li \\-\\-sync\n.*\nIt waits for it\.\n", page), page)
    expect(page.index(".Sh DESCRIPTION") < page.index(".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It Li 7\nnever") <
           page.index(".Sh EXAMPLES\n") < page.index("hale cp a n1:b") < page.index(".Sh SEE ALSO"), page)
    r = made("@ --nothing\nIt is not there.\n")
    expect(r.status != 0 and "has no --nothing" in r.err, r)
    r = made("@ BUGS\nNone.\n")
    expect(r.status != 0 and "no section 'BUGS'" in r.err, r)


@test
def what_is_installed_is_where_shells_and_man_look(s):
    have("meson")
    to = s.path("installed")
    r = s.run("/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", to)
    expect(r.status == 0, r)
    files = [os.path.join(d, f) for d, _, names in os.walk(to) for f in names]

    def read(end):
        found = [f for f in files if f.endswith(end)]
        expect(len(found) == 1, end, found)
        with open(found[0]) as f:
            return f.read()

    script = read("/bash-completion/completions/hale")
    expect(script == s.hale("complete", "bash").out, script)
    expect(bash(s, "hale mig", load=script) == ["migrate"], "as installed")
    expect(read("/zsh/site-functions/_hale").startswith("#compdef hale\n"), "zsh")
    expect("complete -c hale" in read("/vendor_completions.d/hale.fish"), "fish")
    expect(".Dt HALE-CKPT 1" in read("/man1/hale-ckpt.1"), "man")


main()
