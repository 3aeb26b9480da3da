#include "unit/fabric/fabric_unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fabric/shm_priv.h"

static char dir[] = "/tmp/fabrail-t_shm-XXXXXX";

static void setup(void)
{
	unit_log_clear();
	unsetenv("FI_SHM_DISABLE_CMA");
	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	fr_shm_set_dir(dir);
}

static void teardown(void)
{
	char path[512];
	DIR *d = opendir(dir);
	const struct dirent *entry;

	ck_assert_ptr_nonnull(d);
	while ((entry = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		unlink(path);
	}
	closedir(d);
	ck_assert_int_eq(rmdir(dir), 0);
}

static const char *base_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

START_TEST(a_name_says_whose_it_is)
{
	char path[FR_SHM_PATH_MAX];
	struct fr_shm_id id;

	fr_shm_path(0x0123456789abcdef, FR_SHM_RAIL + 3, path);
	ck_assert_int_eq(strncmp(path, dir, strlen(dir)), 0);
	ck_assert(fr_shm_parse(base_of(path), &id));
	ck_assert_int_eq(id.pid, getpid());
	ck_assert(id.set_id == 0x0123456789abcdef);
	ck_assert_uint_eq(id.space, fr_shm_space());
	ck_assert_int_eq(id.kind, '3');
	/* The slot behind the only name of a short handle must have room. */
	ck_assert_uint_le(strlen(base_of(path)) + 1, 45);
}
END_TEST

START_TEST(a_process_that_copies_by_no_pid_says_so)
{
	ck_assert_uint_ne(fr_shm_space(), 0);
	setenv("FI_SHM_DISABLE_CMA", "yes", 1);
	ck_assert_uint_eq(fr_shm_space(), 0);
	setenv("FI_SHM_DISABLE_CMA", "0", 1);
	ck_assert_uint_ne(fr_shm_space(), 0);
}
END_TEST

/* In a container of its own PID namespace the rule is the other one. */
START_TEST(outside_of_a_container_memory_is_copied_by_pid)
{
	fr_shm_tame();
	if (fr_shm_space() == 0xeffffffcu) {
		ck_assert_ptr_null(getenv("FI_SHM_DISABLE_CMA"));
	} else {
		ck_assert_str_eq(getenv("FI_SHM_DISABLE_CMA"), "1");
	}
	setenv("FI_SHM_DISABLE_CMA", "0", 1);
	fr_shm_tame();
	ck_assert_str_eq(getenv("FI_SHM_DISABLE_CMA"), "0");
}
END_TEST

static const char *const strange[] = {
	"",
	"fabrail-",
	"fabrail-1",
	"fabrail--0123456789abcdef-00000001-0",
	"fabrail-0-0123456789abcdef-00000001-0",
	"fabrail--1-0123456789abcdef-00000001-0",
	"fabrail-4194305-0123456789abcdef-00000001-0",
	"fabrail-99999999999999999999-0123456789abcdef-00000001-0",
	"fabrail-1-0123456789abcde-00000001-0",
	"fabrail-1-0123456789ABCDEF-00000001-0",
	"fabrail-1-0123456789abcdef0-00000001-0",
	"fabrail-1-0123456789abcdef-0000001-0",
	"fabrail-1-0123456789abcdef-00000001-",
	"fabrail-1-0123456789abcdef-00000001-8",
	"fabrail-1-0123456789abcdef-00000001-i",
	"fabrail-1-0123456789abcdef-00000001-00",
	"fabrail-1-0123456789abcdef-00000001-/",
	"Fabrail-1-0123456789abcdef-00000001-0",
	"../../etc/fabrail-1-0123456789abcdef-00000001-0",
	"1234:0:0",
};

START_TEST(a_strange_name_is_none_of_ours)
{
	struct fr_shm_id id;
	char path[FR_SHM_PATH_MAX];
	struct fr_name name = {.len = (uint16_t)(strlen(strange[_i]) + 1)};

	ck_assert_msg(!fr_shm_parse(strange[_i], &id), "%s", strange[_i]);
	snprintf((char *)name.bytes, sizeof(name.bytes), "%s", strange[_i]);
	ck_assert(!fr_shm_knock_path(&name, path));
}
END_TEST

static struct fr_name name_of(const char *text)
{
	struct fr_name name = {.len = (uint16_t)(strlen(text) + 1)};

	snprintf((char *)name.bytes, sizeof(name.bytes), "%s", text);
	return name;
}

START_TEST(the_knock_port_lies_beside_the_endpoint)
{
	struct fr_name name = name_of("fabrail-77-0123456789abcdef-0000000a-5");
	char path[FR_SHM_PATH_MAX];

	ck_assert(fr_shm_knock_path(&name, path));
	ck_assert_str_eq(base_of(path),
			 "fabrail-77-0123456789abcdef-0000000a-k");
	name.len--;
	ck_assert(!fr_shm_knock_path(&name, path));
	name.len += 2;
	ck_assert(!fr_shm_knock_path(&name, path));
	/* Only an endpoint can be a peer. */
	name = name_of("fabrail-77-0123456789abcdef-0000000a-k");
	ck_assert(!fr_shm_knock_path(&name, path));
	name = name_of("fabrail-77-0123456789abcdef-0000000a-a");
	ck_assert(!fr_shm_knock_path(&name, path));
}
END_TEST

static void path_to(const char *name, char *path)
{
	snprintf(path, 256, "%s/%s", dir, name);
}

static void make_file(const char *name)
{
	char path[256];
	int fd;

	path_to(name, path);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* Return: the socket, or -1 when its owner has died. */
static int make_socket(const char *name, bool lives)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char path[256];

	path_to(name, path);
	ck_assert_uint_lt(strlen(path), sizeof(addr.sun_path));
	memcpy(addr.sun_path, path, strlen(path));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)),
			 0);
	if (lives) {
		ck_assert_int_eq(listen(fd, 1), 0);
		return fd;
	}
	close(fd);
	return -1;
}

static bool is_there(const char *name)
{
	struct stat st;
	char path[256];

	path_to(name, path);
	return lstat(path, &st) == 0;
}

#define DEAD "fabrail-7-00000000000000dd-00000001-"
#define LIVE "fabrail-7-00000000000000aa-00000001-"
#define NOBODY "fabrail-7-00000000000000bb-00000001-"
#define YOUNG "fabrail-7-00000000000000ee-00000001-t"
#define OLD "fabrail-7-00000000000000ff-00000001-t"

START_TEST(what_the_dead_left_is_swept_and_nothing_else)
{
	const struct timespec old[2] = {{.tv_sec = time(NULL) - 3600},
					{.tv_sec = time(NULL) - 3600}};
	char path[256];
	int fd;

	make_file(DEAD "0");
	make_file(DEAD "7");
	make_file(DEAD "a");
	make_socket(DEAD "k", false);
	make_file(LIVE "0");
	make_file(LIVE "a");
	fd = make_socket(LIVE "k", true);
	make_file(NOBODY "0"); /* of one that has no knock port */
	make_socket(YOUNG, false);
	make_socket(OLD, false);
	path_to(OLD, path);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	make_file("1234:0:0");
	make_file("nccl-AbCdEf");
	fr_shm_sweep();
	ck_assert(!is_there(DEAD "0") && !is_there(DEAD "7") &&
		  !is_there(DEAD "a") && !is_there(DEAD "k"));
	ck_assert(is_there(LIVE "0") && is_there(LIVE "a") &&
		  is_there(LIVE "k"));
	ck_assert(is_there(NOBODY "0") && is_there(YOUNG) && !is_there(OLD));
	ck_assert(is_there("1234:0:0") && is_there("nccl-AbCdEf"));
	unit_assert_said(FR_LOG_INFO, "removed 5 files");
	unit_assert_quiet();
	close(fd);
}
END_TEST

/* A name alone proves nothing: it must be a socket that nobody answers. */
START_TEST(a_file_that_is_named_like_a_socket_stays)
{
	make_file(DEAD "k");
	make_file(DEAD "0");
	fr_shm_sweep();
	ck_assert(is_there(DEAD "k") && is_there(DEAD "0"));
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_INFO], 0);
}
END_TEST

START_TEST(another_users_files_stay)
{
	char path[256];

	if (geteuid() != 0) {
		return; /* only root can give a file away */
	}
	make_socket(DEAD "k", false);
	make_file(DEAD "0");
	path_to(DEAD "k", path);
	ck_assert_int_eq(lchown(path, 4711, 4711), 0);
	fr_shm_sweep();
	ck_assert(is_there(DEAD "k") && is_there(DEAD "0"));
}
END_TEST

START_TEST(a_directory_that_is_not_there_is_left_to_the_provider)
{
	fr_shm_set_dir("/nowhere/at/all");
	fr_shm_sweep();
	ck_assert(fr_shm_has_room(1, NULL, 0));
	unit_assert_quiet();
	fr_shm_set_dir(NULL);
	ck_assert_str_eq(fr_shm_dir(), "/dev/shm");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("shm");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_name_says_whose_it_is);
	tcase_add_test(t, a_process_that_copies_by_no_pid_says_so);
	tcase_add_test(t, outside_of_a_container_memory_is_copied_by_pid);
	tcase_add_loop_test(t, a_strange_name_is_none_of_ours, 0,
			    (int)FR_ARRAY_LEN(strange));
	tcase_add_test(t, the_knock_port_lies_beside_the_endpoint);
	tcase_add_test(t, what_the_dead_left_is_swept_and_nothing_else);
	tcase_add_test(t, a_file_that_is_named_like_a_socket_stays);
	tcase_add_test(t, another_users_files_stay);
	tcase_add_test(t,
		       a_directory_that_is_not_there_is_left_to_the_provider);
	return unit_run(t, "fabric/shm");
}
