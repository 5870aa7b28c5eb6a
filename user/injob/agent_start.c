/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes the helper starts in, and when. A process that cannot become an NPU job is not changed:
 * another thread would restrict what it may do (unshare, setns). A process linked with CANN, and Python,
 * which loads CANN later, get the helper when they start. Any other can load CANN with dlopen(3): CANN's
 * runtime then creates threads of its own, so this library interposes pthread_create(3), its only such
 * function, and checks there for CANN.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "agent.h"
#include "agent_start.h"

typedef int create_fn(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

static _Atomic(create_fn *) next_create;
static atomic_bool waits; /* for CANN to be loaded */
/*
 * The process that waits. A forked child does not, because a thread that exists only in its parent may have
 * held the loader's lock, which is then never released. After an exec this library starts again.
 */
static pid_t own_pid;
static atomic_ullong seen; /* objects loaded since the start, at the last check */

/* Has another copy of this library, loaded from elsewhere, started the helper? */
static bool is_there_already(void)
{
	static const char name[] = "/memfd:" NPS_AGENT_NAME;
	char buf[4096 + sizeof(name)];
	size_t kept = 0;
	bool found = false;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && !found && (n = read(fd, buf + kept, 4096)) > 0) {
		n += kept;
		found = memmem(buf, n, name, sizeof(name) - 1) != NULL;
		kept = (size_t)n < sizeof(name) ? (size_t)n : sizeof(name);
		memmove(buf, buf + n - kept, kept);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static bool is_cann(const char *path)
{
	static const char *const libraries[] = { "libascendcl.so", "libacl_rt.so", "libascend_hal.so" };
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (strncmp(base, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

struct search {
	unsigned long long adds; /* objects loaded so far */
	bool found;
};

static int inspect_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	s->adds = info->dlpi_adds; /* the same with each object */
	if (s->adds == atomic_load(&seen))
		return 1;
	s->found = info->dlpi_name && is_cann(info->dlpi_name);
	return s->found;
}

/*
 * Has CANN been loaded since the last call? Without dlopen(3), because the loader's lock can be held by a
 * thread that waits for our caller. This only acquires the lock of the list, as each C++ exception does.
 */
static bool cann_was_loaded(void)
{
	struct search s = { 0 };

	dl_iterate_phdr(inspect_object, &s);
	atomic_store(&seen, s.adds);
	return s.found;
}

static void find_next(void)
{
	void *symbol = dlsym(RTLD_NEXT, "pthread_create");
	create_fn *f;

	memcpy(&f, &symbol, sizeof(f));
	atomic_store(&next_create, f);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
							  void *(*start)(void *), void *arg)
{
	int saved = errno, cancel;

	if (atomic_load(&waits) && getpid() == own_pid) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
				       &cancel); /* the caller does not expect a cancellation point here */
		if (cann_was_loaded() && atomic_exchange(&waits, false) && !is_there_already())
			nps_agent__start();
		pthread_setcancelstate(cancel, NULL);
	}
	if (!atomic_load(&next_create))
		find_next(); /* called before our constructor */
	errno = saved;
	return atomic_load(&next_create) ? atomic_load(&next_create)(thread, attr, start, arg) : EAGAIN;
}

__attribute__((constructor)) static void agent_begin(void)
{
	int saved = errno;

	find_next();
	own_pid = getpid();
	if (!cann_was_loaded() && !dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
		atomic_store(&waits, true);
	else if (!is_there_already())
		nps_agent__start();
	errno = saved;
}
