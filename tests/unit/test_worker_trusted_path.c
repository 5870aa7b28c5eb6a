/* SPDX-License-Identifier: BSD-2-Clause */
/* Which paths npuscope-device-worker trusts. Most of it needs root. */
#include "worker/worker.h"
#include "worker_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static void put_link(const char *name, const char *target)
{
	assert_int_equal(symlink(target, worker_child_in_dir(name)), 0);
}

static const struct worker_trust root_alone;

static bool trusted(const char *name)
{
	return worker_path_trusted(worker_child_in_dir(name), &root_alone);
}

static bool trusted_by(const char *name, struct worker_trust trust)
{
	return worker_path_trusted(worker_child_in_dir(name), &trust);
}

static void paths_that_exist(void **state)
{
	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("plain", 0, 0, 0755);
	assert_true(trusted("plain/f"));
	assert_true(trusted("plain"));
	assert_true(worker_path_trusted("/", &root_alone));
	assert_false(trusted("missing"));
	assert_false(trusted("missing/f"));
	assert_false(trusted("plain/f/f"));
	assert_int_equal(chdir(worker_child_in_dir(".")), 0);
	assert_false(worker_path_trusted("plain/f", &root_alone));
	assert_false(worker_path_trusted("./plain/f", &root_alone));
	assert_false(worker_path_trusted("", &root_alone));
	assert_int_equal(chdir("/"), 0);
}

static void paths_that_others_write(void **state)
{
	static const struct {
		const char *file, *dir;
		mode_t mode;
	} others[] = { { "file-666", "dir-777", 0777 },
		       { "file-646", "dir-757", 0757 },
		       { "file-664", "dir-775", 0775 },
		       { "file-222", "dir-333", 0333 } };

	(void)state;
	worker_child_need_dir(__func__);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		char file[64];

		PUT_FILE(others[i].file, 0, 0, others[i].mode & 0666);
		PUT_DIR(others[i].dir, 0, 0, others[i].mode);
		snprintf(file, sizeof(file), "%s/f", others[i].dir);
		assert_false(trusted(others[i].file));
		assert_false(trusted(others[i].dir));
		assert_false(trusted(file));
	}
	PUT_DIR("dir-700", 0, 0, 0700);
	assert_true(trusted("dir-700/f"));
	/* of who may write it alone, it does not matter that he cannot now */
	PUT_FILE("file-444", 0, 0, 0444);
	assert_true(trusted("file-444"));
}

static void owners_of_paths(void **state)
{
	(void)state;
	worker_child_need_dir(__func__);
	PUT_FILE("of-nobody", NOBODY, 0, 0644);
	PUT_DIR("dir-of-nobody", NOBODY, 0, 0755);
	PUT_DIR("writable-of-nobody", NOBODY, 0, 0757);
	assert_false(trusted("of-nobody"));
	assert_false(trusted("dir-of-nobody"));
	assert_false(trusted("dir-of-nobody/f"));
	for (int i = 0; i < 3; i++) {
		struct worker_trust nobody = { 0 }, other = { 0 };

		nobody.owners[i] = NOBODY;
		other.owners[i] = OTHER;
		assert_true(trusted_by("of-nobody", nobody));
		assert_true(trusted_by("dir-of-nobody/f", nobody));
		assert_false(trusted_by("writable-of-nobody/f", nobody));
		assert_false(trusted_by("of-nobody", other));
		assert_false(trusted_by("dir-of-nobody/f", other));
		assert_true(trusted_by("dir-of-nobody/../of-nobody", nobody)); /* root's are trusted, too */
	}
}

static void groups_of_paths(void **state)
{
	const struct worker_trust nogroup = { .by_group = true, .group = NOBODY };
	const struct worker_trust other = { .by_group = true, .group = OTHER };
	const struct worker_trust of_root = { .by_group = true, .group = 0 }, not_by = { .group = NOBODY };

	(void)state;
	worker_child_need_dir(__func__);
	PUT_FILE("group-664", 0, NOBODY, 0664);
	PUT_FILE("group-666", 0, NOBODY, 0666);
	PUT_FILE("root-664", 0, 0, 0664);
	PUT_DIR("group-775", 0, NOBODY, 0775);
	assert_false(trusted("group-664"));
	assert_true(trusted_by("group-664", nogroup));
	assert_true(trusted_by("group-775/f", nogroup));
	assert_false(trusted_by("group-664", other));
	assert_false(trusted_by("group-775/f", other));
	assert_false(trusted_by("group-666", nogroup));
	assert_false(trusted_by("root-664", nogroup));
	assert_false(trusted("root-664"));
	assert_true(trusted_by("root-664", of_root));
	assert_false(trusted_by("group-664", of_root));
	assert_false(trusted_by("group-664", not_by));
	assert_false(trusted_by("group-775/f", not_by));
}

static void links_are_followed(void **state)
{
	char path[PATH_MAX];

	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("target", 0, 0, 0755);
	PUT_DIR("open", 0, 0, 0777);
	PUT_DIR("beside", 0, 0, 0755);
	PUT_DIR("beside/below", 0, 0, 0755);
	PUT_FILE("beside/g", 0, 0, 0644);
	put_link("relative", "target/f");
	put_link("absolute", worker_child_in_dir("target/f"));
	put_link("to-dir", "target");
	put_link("target/up", "../beside/g");
	put_link("to-below", "beside/below");
	put_link("dangling", "nothing");
	put_link("dangling-absolute", "/nonexistent/nothing");
	put_link("to-open", "open/f");
	put_link("to-open-absolute", worker_child_in_dir("open/f"));
	put_link("to-open-dir", "open");
	put_link("through-open", "open/../target/f");
	put_link("of-nobody-link", "target/f");
	assert_int_equal(lchown(worker_child_in_dir("of-nobody-link"), NOBODY, NOBODY), 0);
	put_link("to-nobodys-link", "of-nobody-link");
	assert_true(trusted("relative"));
	assert_true(trusted("absolute"));
	assert_true(trusted("to-dir"));
	assert_true(trusted("to-dir/f"));
	assert_true(trusted("target/up"));
	assert_true(trusted("to-dir/up"));
	assert_false(trusted("dangling"));
	assert_false(trusted("dangling-absolute"));
	assert_false(trusted("to-dir/missing"));
	assert_false(trusted("to-open"));
	assert_false(trusted("to-open-absolute"));
	assert_false(trusted("to-open-dir"));
	assert_false(trusted("to-open-dir/f"));
	assert_false(trusted("through-open"));
	assert_false(trusted("of-nobody-link"));
	assert_false(trusted("to-nobodys-link"));
	assert_true(trusted_by("to-nobodys-link", (struct worker_trust){ .owners = { NOBODY } }));
	/* `..` is the parent of where a link leads, not of where it stands */
	assert_true(trusted("to-below/../g"));
	assert_false(trusted("to-below/../target/f"));
	snprintf(path, sizeof(path), "../../../../..%s", worker_child_in_dir("target/f"));
	put_link("over-the-root", path);
	assert_true(trusted("over-the-root"));
}

/* As the kernel, which opens a path with 40 of them, and none with 41. */
static void links_in_a_row(void **state)
{
	char name[32], target[32];

	(void)state;
	worker_child_need_dir(__func__);
	put_link("self", "self");
	put_link("ping", "pong");
	put_link("pong", "ping");
	put_link("below-itself", "below-itself/x");
	assert_false(trusted("self"));
	assert_false(trusted("ping"));
	assert_false(trusted("below-itself"));
	PUT_FILE("chain-0", 0, 0, 0644);
	for (int i = 1; i <= 41; i++) {
		int fd;

		snprintf(name, sizeof(name), "chain-%d", i);
		snprintf(target, sizeof(target), "chain-%d", i - 1);
		put_link(name, target);
		fd = open(worker_child_in_dir(name), O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		assert_int_equal(trusted(name), fd >= 0);
		assert_int_equal(fd >= 0, i <= 40);
	}
}

static void dots_and_slashes(void **state)
{
	char path[PATH_MAX];

	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("dots", 0, 0, 0755);
	PUT_DIR("dots/open", 0, 0, 0777);
	PUT_DIR("dots/...", 0, 0, 0755);
	PUT_FILE("dots/..f", 0, 0, 0644);
	PUT_FILE("dots/.f", 0, 0, 0644);
	assert_true(trusted("dots/./f"));
	assert_true(trusted("./dots/././f"));
	assert_true(trusted("dots//f"));
	assert_true(trusted("//dots///f"));
	assert_true(trusted("dots/"));
	assert_true(trusted("dots/."));
	assert_true(trusted("dots/.."));
	assert_true(trusted("dots/../dots/f"));
	assert_true(trusted("dots/./../dots/f"));
	assert_true(trusted("dots/.../f"));
	assert_true(trusted("dots/..f"));
	assert_true(trusted("dots/.f"));
	assert_false(trusted("dots/../f"));
	assert_false(trusted("dots/open/../f")); /* a file there may be a link when it is opened */
	assert_false(trusted("dots/missing/../f"));
	snprintf(path, sizeof(path), "/../..//%s", worker_child_in_dir("dots/f"));
	assert_true(worker_path_trusted(path, &root_alone));
	assert_true(worker_path_trusted("/..", &root_alone));
	assert_true(worker_path_trusted("//", &root_alone));
}

static void sticky_directories(void **state)
{
	const struct worker_trust sticky = { .sticky = true };

	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("sticky", 0, 0, 01777);
	PUT_FILE("sticky/of-nobody", NOBODY, 0, 0644);
	PUT_DIR("sticky-of-nobody", NOBODY, 0, 01777);
	PUT_DIR("sticky-group", 0, NOBODY, 01775);
	PUT_DIR("not-sticky", 0, 0, 0777);
	PUT_FILE("sticky-file", 0, 0, 01666);
	put_link("sticky/link", "f");
	put_link("sticky/nobodys-link", "f");
	assert_int_equal(lchown(worker_child_in_dir("sticky/nobodys-link"), NOBODY, NOBODY), 0);
	assert_false(trusted("sticky/f"));
	assert_false(trusted("sticky/link"));
	assert_false(trusted("sticky-group/f"));
	assert_true(trusted_by("sticky/f", sticky));
	assert_true(trusted_by("sticky/link", sticky));
	assert_true(trusted_by("sticky-group/f", sticky));
	/* of a directory to be searched, any file may be taken */
	PUT_DIR("sticky/below", 0, 0, 0755);
	put_link("to-sticky", "sticky");
	assert_true(trusted_by("sticky/below", sticky));
	assert_false(trusted_by("sticky", sticky));
	assert_false(trusted_by("sticky/", sticky));
	assert_false(trusted_by("sticky/.", sticky));
	assert_false(trusted_by("sticky/below/..", sticky));
	assert_false(trusted_by("to-sticky", sticky));
	assert_true(trusted_by("to-sticky/f", sticky));
	assert_false(trusted_by("sticky/of-nobody", sticky)); /* anybody can make that */
	assert_false(trusted_by("sticky/nobodys-link", sticky));
	assert_false(trusted_by("sticky-of-nobody/f", sticky)); /* he may remove each file of it */
	assert_false(trusted_by("not-sticky/f", sticky));
	assert_false(trusted_by("sticky-file", sticky));
	assert_true(trusted_by("sticky-of-nobody/f",
			       (struct worker_trust){ .owners = { NOBODY }, .sticky = true }));
}

/* LEN characters that lead to NAME: with more slashes than it needs. */
static char *long_path(const char *name, size_t len)
{
	static char path[2 * PATH_MAX];
	const char *plain = worker_child_in_dir(name);
	size_t fill = len - strlen(plain);

	memset(path, '/', fill);
	snprintf(path + fill, sizeof(path) - fill, "%s", plain);
	return path;
}

static void long_paths(void **state)
{
	char name[NAME_MAX + 2], target[PATH_MAX];

	(void)state;
	worker_child_need_dir(__func__);
	PUT_DIR("long", 0, 0, 0755);
	assert_true(worker_path_trusted(long_path("long/f", PATH_MAX - 1), &root_alone));
	assert_false(worker_path_trusted(long_path("long/f", PATH_MAX), &root_alone));
	assert_false(worker_path_trusted(long_path("long/f", PATH_MAX + 1), &root_alone));
	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	PUT_FILE(name, 0, 0, 0644);
	assert_true(trusted(name));
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = '\0';
	assert_false(trusted(name));
	/* a link of nearly that length, and as much behind it: fits nowhere, and is no overflow */
	snprintf(target, sizeof(target), "%s", long_path("long", PATH_MAX - 1));
	put_link("long-link", target);
	assert_true(trusted("long-link"));
	assert_false(worker_path_trusted(long_path("long-link/f", PATH_MAX - 1), &root_alone));
	assert_false(trusted("long-link/f/././././."));
}

/* Opening one of those may wait for ever, or do something. */
static void paths_to_no_file(void **state)
{
	const struct sockaddr_un nowhere = { .sun_family = AF_UNIX };
	struct sockaddr_un at = nowhere;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	worker_child_need_dir(__func__);
	assert_int_equal(mkfifo(worker_child_in_dir("fifo"), 0600), 0);
	put_link("to-fifo", "fifo");
	assert_false(trusted("fifo"));
	assert_false(trusted("to-fifo"));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", worker_child_in_dir("socket"));
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	assert_int_equal(chmod(at.sun_path, 0600), 0);
	assert_false(trusted("socket"));
	if (mknod(worker_child_in_dir("null"), S_IFCHR | 0600, makedev(1, 3)) == 0) {
		put_link("to-null", "null");
		assert_false(trusted("null"));
		assert_false(trusted("to-null"));
	} else {
		printf("%s: no device node can be made here: %s\n", __func__, strerror(errno));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_that_exist),   cmocka_unit_test(paths_that_others_write),
		cmocka_unit_test(owners_of_paths),    cmocka_unit_test(groups_of_paths),
		cmocka_unit_test(links_are_followed), cmocka_unit_test(links_in_a_row),
		cmocka_unit_test(dots_and_slashes),   cmocka_unit_test(sticky_directories),
		cmocka_unit_test(long_paths),	      cmocka_unit_test(paths_to_no_file),
	};

	return cmocka_run_group_tests(tests, worker_child_setup, worker_child_teardown);
}
