/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs that were measured are believed only if nobody else can have
 * written them, and only where they still hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/version.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/capability.h"
#include "capture/cost_cache.h"

static char top[64];
static const char *const path[] = { "run", "npuscope", NULL };
static struct nps_cost_cache cache = { .top = top, .path = path };
static const struct nps_cost_key key = { "npuscope costs 1\nboot a\nkernel b\n" };
static const struct nps_cost cost = { .call_ns = { 6500, 2500, 21000.5 },
				      .mark_ns = { 5400, 1500, 20000 },
				      .call_program_ns = 700,
				      .mark_program_ns = 300,
				      .syscall_ns = 310.125,
				      .sum_ns = 0,
				      .fault_ns = -1,
				      .switch_ns = 900 };

static const char *name(const char *rest)
{
	static char names[4][128];
	static int next;
	char *at = names[next++ % 4];

	snprintf(at, sizeof(names[0]), "%s/run%s", top, rest);
	return at;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/nps_cost_XXXXXX");
	cache.owner = geteuid();
	umask(022);
	return mkdtemp(top) && !mkdir(name(""), 0755) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

static void put(const char *text, size_t size)
{
	int fd;

	mkdir(name("/npuscope"), 0755);
	unlink(name("/npuscope/costs"));
	fd = open(name("/npuscope/costs"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static int get(void)
{
	struct nps_cost found = { .sum_ns = 77 };
	int err = nps_cost_cache__read(&cache, &key, &found);

	if (err)
		assert_true(found.sum_ns == 77); /* untouched */
	return err;
}

static void what_is_written_is_read(void **state)
{
	struct nps_cost found;
	struct stat st;

	(void)state;
	umask(0); /* not by the umask's grace */
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0); /* again, over the first */
	assert_int_equal(stat(name("/npuscope"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(name("/npuscope/costs"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_not_equal(access(name("/npuscope/costs.new"), F_OK), 0);
	memset(&found, 0x55, sizeof(found));
	assert_int_equal(nps_cost_cache__read(&cache, &key, &found), 0);
	for (int i = 0; i < NPS_PROBE_CLASSES; i++) {
		assert_true(found.call_ns[i] == cost.call_ns[i]);
		assert_true(found.mark_ns[i] == cost.mark_ns[i]);
	}
	assert_true(found.syscall_ns == cost.syscall_ns && found.sum_ns == 0 && found.fault_ns == -1);
	assert_true(found.switch_ns == cost.switch_ns && found.call_program_ns == cost.call_program_ns);
}

static void a_tight_umask_hides_nothing(void **state)
{
	struct stat st;

	(void)state;
	umask(077);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(stat(name("/npuscope"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(name("/npuscope/costs"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void of_something_else(void **state)
{
	struct nps_cost_key other = { "npuscope costs 1\nboot z\nkernel b\n" };
	struct nps_cost found;

	(void)state;
	assert_int_equal(get(), -ENOENT);
	assert_int_equal(nps_cost_cache__write(&cache, &other, &cost), 0);
	assert_int_equal(get(), -ESTALE);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(nps_cost_cache__read(&cache, &other, &found), -ESTALE);
	assert_int_equal(get(), 0);
}

static void put_text(const char *text)
{
	put(text, strlen(text));
}

#define VALUES                                                                                               \
	"call_emulated 1\ncall_nop 1\ncall_stepped 1\nmark_emulated 1\nmark_nop 1\nmark_stepped 1\n"         \
	"call_program 1\nmark_program 1\nsyscall 1\nsum 1\nfault -\n"

static void hostile_contents(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"npuscope costs 2\nboot a\nkernel b\n" VALUES "switch 1\n",
		"npuscope costs 1",
		VALUES "switch", /* what follows is after the key */
		VALUES "switch ",
		VALUES "switch \n",
		VALUES "switch 1", /* cut */
		VALUES "switch 1\n\n",
		VALUES "switch 1\nswitch 1\n",
		VALUES,
		VALUES "switch -1\n",
		VALUES "switch +1\n",
		VALUES "switch 0x1\n",
		VALUES "switch 1.5\n",
		VALUES "switch 1e3\n",
		VALUES "switch nan\n",
		VALUES "switch inf\n",
		VALUES "switch  1\n",
		VALUES "switch 1 \n",
		VALUES "switch 1\r\n",
		VALUES "switch 1000000000001\n",
		VALUES "switch 99999999999999999999999999999999999999999999\n",
		VALUES "stitch 1\n",
		"call_emulated -\n" VALUES "switch 1\n",
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (i < 4)
			snprintf(text, sizeof(text), "%s", bad[i]);
		else
			snprintf(text, sizeof(text), "%s%s", key.text, bad[i]);
		put_text(text);
		if (get() != -EBADMSG)
			fail_msg("taken: %s", text);
	}
	snprintf(text, sizeof(text), "%s%s", key.text, VALUES "switch 1\n");
	put_text(text);
	assert_int_equal(get(), 0);
	put(text, strlen(text) + 1); /* a zero byte at the end */
	assert_int_equal(get(), -EBADMSG);
}

/* A call cannot cost nothing that is known. */
static void unknown_calls(void **state)
{
	char text[1024], *at;

	(void)state;
	snprintf(text, sizeof(text), "%s%s", key.text, VALUES "switch 1\n");
	at = strstr(text, "mark_nop 1");
	at[strlen("mark_nop ")] = '-';
	put_text(text);
	assert_int_equal(get(), -EBADMSG);
}

static void endless(void **state)
{
	static char text[1 << 20];

	(void)state;
	memset(text, '1', sizeof(text));
	memcpy(text, key.text, strlen(key.text));
	put(text, sizeof(text));
	assert_int_equal(get(), -EBADMSG);
}

static void written_by_others(void **state)
{
	(void)state;
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(chmod(name("/npuscope/costs"), 0666), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(chmod(name("/npuscope/costs"), 0664), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(chmod(name("/npuscope/costs"), 0644), 0);
	assert_int_equal(get(), 0);
	/* Who can write a directory can put another file there. */
	assert_int_equal(chmod(name("/npuscope"), 0775), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EPERM);
	assert_int_equal(chmod(name("/npuscope"), 0755), 0);
	assert_int_equal(chmod(name(""), 01777), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EPERM);
	assert_int_equal(chmod(name(""), 0755), 0);
	assert_int_equal(chmod(top, 0777), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EPERM);
	assert_int_equal(chmod(top, 0700), 0);
	assert_int_equal(get(), 0);
}

static void of_another_owner(void **state)
{
	(void)state;
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	cache.owner++; /* everything there is somebody else's */
	assert_int_equal(get(), -EPERM);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EPERM);
	cache.owner--;
	if (geteuid())
		skip();
	assert_int_equal(chown(name("/npuscope/costs"), 65534, 0), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(chown(name("/npuscope/costs"), 0, 0), 0);
	assert_int_equal(chown(name("/npuscope"), 65534, 0), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EPERM);
}

static void links_are_not_followed(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(rename(name("/npuscope/costs"), name("/elsewhere")), 0);
	assert_int_equal(symlink("../elsewhere", name("/npuscope/costs")), 0);
	assert_int_equal(get(), -EPERM);
	/* Where the new file goes there is a link to a file of somebody's. */
	fd = open(name("/victim"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	assert_int_equal(symlink("../victim", name("/npuscope/costs.new")), 0);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(get(), 0);
	fd = open(name("/victim"), O_RDONLY);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	close(fd);
	assert_int_equal(rename(name("/npuscope"), name("/real")), 0);
	assert_int_equal(symlink("real", name("/npuscope")), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EPERM);
}

static void no_files(void **state)
{
	(void)state;
	assert_int_equal(mkdir(name("/npuscope"), 0755), 0);
	assert_int_equal(mkfifo(name("/npuscope/costs"), 0644), 0);
	assert_int_equal(get(), -EPERM); /* and does not wait for a writer */
	assert_int_equal(unlink(name("/npuscope/costs")), 0);
	assert_int_equal(mkdir(name("/npuscope/costs"), 0755), 0);
	assert_int_equal(get(), -EPERM);
	assert_int_equal(rmdir(name("/npuscope/costs")), 0);
	assert_int_equal(rmdir(name("/npuscope")), 0);
	put(key.text, 0); /* makes the directory; then a file of its name */
	assert_int_equal(unlink(name("/npuscope/costs")), 0);
	assert_int_equal(rmdir(name("/npuscope")), 0);
	assert_int_equal(close(open(name("/npuscope"), O_CREAT | O_WRONLY, 0644)), 0);
	assert_int_equal(get(), -EPERM);
}

static void one_writer_at_a_time(void **state)
{
	int fd, dir;

	(void)state;
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	/* What anybody can open anybody can lock. */
	dir = open(name("/npuscope"), O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(dir, LOCK_EX), 0);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	close(dir);
	fd = open(name("/npuscope/costs.new"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), -EBUSY);
	assert_int_equal(get(), 0); /* nobody who reads waits */
	close(fd);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
}

static void this_machine_has_a_key(void **state)
{
	struct nps_capability session = { .uprobe = NPS_UPROBE_SESSION,
					  .cookie = true,
					  .task_storage = true,
					  .btf = true,
					  .ringbuf = true };
	struct nps_capability multi = session;
	struct nps_cost_key a, b;

	(void)state;
	multi.uprobe = NPS_UPROBE_MULTI;
	assert_int_equal(nps_cost_key__fill(&session, &a), 0);
	assert_int_equal(nps_cost_key__fill(&session, &b), 0);
	assert_string_equal(a.text, b.text);
	assert_int_equal(nps_cost_key__fill(&multi, &b), 0);
	assert_string_not_equal(a.text, b.text);
	assert_non_null(strstr(a.text, "\nboot "));
	assert_non_null(strstr(a.text, "\nprocessor "));
	assert_int_equal(a.text[strlen(a.text) - 1], '\n');
}

static void estimates(void **state)
{
	struct nps_cost bare, guest, older, arm;

	(void)state;
	nps_cost__estimate_for(false, "flags\t\t: fpu vme\n", KERNEL_VERSION(6, 18, 0), &bare);
	nps_cost__estimate_for(false, "flags\t\t: fpu hypervisor\n", KERNEL_VERSION(6, 18, 0), &guest);
	nps_cost__estimate_for(false, "flags\t\t: fpu\n", KERNEL_VERSION(6, 12, 0), &older);
	nps_cost__estimate_for(true, "CPU part : 0xd02\n", KERNEL_VERSION(6, 18, 0), &arm);
	assert_true(nps_cost__is_valid(&bare) && nps_cost__is_valid(&guest));
	assert_true(nps_cost__is_valid(&older) && nps_cost__is_valid(&arm));
	assert_true(guest.call_ns[NPS_PROBE_EMULATED] > bare.call_ns[NPS_PROBE_EMULATED]);
	assert_true(bare.call_ns[NPS_PROBE_NOP] < bare.call_ns[NPS_PROBE_EMULATED]);
	/* Which the kernel does not patch into a call before. */
	assert_true(older.call_ns[NPS_PROBE_NOP] == older.call_ns[NPS_PROBE_STEPPED]);
	assert_true(arm.call_ns[NPS_PROBE_NOP] == arm.call_ns[NPS_PROBE_STEPPED]);
	assert_true(bare.mark_ns[NPS_PROBE_STEPPED] < bare.call_ns[NPS_PROBE_STEPPED]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read),
		TEST(a_tight_umask_hides_nothing),
		TEST(of_something_else),
		TEST(hostile_contents),
		TEST(unknown_calls),
		TEST(endless),
		TEST(written_by_others),
		TEST(of_another_owner),
		TEST(links_are_not_followed),
		TEST(no_files),
		TEST(one_writer_at_a_time),
		TEST(this_machine_has_a_key),
		TEST(estimates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
