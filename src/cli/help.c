/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/events.h"
#include "cli/monitor.h"
#include "cli/model.h"
#include "cli/sim.h"
#include "node/job.h"

static const char overview[] =
    "hale - runs parallel programs through faults\n"
    "\n"
    "  hale run -n 4 --ckpt-every 30s -- ./program …   run a program, take checkpoints, go on\n"
    "                                                  after a process has died\n"
    "  hale ckpt [JOB]                                 take a checkpoint now\n"
    "  hale ckpt list|rm|clean                         checkpoints that jobs have left\n"
    "  hale restart CHECKPOINT                         go on from a checkpoint\n"
    "  hale ps [--json] [--watch]                      running jobs\n"
    "  hale stack [JOB]                                where its processes are: stacks, merged\n"
    "  hale top [JOB]                                  jobs, nodes and ranks, live; keys to act\n"
    "  hale web [--listen PORT]                        the same as a page, for a browser\n"
    "  hale report FILE|JOB [--html]                   what happened to a job\n"
    "  hale nodes [JOB] [--json]                       the machines of a job, and how they are\n"
    "  hale migrate [JOB] --from NODE [--to NODE]      the ranks of a node go to another one\n"
    "  hale replicate [JOB] --to 1|2|3                 so many processes for each rank from now "
    "on\n"
    "  hale clone [JOB] --rank R [--to NODE]           one more process for a rank\n"
    "  hale attach JOB                                 a new head for a job whose hale run is "
    "gone\n"
    "  hale inject due [JOB] --task-prob P [--seed N]\n"
    "  hale inject flip [JOB] --rank R [--where memory|message|result] [--after 3s] [--count N]\n"
    "  hale inject kill [JOB] --rank R [--after 3s | --at-call MPI_Allreduce:100]\n"
    "                                                  let a rank die, to see what happens\n"
    "  hale image show|verify FILE                     look into an image\n"
    "  hale advise [JOB] [--nodes N] [--mttf 50y]      which protection costs least, and what\n"
    "  hale campaign [options] PROGRAM                 flip bits in many runs: what becomes of "
    "them\n"
    "  hale model NAME key=value …                     what a protection costs, by formulas\n"
    "  hale sim --scheme 2x+clone+ckpt …               play a job under failures, many times\n"
    "  hale events [--follow] [--filter F]             faults and what is done about them\n"
    "  hale backplane                                  serve events on this node, without a job\n"
    "  hale monitor --ipmi --ib --memory --load        watch a node, publish what goes wrong\n"
    "  hale metrics [--listen PORT]                    numbers of running jobs, for Prometheus\n"
    "  hale rules check|try [FILE]                     what is done about which event\n"
    "  hale cp FILE NODE:PATH                          copy a file to or from another node\n"
    "  hale device serve --devices N                   serve devices and files of this node\n"
    "  hale swap out|in PID                            device processes to disk and back\n"
    "  hale offload migrate PID DEVICE                 device processes to another device\n"
    "  hale cc, hale cxx FILE…                         compile for the MPI standard's ABI\n"
    "  hale complete bash|zsh|fish                     completion of command lines, for a shell\n"
    "  hale help COMMAND                               more about one of them\n";

static const char run_help[] =
    "hale run -n N [options] [--] program [arguments]\n"
    "\n"
    "Runs N ranks of a program that is built for Open MPI 4, unmodified. When a rank is killed\n"
    "and there is a checkpoint, the job is rolled back to it and goes on by itself.\n"
    "\n"
    "  -n, -np, -c N          number of ranks (1)\n"
    "  --nodes K, --ppn P     as on K nodes, or on nodes with P ranks each; without hosts nodes "
    "are\n"
    "                         parts of this machine, which reach each other over its loopback\n"
    "  --no-mpi               the program does not use MPI: N independent processes\n"
    "  --wdir DIR             working folder of the ranks\n"
    "  -x VAR=VALUE           set a variable for the ranks (they get the others anyway)\n"
    "  --opencl               OpenCL programs, with or without MPI: errors in device memory are\n"
    "                         mended; HALE_OPENCL='check=… ckpt=… opt=…' says how\n"
    "  --tasks[=retries:R,protect:all|auto|none,…]\n"
    "                         OpenMP tasks built by clang: one that a memory error strikes is "
    "executed\n"
    "                         again (docs/tasks.md)\n"
    "  --bind-to none|core|l3cache|numa|socket\n"
    "                         by default ranks get equal shares of the cores when there are\n"
    "                         enough; more ranks than cores are always fine\n"
    "  --report-bindings, --display-map\n"
    "                         tell which cores each rank is bound to, which ranks each node has\n"
    "  --cpu-set LIST         the job uses only these cores of this machine: 0-3,8\n"
    "  --tag, --timestamp-output\n"
    "                         put \"[rank] \", or the time, before each line of output\n"
    "  --timeout TIME         end the job after TIME, with status 124 (or MPIEXEC_TIMEOUT)\n"
    "  --stdin 0|none         who reads hale's input\n"
    "\n"
    "several machines\n"
    "  --hosts FILE           run on these: one a line, with slots=N behind it if not all get the\n"
    "                         same number of ranks; # begins a comment\n"
    "  --host A,B:4,[::1]:2   the same in one line; :N are slots\n"
    "                         (neither, but in a Slurm allocation: on its nodes)\n"
    "  --spares M             the last M hosts get no ranks until another one is lost; with "
    "--nodes:\n"
    "                         M more\n"
    "  --warm-sinks N|off     so many processes of the program stand ready on a spare, and its "
    "files "
    "are\n"
    "                         in memory there before it is needed (as many as ranks may come); 0: "
    "only\n"
    "                         the files; off: neither\n"
    "  --launcher TEMPLATE    how agents are started: %h is the host, %c the command. By default "
    "ssh,\n"
    "                         in a Slurm allocation srun\n"
    "  --node-timeout TIME    a node that is silent for so long is lost, and one that hears "
    "nothing\n"
    "                         for so long ends its ranks (10s)\n"
    "  --net-security auth|encrypt\n"
    "                         between nodes: who connects proves that it is of this job (auth), "
    "and\n"
    "                         all that is sent is encrypted, too (encrypt)\n"
    "  --replicas D[:RANKS]   each rank, or each of RANKS (0-3,7), runs in D processes (1 to 3), "
    "on different nodes where "
    "there "
    "are\n"
    "                         several; when one dies its rank goes on in the other, nothing is "
    "lost\n"
    "                         and nothing rolled back (docs/redundancy.md). hale restart: 1 to as "
    "many\n"
    "                         as the job was begun with; as it was unless said\n"
    "  --shadows S            each rank has a shadow: a second process that sends and writes "
    "nothing, and\n"
    "                         runs slowly, S on a core; it goes on when its main dies, nothing is "
    "rolled\n"
    "                         back (docs/shadows.md)\n"
    "  --shadow-rate R        the share of a core that each may use (by the cores that there are)\n"
    "  --jump-at SIZE         a shadow with so much of messages before it gets the state of its "
    "main\n"
    "                         (384MiB); off: never\n"
    "  --rejuvenate-after K   after K failures processes that sets lack come back (1); never\n"
    "  --sdc hash|full        with replicas: no message is received before those of all replicas "
    "of\n"
    "                         its rank have been compared, by hashes or byte by byte (off)\n"
    "  --audit TIME           one more process visits rank after rank, for TIME each: what it "
    "sends "
    "and\n"
    "                         what the rank sends is compared; a node that computes wrongly is "
    "found "
    "and\n"
    "                         left (docs/audit.md; off)\n"
    "  --on-sdc stop|rollback\n"
    "                         what follows when they differ and nobody knows which is right: the\n"
    "                         job ends, or goes back (stop)\n"
    "  --hang-after [TIME][,compute=TIME][,wait=TIME]\n"
    "                         a rank that a signal has stopped, and that stands still for so long, "
    "counts\n"
    "                         as dead; with replicas also one that computes for so long without a "
    "call\n"
    "                         of MPI, or waits for so long, while another replica goes on (off)\n"
    "  --spawn N              N processes in reserve for MPI_Comm_spawn; a program that calls it "
    "has 8\n"
    "                         without this (docs/spawn.md)\n"
    "  --replenish on|off     processes that have died come back on a free place of another node,\n"
    "                         as copies of those that live (on)\n"
    "  --head-grace TIME      when hale run is killed the job goes on for so long, and `hale "
    "attach`\n"
    "                         gives it a new head (0: its ranks end with hale run)\n"
    "  --agent-lost adopt|end\n"
    "                         when a node's agent is killed another one goes on in its place, and\n"
    "                         the ranks run on (adopt); or they end, and the node is lost (end)\n"
    "\n"
    "checkpoints\n"
    "  --ckpt-every TIME|auto|off\n"
    "                         take one every so often: 30s, 500ms, 2min; auto, the default: the "
    "first\n"
    "                         after half a minute, then as often as it pays; off: on request only\n"
    "                         (SIGUSR1 to hale run, `hale ckpt` and HALE_Checkpoint() take one\n"
    "                         at once)\n"
    "  --ckpt-first TIME      auto: the first one after TIME (30s), and none at shorter "
    "intervals\n"
    "  --overhead P%          auto: checkpoints cost at most this share of the run time (1%)\n"
    "  --mtbf TIME            auto: mean time between failures of the job (assumed: a day,\n"
    "                         and what earlier jobs have seen)\n"
    "  --ckpt-on-success keep|remove\n"
    "                         the checkpoints of a job that ends with status 0 (auto: removed,\n"
    "                         unless somebody has asked for one; otherwise kept)\n"
    "  --requeue              in a batch job of Slurm: SIGUSR1 and SIGTERM take a checkpoint and\n"
    "                         end the job (status 75), after SIGUSR1 it is requeued; its next "
    "life\n"
    "                         goes on from there\n"
    "  --ckpt-dir DIR         where to (./hale-ckpt); made with mode 0700\n"
    "  --ckpt-local DIR       images go to DIR on each node, and copies to a partner node (%n: "
    "the\n"
    "                         node's name); --ckpt-dir has the manifests\n"
    "  --ckpt-shared-every N  each N-th of them goes to --ckpt-dir, too (10; 0: only those that "
    "are\n"
    "                         asked for)\n"
    "  --ckpt-wait TIME       wait for up to TIME until ranks have no child processes that no "
    "image "
    "can\n"
    "                         hold, static ones for instance (10s); then the checkpoint is "
    "refused\n"
    "  --require-checkpoints  when a checkpoint can't be taken the job ends, with status 74, "
    "instead\n"
    "                         of going on unprotected\n"
    "  --cpu-baseline x86-64-v2|x86-64-v3|x86-64-v4\n"
    "                         libraries (libc, libm, OpenBLAS, numpy) choose nothing that such a\n"
    "                         processor lacks, so that ranks can go to any that is one\n"
    "  --keep K               keep the K newest (2)\n"
    "  --incremental          write only what has changed, every 8th checkpoint whole\n"
    "  --compress none|lz4|zstd\n"
    "  --no-fsync             do not wait until the disk has them\n"
    "  --files restore|leave  a rollback sets files back to the checkpoint (restore), or not\n"
    "  --max-restarts K       roll back at most K times (10); 0: never\n"
    "  --restart full|lazy    read images before going on, or while (full); a lazy restart's are\n"
    "                         verified beside the running job\n"
    "\n"
    "events\n"
    "  --events               end with a sentence if there can be none; they are on anyhow: the "
    "job\n"
    "                         joins the machine's broker, or brings one (`hale events JOB`)\n"
    "  --rules FILE           what is done about which event (docs/rules.md); without it, those\n"
    "                         that Hale ships\n"
    "  --monitor ipmi,ib,memory,load\n"
    "                         watch this node's sensors; or options of hale monitor as one word:\n"
    "                         --monitor '--ipmi n1=10.1.0.1 --every 5s'; repeatable\n"
    "  --no-events            none of that\n"
    "\n"
    "what happened\n"
    "  --report FILE          write a report as JSON when the job ends\n"
    "  --profile FILE         write what was measured of the program, for hale advise\n"
    "  --on-closed-output end|continue\n"
    "                         when nobody reads the output any more the job ends, with status 141\n"
    "                         (the default where the output is a pipe), or it goes on without\n"
    "  --verbose, --quiet     tell more, or nothing but errors\n"
    "\n"
    "faults, to try it out\n"
    "  --inject kill:rank=R[,slot=S],WHEN[,signal=SEGV]\n"
    "                         a rank dies (any: some rank; slot: which replica of it, 0 unless\n"
    "                         said). WHEN is after=TIME, after=TIME-TIME (drawn with the seed),\n"
    "                         at-call=MPI_Allreduce:100, at-ckpt=K or at-restart=K; repeatable\n"
    "  --inject flip:rank=R,after=T[,slot=S][,where=WHERE][,count=N]\n"
    "                         wrong bits: in the rank's memory, in messages as they leave, or in "
    "what\n"
    "                         the program sends (WHERE: memory, message, result), with every=K in "
    "each\n"
    "                         K'th message (--replicas, --audit); node=NAME instead of rank=R: in "
    "all\n"
    "                         processes there\n"
    "  --inject due:prob=P[,seed=N][,at=end|random|page|copy][,times=K]\n"
    "                         memory errors in that share of all tasks (--tasks)\n"
    "  --seed N               for what is drawn (1)\n"
    "\n"
    "mpirun's and mpiexec's options do what they do there: --map-by ppr:N:node (or socket, numa,\n"
    "l3cache, core) starts N ranks on each, --app FILE has a program with its -n in each line,\n"
    "--output-filename DIR has each rank write to DIR/rank.R/stdout and stderr; -f FILE,\n"
    "-hosts A,B, -ppn N, -genv VAR VALUE, -l. Those that mean nothing here (--oversubscribe,\n"
    "--mca A B, --allow-run-as-root, …) are passed over; of those that somebody may count on\n"
    "(--rankfile, --prefix, …) one line says that the job runs without them.\n"
    "\n"
    "signals: INT, TERM, HUP, QUIT are passed on and end the job (the second time, or after 5 s,\n"
    "by force); USR1 takes a checkpoint; USR2 is passed on; TSTP and CONT stop and continue it.\n"
    "\n"
    "exit status: that of the first rank that ends with another one than 0; 128 + signal when a\n"
    "rank died of one; 64 wrong usage, or a program that can't run here; 70 could not recover;\n"
    "71 another head has the job; 74 no checkpoint (--require-checkpoints); 126 not executable;\n"
    "127 not found.\n"
    "\n"
    "environment: HALE_LOG=quiet|warn|info|debug; HALE_LIBDIR (folder of libhale.so);\n"
    "HALE_CKPT_TIMEOUT (60s: a checkpoint in which nothing moves for so long is given up,\n"
    "and after ten times as long if it waits for a disk);\n"
    "HALE_RESTART_TIMEOUT.\n";

static const char restart_help[] =
    "hale restart CHECKPOINT [options]\n"
    "\n"
    "Goes on from a checkpoint: the folder of one (hale-ckpt/lmp.4711/3), or the folder of a job\n"
    "(hale-ckpt/lmp.4711), which means its newest good one. A damaged one is refused and the one\n"
    "before it is used. Output goes on where it stood at the checkpoint.\n"
    "Options are those of hale run except -n, --no-mpi, --wdir and -x; what is not given\n"
    "(--ckpt-every, --keep, …) is as it was when the checkpoint was taken, and new checkpoints go\n"
    "where the old ones are. The job keeps its name unless one of that name is running.\n";

static const char ckpt_help[] =
    "hale ckpt [JOB]\n"
    "hale ckpt list [DIR] [--json]\n"
    "hale ckpt rm [--force] DIR/JOB[/ID] …\n"
    "hale ckpt clean [DIR] [--older-than TIME] [--dry-run]\n"
    "\n"
    "Takes a checkpoint of a running job and prints its path when it is complete. JOB may be left\n"
    "out when there is one. Exit status 1 with a sentence when there is none to be had.\n"
    "\n"
    "list    what jobs have kept in DIR (./hale-ckpt): sizes, ages, how the job ended\n"
    "rm      removes a job's checkpoints, or one of them; never those of a job that runs here.\n"
    "        --force: also of one that may run on another machine\n"
    "clean   removes those of jobs that ended with status 0; with --older-than those of any job\n"
    "        that does not run here and whose newest one is that old. --dry-run only tells\n";

static const char metrics_help[] =
    "hale metrics\n"
    "hale metrics --listen [ADDRESS:]PORT\n"
    "hale metrics --textfile FILE [--every TIME]\n"
    "\n"
    "Numbers of your running jobs on this machine, as Prometheus reads them: checkpoints, their\n"
    "bytes and seconds, faults and those recovered, time lost. Without an option once, on stdout.\n"
    "\n"
    "  --listen    serve /metrics until it is ended; on the loopback (127.0.0.1) unless an "
    "address\n"
    "              is given. Whoever can connect can read it\n"
    "  --textfile  write FILE each TIME (15s), for node_exporter's textfile collector; removed at\n"
    "              the end\n";

static const char nodes_help[] =
    "hale nodes [JOB] [--json]\n"
    "\n"
    "The nodes of a running job: STARTING (its agent does not answer yet), READY (may have "
    "ranks),\n"
    "ARM (its ranks are leaving it), INACTIVE (they have, and the job doesn't run on yet), SPARE\n"
    "(gets ranks when another node is lost), LOST; of a spare what it has ready, or which file it\n"
    "lacks. JOB may be left out when there is one.\n";

static const char attach_help[] =
    "hale attach [JOB | FOLDER] [--force] [--report FILE]\n"
    "\n"
    "Becomes the head of a job whose hale run was killed (`hale ps` calls it headless), if it was\n"
    "started with --head-grace and the time is not over. FOLDER is the job's among its "
    "checkpoints.\n"
    "From then on it is what hale run was: output goes on here, where it was left, each line "
    "once;\n"
    "checkpoints, rollbacks and migrations work; the report covers the whole job; the exit status\n"
    "is the program's. A file that was the job's input is read on; after a pipe or a terminal the\n"
    "input of hale attach follows.\n"
    "A hale run that is only stopped loses the job: when it goes on it finds that out, and ends "
    "with\n"
    "71. One that answers is left alone, but with --force.\n"
    "Has a rank died meanwhile, or was something half done, all ranks go back to the newest\n"
    "checkpoint. Status 70 if nothing is left of the job (`hale restart` may help), 64 with a\n"
    "sentence if there is no such job.\n";

static const char replicate_help[] =
    "hale replicate [JOB] --to 1|2|3\n"
    "\n"
    "Each rank of a running job runs in so many processes from now on. Those that are too many\n"
    "end; those that are missing are copied from others while the job runs, one after the other.\n"
    "The job must have been begun with room for them: `hale run --replicas 2:none` begins with\n"
    "one process for each rank, and room for two. Returns when it is so. Exit status 1 with a\n"
    "sentence when it can't be.\n";

static const char clone_help[] =
    "hale clone [JOB] --rank R [--to NODE]\n"
    "\n"
    "Copies a process of that rank while the job runs: the rank has one replica more, on NODE, or\n"
    "where one has died, a spare, a node with room. The job must have been begun with --replicas,\n"
    "and the rank have fewer processes than that says. Returns when the copy runs. Exit status 1\n"
    "with a sentence when it can't be.\n";

static const char migrate_help[] =
    "hale migrate [JOB] --from NODE [--to NODE] [--via-files[=DIR]] [--json]\n"
    "\n"
    "All ranks of a node go to another one while the job runs: to NODE, else to a spare, else to "
    "the\n"
    "nodes with most room. Their memory is copied while they compute; then the job stands still "
    "for\n"
    "the rest. Returns when all ranks run again, and says how long that took. `hale nodes` lists\n"
    "nodes; the one that was left is a spare. JOB may be left out when there is one. Exit status "
    "1\n"
    "with a sentence when the ranks stay where they are; then nothing has happened.\n"
    "\n"
    "  --via-files[=DIR]  the job stands still while images are written into DIR (the job's "
    "folder\n"
    "                     for checkpoints), copied to the other node unless it sees them there, "
    "and\n"
    "                     read: slower, and the way to go where nothing else gets through\n"
    "  --json             one object with what came of it, as in the report's migrations\n";

static const char agent_help[] = "hale agent --job JOB --node NAME [--service]\n"
				 "\n"
				 "The part of a job on one machine: starts its ranks and watches "
				 "them. hale run starts it there by\n"
				 "ssh, srun or --launcher, and speaks with it through its stdin "
				 "and stdout. It ends its ranks when\n"
				 "it hears nothing of hale run any more.\n"
				 "\n"
				 "  --service   an agent that systemd starts (hale-agent.socket of "
				 "the user, there) is used:\n"
				 "              hale run --launcher 'ssh %h \"%c --service\"' …\n";

static const char ps_help[] =
    "hale ps [JOB] [--json] [--shadows] [--watch[=TIME]]\n"
    "\n"
    "Shows your running jobs and their ranks, or those of JOB; with --watch again each TIME (2s),\n"
    "until Ctrl-C. With --shadows the shadowed sets of jobs that have some.\n"
    "With --json, too: one line each time.\n";

static const char top_help[] =
    "hale top [JOB] [--every TIME]\n"
    "\n"
    "A live view in the terminal: your jobs; of a job its nodes and ranks, what they do, the\n"
    "processor and memory that they use, checkpoints, faults, how fast MPI goes, and events as "
    "they\n"
    "come; of a rank what its kernel says, and its stack.\n"
    "\n"
    "  --every TIME           looks again each TIME (2s)\n"
    "\n"
    "Enter goes into what is under the cursor, Esc goes back, ? lists the keys. C takes a\n"
    "checkpoint, M lets the ranks of a node go elsewhere, K kills a rank; each is asked twice.\n"
    "Processor, memory and stack are known of ranks on this machine only.\n";

static const char web_help[] = "hale web [--listen [ADDRESS:]PORT]\n"
			       "\n"
			       "Serves a page that shows your running jobs live: when they ran, "
			       "took checkpoints, were rolled\n"
			       "back or moved, their nodes and ranks, events, and what protection "
			       "would cost least. Prints the\n"
			       "page's address, which has a token in it: whoever has it may look, "
			       "and can do nothing. Ends with\n"
			       "Ctrl-C; jobs do not notice.\n"
			       "\n"
			       "  --listen PORT          on that port (any), of 127.0.0.1 unless "
			       "an ADDRESS is given before a\n"
			       "                         colon. What goes over a network is not "
			       "encrypted: better leave it, and\n"
			       "                         go there by `ssh -L`\n";

static const char report_help[] =
    "hale report FILE [--html | --json] [--output FILE]\n"
    "hale report JOB [--html | --json] [--output FILE]\n"
    "\n"
    "Shows what happened to a job: one that has ended by the FILE that `hale run --report` has\n"
    "written, a running one by what its head knows now.\n"
    "\n"
    "  --html                 a page for a browser: one file that needs nothing else\n"
    "  --json                 as `hale run --report` writes it\n"
    "  -o, --output FILE      into FILE, not on stdout\n";

static const char stack_help[] =
    "hale stack [JOB]\n"
    "\n"
    "Where the processes of a running job are, now: the stacks of all that run on this machine,\n"
    "merged from the outermost function on. Behind each function stand how many are in it, and\n"
    "which: ranks, or with replicas rank.slot. Each process stands still while it is read, with\n"
    "eu-stack (elfutils) or gdb. Exit status 1 when no stack could be read.\n";

static const char inject_help[] =
    "hale inject kill [JOB] --rank R [--slot S] [--after TIME | --at-call FUNCTION:COUNT] "
    "[--signal SIG]\n"
    "\n"
    "Lets a rank of a running job die: now, after a while, or when it calls an MPI function for\n"
    "the COUNTth time from now. R may be 'any'.\n"
    "\n"
    "hale inject flip [JOB] --rank R [--slot S] [--where memory|message|result] [--after TIME]\n"
    "[--count N] [--every K]\n"
    "hale inject flip [JOB] --node NODE --where message|result [--after TIME] [--count N] [--every "
    "K]\n"
    "\n"
    "Changes bits of a rank, as particles do: N of them in its data and heap, or one in each of N\n"
    "messages, in a job with replicas or audits, in every Kth one: as they leave (message), or as "
    "if "
    "the\n"
    "program had computed them wrongly (result). With --node in all processes of that node, now "
    "and\n"
    "later.\n"
    "\n"
    "hale inject due [JOB] --task-prob P [--seed N] [--at end|random|page|copy] [--times K]\n"
    "\n"
    "Pretends memory errors in that share of the tasks that begin from now on, in a running job\n"
    "with --tasks; P 0 ends it.\n"
    "\n"
    "hale inject ecc PID [--epoch N] [--times N]\n"
    "\n"
    "Pretends errors in device memory to a process under hale run --opencl: when it closes epoch\n"
    "N, or at its next check when that is past, and for as many checks in a row as --times says\n"
    "(two: it moves to another device).\n";

static const char image_help[] =
    "hale image show [--json] FILE     what is in the image of a process\n"
    "hale image verify FILE            read all of it and check every checksum; exit status 1\n"
    "                                  when it is damaged\n";

static const char campaign_help[] =
    "hale campaign [options] [--] program [arguments]\n"
    "\n"
    "Runs a program many times, flips bits in its data meanwhile, and counts per variable what "
    "became\n"
    "of them: corrected, harmless, wrong (a wrong result, and nobody said so), reported, crashed.\n"
    "Programs with protected regions strike the variables that they protect; others are struck\n"
    "from outside. A result is right when it is that of a run without faults.\n"
    "\n"
    "  --rate 1/25s           faults in a time, at exponentially distributed moments\n"
    "  --faults N             or N faults in each run, at any moment (1)\n"
    "  --runs N               so many runs (100)\n"
    "  --seed N               another series of faults (1)\n"
    "  --output FILE          the result is also in this file, which the program writes\n"
    "  --judge COMMAND        says by its status whether a result is right; what the program\n"
    "                         printed is in the file $HALE_CAMPAIGN_OUT\n"
    "  --outside              stop the process and flip bits in global variables, [heap] and\n"
    "                         [anonymous] memory (ptrace)\n"
    "  --data a,b             only in these variables; [heap]: the heap, [anonymous]: large "
    "blocks\n"
    "  --limit TIME           a run that takes longer hangs (ten times the program's time)\n"
    "  --plot FILE            a picture, .png or .svg\n"
    "  --json                 for programs\n"
    "\n"
    "Exit status: 0; 3 when a run ended with a wrong result that nobody reported.\n";

static const char advise_help[] =
    "hale advise [JOB | --profile FILE | --report FILE] [options]\n"
    "\n"
    "Says which protection costs a program least on a machine: from what a running job (JOB may "
    "be\n"
    "left out when there is one), or a run before (hale run --profile FILE, --report FILE), has\n"
    "measured. Prints the options of hale run for each, the best first, and says which of them "
    "hale\n"
    "can't run yet.\n"
    "\n"
    "  --nodes N              the program shall run on N nodes (1)\n"
    "  --mttf TIME            mean time to failure of a node (50y); weibull:shape=0.7,mttf=50y\n"
    "  --hours H              time of the program without failures and protection (256)\n"
    "  --node-power W         of a node at work (200W)\n"
    "  --idle-power 50%       the part of that which a node draws when it idles\n"
    "  --power-limit W        of the machine, 20MW for instance: what needs more comes last\n"
    "  --ckpt-cost TIME, --restart-cost TIME\n"
    "                         instead of what was measured\n"
    "  --coverage 86% [--task-waste 1%]\n"
    "                         share of failures that the re-execution of tasks mends, and what it\n"
    "                         costs; without it that scheme is left out\n"
    "  --by time|energy       what counts (time)\n"
    "  --simulate RUNS        play each scheme out so often, too: how much runs vary\n"
    "  --json                 for programs\n";

static const char cp_help[] =
    "hale cp [options] FILE NODE:PATH\n"
    "hale cp [options] NODE:PATH FILE\n"
    "\n"
    "Copies a file to or from a node on which `hale device serve` runs. The copy appears under "
    "its\n"
    "name when it is whole and its hashes agree; otherwise what was there before stays. PATH is\n"
    "below the daemon's --root. NODE is a name in HALE_DEVICES (NAME=HOST:PORT,…), HOST:PORT or\n"
    "HOST. With HALE_DEVICE_KEY=FILE both sides have the key that is in FILE.\n"
    "\n"
    "  --streams N            connections side by side, 1 to 16 (2)\n"
    "  --sync                 end when the copy is on the disk\n"
    "\n"
    "Ends with 0, with 1 after a sentence if the file was not copied, with 64 for wrong options.\n";

static const char device_help[] =
    "hale device serve [options]\n"
    "\n"
    "Serves this node to programs until it gets SIGTERM: its cores and memory as devices\n"
    "(hale_offload.h), its OpenCL devices (HALE_OFFLOAD=1 hale run --opencl), its files\n"
    "(hale/rio.h, `hale cp`). Callers must have the key of\n"
    "HALE_DEVICE_KEY (a file, by default ~/.local/state/hale/device.key, which is made when it is\n"
    "missing); what they send is not encrypted. Whoever has the key can run code here as you.\n"
    "\n"
    "  --devices N            parts of this node that are given out, 0 to 64 (1); the cores that\n"
    "                         the daemon may use are divided among them\n"
    "  --memory SIZE          of each, for buffers of all its processes (1G)\n"
    "  --root DIR             folder of the files (.); no file outside can be reached\n"
    "  --listen ADDRESS:PORT  where to listen (127.0.0.1:7420); port 0: any\n"
    "  --verbose              say why callers are turned away\n";

static const char swap_help[] =
    "hale swap out PID [--dir DIR]\n"
    "hale swap in PID DEVICE\n"
    "\n"
    "The device processes of a program (hale_offload.h) leave their devices: their state goes to\n"
    "DIR (a folder in TMPDIR or /tmp), on the node of the program. Calls on them wait. Later they\n"
    "come back, to the same device or another one, and go on where they were.\n"
    "\n"
    "  --dir DIR              folder of the snapshots\n"
    "\n"
    "Ends with 0, with 1 after a sentence if one of them stays where it is, with 64 for wrong\n"
    "arguments.\n";

static const char offload_help[] =
    "hale offload migrate PID DEVICE\n"
    "hale offload list PID\n"
    "\n"
    "The device processes of a program go to another device while it runs; or are listed.\n"
    "Ends as hale swap does.\n";

static const char cc_help[] =
    "hale cc [options of the compiler] file.c …\n"
    "\n"
    "Compiles and links a C program for the MPI standard's ABI: it runs under `hale run`, and "
    "with\n"
    "every other MPI that has libmpi_abi.so.1. All words go to the compiler, which HALE_CC names "
    "(cc).\n"
    "hale-mpicc is the same as one word, for CMake (-D MPI_C_COMPILER=hale-mpicc) and configure.\n"
    "\n"
    "  -show                  print what would be called, as MPICH's wrapper\n"
    "  -showme:compile, -showme:link\n"
    "                         print the flags alone, as Open MPI's\n";

static const char cxx_help[] =
    "hale cxx [options of the compiler] file.cc …\n"
    "\n"
    "Compiles and links a C++ program for the MPI standard's ABI: it runs under `hale run`, and "
    "with\n"
    "every other MPI that has libmpi_abi.so.1. All words go to the compiler, which HALE_CXX names "
    "(c++).\n"
    "hale-mpicxx is the same as one word, for CMake (-D MPI_CXX_COMPILER=hale-mpicxx) and "
    "configure.\n"
    "\n"
    "  -show                  print what would be called, as MPICH's wrapper\n"
    "  -showme:compile, -showme:link\n"
    "                         print the flags alone, as Open MPI's\n";

static const char f90_help[] =
    "hale f90\n"
    "\n"
    "There is no Fortran library for the MPI standard's ABI yet: compile Fortran programs with\n"
    "mpif90.openmpi or mpif90.mpich, and `hale run` takes them as they are. Ends with 64.\n";

static const struct {
	const char *name, *text;
} helps[] = {{"monitor", cli_monitor_help},
	     {"rules", cli_rules_help},
	     {"events", cli_events_help},
	     {"backplane", cli_backplane_help},
	     {"run", run_help},
	     {"restart", restart_help},
	     {"nodes", nodes_help},
	     {"agent", agent_help},
	     {"migrate", migrate_help},
	     {"replicate", replicate_help},
	     {"clone", clone_help},
	     {"attach", attach_help},
	     {"ckpt", ckpt_help},
	     {"metrics", metrics_help},
	     {"ps", ps_help},
	     {"stack", stack_help},
	     {"top", top_help},
	     {"web", web_help},
	     {"report", report_help},
	     {"inject", inject_help},
	     {"image", image_help},
	     {"advise", advise_help},
	     {"campaign", campaign_help},
	     {"sim", cli_sim_help},
	     {"model", cli_model_help},
	     {"cp", cp_help},
	     {"device", device_help},
	     {"swap", swap_help},
	     {"offload", offload_help},
	     {"cc", cc_help},
	     {"cxx", cxx_help},
	     {"f90", f90_help},
	     {"complete", cli_complete_help}};

const char *cli_help_name(size_t i)
{
	return i < ARRAY_LEN(helps) ? helps[i].name : NULL;
}

const char *cli_help_text(const char *command)
{
	for (size_t i = 0; i < ARRAY_LEN(helps); i++)
		if (strcmp(command, helps[i].name) == 0)
			return helps[i].text;
	return NULL;
}

const char *cli_help_about(const char *command, char about[96])
{
	char begin[64];
	const char *line, *at, *end;

	snprintf(begin, sizeof(begin), "\n  hale %s ", command);
	about[0] = '\0';
	line = strstr(overview, begin);
	if (!line)
		return about;
	at = line + strlen(begin);
	end = at + strcspn(at, "\n");
	for (; at < end && strncmp(at, "  ", 2) != 0; at++)
		;
	if (at >= end) /* on the next line */
		end = at + 1 + strcspn(at + 1, "\n");
	at += strspn(at, "\n ");
	snprintf(about, 96, "%.*s", (int)(end - at), at);
	return about;
}

int cli_help(const char *command)
{
	if (!command) {
		fputs(overview, stdout);
		return 0;
	}
	if (cli_help_text(command)) {
		fputs(cli_help_text(command), stdout);
		return 0;
	}
	log_warn("'%s' is no command of hale; `hale help` lists them", command);
	return EXIT_USAGE;
}
