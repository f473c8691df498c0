#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `make install` puts in place, as who builds on it meets it."""

from lib import *

# As for CIFTS: strict C, nothing of Hale's own. Hears itself by polling, and says what it heard.
COMPONENT = r'''
#include <libftb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void)
{
	FTB_client_t me;
	FTB_event_info_t info[1] = {{"IT_WORKS", "ERROR"}};
	FTB_event_properties_t p;
	FTB_client_handle_t client;
	FTB_subscribe_handle_t sub;
	FTB_event_handle_t event, again;
	FTB_receive_event_t got;
	struct timespec pause = {0, 1000000};
	int ret, tries = 0;

	memset(&me, 0, sizeof(me));
	strcpy(me.client_schema_ver, "0.5");
	strcpy(me.event_space, "FTB.TEST.COMPONENT");
	strcpy(me.client_subscription_style, "FTB_SUBSCRIPTION_POLLING");
	ret = FTB_Connect(&me, &client);
	if (ret != FTB_SUCCESS) {
		printf("%d\n", ret);
		return 1;
	}
	memset(&p, 0, sizeof(p));
	p.event_type = 1;
	strcpy(p.event_payload, "from a component");
	if (FTB_Declare_publishable_events(client, 0, info, 1) ||
	    FTB_Subscribe(&sub, client, "event_space=ftb.test.component,severity=error", NULL, NULL) ||
	    FTB_Publish(client, "IT_WORKS", &p, &event))
		return 2;
	while ((ret = FTB_Poll_event(sub, &got)) == FTB_GOT_NO_EVENT && tries++ < 20000)
		nanosleep(&pause, NULL);
	if (ret != FTB_SUCCESS || FTB_Get_event_handle(got, &again) ||
	    FTB_Compare_event_handles(event, again))
		return 3;
	printf("%s %s %s\n", got.event_name, got.severity, got.event_payload);
	return FTB_Unsubscribe(&sub) || FTB_Disconnect(client);
}
'''


def installed(s):
    """{path below the folder for it: where it is now}"""
    have("meson")
    to = s.path("installed")
    r = s.run("/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", to)
    expect(r.status == 0, r)
    return to, {os.path.relpath(os.path.join(d, f), to): os.path.join(d, f)
                for d, _, names in os.walk(to) for f in names}


def named(files, name):
    found = [p for p in files.values() if p.endswith("/" + name)]
    expect(len(found) == 1, f"{name}: {found}")
    return found[0]


@test
def a_job_needs_no_zeromq_and_brokers_say_that_they_do(s):
    """ZeroMQ brings 16 libraries; only brokers of several machines load it."""
    r = s.run("ldd", HALE)
    expect(r.status == 0 and "libzstd" in r.out and "libzmq" not in r.out and "krb5" not in r.out, r)
    os.mkdir(s.path("broken"))
    s.write("broken/libzmq.so.5", "no library")
    without = {"LD_LIBRARY_PATH": s.path("broken")}
    r = s.hale("backplane", "key", "key", env=without)
    expect(r.status == 1 and "install it (Debian's package libzmq5)" in r.err and not os.path.exists(s.path("key")), r)
    r = s.hale("run", "-n", 1, "--no-mpi", "--", "true", env=without)
    expect(r.status == 0, r)
    r = s.hale("backplane", "key", "key")
    expect(r.status == 0 and len(r.out.strip()) >= 40, r)


@test
def a_component_builds_against_what_is_installed_and_works(s):
    to, files = installed(s)
    for name in ("libftb.so", "libftb.so.0", "libftb.h", "ftb.h", "hale.h", "default.rules", "hale.1",
                 "rules.md"):
        named(files, name)
    pc = named(files, "ftb.pc")
    r = s.run("pkg-config", "--cflags", "--libs", "ftb",
              env={"PKG_CONFIG_PATH": os.path.dirname(pc), "PKG_CONFIG_SYSROOT_DIR": to,
                   "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"})
    expect(r.status == 0 and "-lftb" in r.out, r)
    s.write("component.c", COMPONENT)
    exe = s.path("component")
    r = s.run("gcc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o",
              exe, "component.c", *r.out.split())
    expect(r.status == 0 and not said(r), r)
    libs = {"LD_LIBRARY_PATH": os.path.dirname(named(files, "libftb.so"))}

    # alone, then with a broker by itself, then with a job's
    r = s.run(exe, env={**libs, "HALE_FTB": s.path("nobody")})
    expect(r.status == 1 and r.out == "-21\n", r)  # FTB_ERR_NETWORK_NO_ROUTE
    broker = s.start(HALE, "backplane", "--socket", s.path("ftb"), "--verbose")
    broker.until_says("serving")
    r = s.run(exe, env={**libs, "HALE_FTB": s.path("ftb")})
    expect(r.status == 0 and r.out == "IT_WORKS ERROR from a component\n", r)
    broker.p.terminate()
    expect(broker.wait().status == 0, broker.result())
    job = s.hale_start(1, "sleep", "100", options=["--no-mpi"])
    job.ranks(1)
    r = s.run(exe, env={**libs, "HALE_FTB": job.info()["events"]})
    expect(r.status == 0 and r.out == "IT_WORKS ERROR from a component\n", r)
    job.kill(signal.SIGTERM)
    job.wait()


@test
def units_of_systemd_are_right_and_name_what_is_installed(s):
    have("systemd-analyze")
    to, files = installed(s)
    hale = os.path.relpath(named(files, "bin/hale"), to)
    for name in ("hale-backplane.service", "hale-agent@.service"):
        with open(named(files, name)) as f:
            expect(f"ExecStart=/{hale} " in f.read(), name)
    units = s.path("units")
    os.mkdir(units)
    os.mkdir(s.path("run"))
    for name in ("hale-backplane.service", "hale-agent@.service", "hale-agent.socket"):
        with open(named(files, name)) as f, open(os.path.join(units, name), "w") as g:
            g.write(f.read().replace(f"ExecStart=/{hale}", f"ExecStart={HALE}"))
    r = s.run("systemd-analyze", "verify", "--man=no", os.path.join(units, "hale-backplane.service"))
    expect(r.status == 0 and "hale-backplane" not in r.err, r)
    r = s.run("systemd-analyze", "--user", "verify", "--man=no", os.path.join(units, "hale-agent.socket"),
              env={"XDG_RUNTIME_DIR": s.path("run")})
    expect(r.status == 0 and "hale-agent" not in r.err, r)


def is_stripped(s, path):
    return ".debug_info" not in s.run("readelf", "-S", "-W", path).out


@test
def what_is_installed_is_stripped_works_and_goes_without_traces(s):
    """From a build folder of the same kind, with the paths of this one."""
    to, files = installed(s)
    hale = named(files, "bin/hale")
    for name in ("bin/hale", "libhale.so", "libmpi.so.40", "libftb.so.0"):
        expect(is_stripped(s, named(files, name)), name)
    expect(os.path.getsize(hale) < os.path.getsize(HALE) / 2, "it is smaller", os.path.getsize(hale))
    build_id = re.search(r"Build ID: (\w+)", s.run("readelf", "-n", hale).out)[1]
    (debug,) = [p for p in files.values() if p.endswith(f"/.build-id/{build_id[:2]}/{build_id[2:]}.debug")]
    expect(not is_stripped(s, debug), "the symbols are there")
    job = s.start(hale, "run", "-n", 2, "--no-mpi", "--ckpt-every", "100ms", "--inject", "kill:rank=1,at-ckpt=2", "sleep", 2,
                  env={"HALE_LIBDIR": os.path.dirname(named(files, "libhale.so"))})
    r = job.wait()
    expect(r.status == 0 and "all ranks run again" in r.err, r)
    build = s.path("build")
    os.makedirs(os.path.join(build, "meson-logs"))
    for name in ("meson-logs/install-log.txt", "debug-files.txt"):
        with open(os.path.join(BUILD, name)) as f:
            text = f.read()
        s.write(os.path.join(build, name), "".join(
            x if x.startswith(("#", to)) else to + x for x in text.splitlines(True)))
    s.write(os.path.join(to, "somebody's"), "")
    r = s.run("sh", os.path.join(ROOT, "scripts/uninstall.sh"), build)
    left = [os.path.relpath(os.path.join(d, x), to) for d, _, names in os.walk(to) for x in names]
    expect(r.status == 0 and left == ["somebody's"], left, r)
    folders = [d for d, _, _ in os.walk(to) if "hale" in os.path.relpath(d, to) or ".build-id" in d]
    expect(not folders, folders)


@test
def a_copied_clone_builds_its_own_sources(s):
    """Its build folder, copied too, is that of the original: it is made anew, and nothing of the original's."""
    for clone in ("one", "two clones"):
        for folder in ("build", "scripts"):
            os.makedirs(s.path(clone, folder))
        for name in ("Makefile", "scripts/own_build.sh"):
            shutil.copy(os.path.join(ROOT, name), s.path(clone, name))
        s.write(f"{clone}/scripts/deps.sh", "#!/bin/sh\n")
        os.chmod(s.path(clone, "scripts/deps.sh"), 0o755)
    regenerate = "rule REGENERATE_BUILD\n command = /usr/bin/meson --internal regenerate "
    meson = s.write("meson", "#!/bin/sh\nmkdir -p $2\necho made >$2/build.ninja\n")
    os.chmod(meson, 0o755)

    def make(clone, text):
        s.write(f"{clone}/build/build.ninja", text)
        r = s.run("make", "-C", s.path(clone), "build", f"MESON={meson}", "NINJA=true")
        expect(r.status == 0, r)
        return s.read(f"{clone}/build/build.ninja") == "made\n", r

    one = s.path("one")
    expect(not make("one", f"{regenerate}{one} {one}/build\n")[0], "its own build folder stays")
    anew, r = make("two clones", f"{regenerate}{one} {one}/build\n")
    expect(anew and "was made for another folder" in r.out, r)
    two = s.path("two clones").replace(" ", "$ ")
    os.makedirs(s.path("two clones", "build"), exist_ok=True)
    expect(not make("two clones", f"{regenerate}'{two}' '{two}/build'\n")[0], "a folder with a blank in its name")


main()
