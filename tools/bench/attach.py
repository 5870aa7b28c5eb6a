# SPDX-License-Identifier: BSD-2-Clause
"""How long npuscope takes to attach thousands of probes to a running job, and to detach them."""
import json
import shutil
import subprocess
from pathlib import Path

# The requested number of operators, each with its two phases: they share no functions, so each has a probe.
LIBRARY = """
static volatile int sink;
#define OPERATOR(n) \\
	int aclnnOp##n##GetWorkspaceSize(void) { return sink++; } \\
	int aclnnOp##n(void *a, unsigned long b, void *c, void *d) { sink += 2; return sink; }
"""
JOB = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL))
			return 1;
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}
"""


def build(out, probes):
    """(job, libraries) in the directory `out`."""
    (out / "job.c").write_text(JOB)
    (out / "ops.c").write_text(LIBRARY + "".join(f"OPERATOR({i})\n" for i in range(probes)))
    (out / "base.c").write_text("int aclnnBase(void) { return 1; }\n")
    libraries = []
    for source, soname in (("ops.c", "libopapi_math.so"), ("base.c", "libnnopbase.so")):
        libraries.append(out / soname)
        subprocess.run(["gcc", "-O1", "-w", "-fPIC", "-shared", out / source, "-o", libraries[-1]], check=True)
    subprocess.run(["gcc", "-O1", out / "job.c", "-o", out / "job", "-ldl"], check=True)
    return out / "job", libraries


def measure(npuscope, out, counts, rounds):
    """Yields (probes, best ms to attach, best ms to detach)."""
    for probes in counts:
        folder = Path(out) / f"attach_{probes}"
        folder.mkdir(parents=True, exist_ok=True)
        job, libraries = build(folder, probes)
        costs = []
        for _ in range(rounds):
            with subprocess.Popen([job, *libraries], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True) as running:
                running.stdout.readline()
                done = subprocess.run([npuscope, "record", "-q", "-p", str(running.pid), "-d", "200ms", "-o", folder,
                                       "--export", "none", "--host-sys", "none"],
                                      capture_output=True, text=True, check=False)
                running.communicate("\n")
            session = json.loads((Path(done.stdout.split()[0]) / "session.json").read_text())
            if len(session["probes"]) != probes:
                raise RuntimeError(f"{len(session['probes'])} probes instead of {probes}: {done.stderr[-500:]}")
            costs.append(session["cost"])
        yield probes, min(c["attach_ms"] for c in costs), min(c["detach_ms"] for c in costs)
        shutil.rmtree(folder)
