#include "unit/fabric/fabric_unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fabric/rail_priv.h"
#include "fabric/shm_priv.h"

/* What libfabric 1.17 has at the beginning of an endpoint's file. */
struct header {
	uint8_t version;
	uint8_t pad[3];
	uint32_t pid;
	uint64_t some[2];
	_Atomic uint32_t lock;
	_Atomic uint32_t signal;
	uint64_t more[5];
	uint64_t ring; /* offset of struct ring */
};

/* What peers answer to our posts. */
struct ring {
	uint64_t size;
	uint64_t mask;
	uint64_t read;
	uint64_t written;
	struct {
		uint64_t id;
		_Atomic uint64_t status;
	} place[];
};

#define RING_OFFSET 8192u
#define RING_SIZE 8u
#define WAITS 16u
#define EMPTY 1025u
#define FULL 1026u
#define CUT ((uint64_t)-FI_ECANCELED)

#define UNLOCKED 1u
#define LOCKED 0u
#define PEERS 224u

static char dir[] = "/tmp/fabrail-t_shm_ep-XXXXXX";
static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct header *own;
static struct ring *ring;
static struct fr_rail *rail;

/* The provider's file of an endpoint of set @set. */
static struct header *make_endpoint(uint64_t set, uint8_t version)
{
	char path[FR_SHM_PATH_MAX];
	struct header *header;
	int fd;

	fr_shm_path(set, FR_SHM_RAIL, path);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 16384), 0);
	header = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert(header != MAP_FAILED);
	close(fd);
	header->version = version;
	header->pid = (uint32_t)getpid();
	header->lock = UNLOCKED;
	return header;
}

static void make_ring(struct header *header)
{
	header->ring = RING_OFFSET;
	ring = (struct ring *)(void *)((char *)header + RING_OFFSET);
	ring->size = RING_SIZE;
	ring->mask = RING_SIZE - 1;
}

static struct fr_name name_of(uint64_t set)
{
	char path[FR_SHM_PATH_MAX];
	struct fr_name name = {.len = 0};
	const char *base;

	fr_shm_path(set, FR_SHM_RAIL, path);
	base = strrchr(path, '/') + 1;
	name.len = (uint16_t)(strlen(base) + 1);
	memcpy(name.bytes, base, name.len);
	return name;
}

static struct fr_rail *open_rail(uint64_t set)
{
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct fr_rail *opened;

	attr.set_id = set;
	ck_assert_int_eq(fr_rail_open(&attr, &opened), 0);
	return opened;
}

static void setup(void)
{
	unit_fake_setup();
	unsetenv("FI_SHM_DISABLE_CMA");
	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	fr_shm_set_dir(dir);
	fake_fi.offer[0].addr = NULL;
	fake_fi.offer[1].addr = NULL;
	fabric = unit_fabric("shm");
	own = make_endpoint(1, 4);
	make_ring(own);
	rail = open_rail(1);
}

static unsigned files(bool remove)
{
	char path[512];
	DIR *d = opendir(dir);
	const struct dirent *entry;
	unsigned cnt = 0;

	ck_assert_ptr_nonnull(d);
	while ((entry = readdir(d)) != NULL) {
		cnt += entry->d_name[0] != '.';
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (remove) {
			unlink(path);
		}
	}
	closedir(d);
	return cnt;
}

static void teardown(void)
{
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	files(true);
	ck_assert_int_eq(rmdir(dir), 0);
}

static void nap_ms(unsigned ms)
{
	const struct timespec nap = {.tv_sec = ms / 1000,
				     .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&nap, NULL);
}

START_TEST(an_endpoint_has_the_name_of_its_set)
{
	struct fr_name want = name_of(1);

	ck_assert_uint_eq(fr_rail_name(rail, FR_EP_CTRL)->len, want.len);
	ck_assert_mem_eq(fr_rail_name(rail, FR_EP_CTRL)->bytes, want.bytes,
			 want.len);
	ck_assert_uint_eq(files(false), 2); /* and the page beside it */
	unit_assert_quiet();
}
END_TEST

START_TEST(a_queue_that_a_peer_holds_is_not_read)
{
	struct unit_op op = unit_op();
	char buf[8];
	unsigned reads;

	ck_assert_int_eq(fr_rail_poll(rail), 0);
	reads = fake_fi.reads;
	own->lock = LOCKED;
	ck_assert_int_eq(fr_rail_poll(rail), 0);
	ck_assert_int_eq(fr_rail_recv(rail, buf, sizeof(buf), NULL, &op.op),
			 -EAGAIN);
	ck_assert_uint_eq(fake_fi.reads, reads);
	ck_assert_uint_eq(fake_fi.posts, 0);
	own->lock = UNLOCKED;
	ck_assert_int_eq(fr_rail_poll(rail), 0);
	ck_assert_int_eq(fr_rail_recv(rail, buf, sizeof(buf), NULL, &op.op), 0);
	ck_assert_uint_eq(fake_fi.reads, reads + 1);
}
END_TEST

START_TEST(a_queue_is_taken_from_a_holder_that_has_died)
{
	own->lock = LOCKED;
	fr_rail_poll(rail);
	ck_assert(!fr_rail_is_stuck(rail));
	nap_ms(1100);
	ck_assert(fr_rail_is_stuck(rail));
	fr_rail_poll(rail);
	ck_assert_uint_eq(own->lock, LOCKED); /* nobody is known to be dead */
	fr_rail_peer_gone(rail, 0);
	fr_rail_poll(rail);
	ck_assert_uint_eq(own->lock, UNLOCKED);
	ck_assert(!fr_rail_is_stuck(rail));
	/* A death of before says nothing of who holds it now. */
	own->lock = LOCKED;
	fr_rail_poll(rail);
	nap_ms(1100);
	fr_rail_poll(rail);
	ck_assert_uint_eq(own->lock, LOCKED);
	own->lock = UNLOCKED;
	fr_rail_poll(rail);
	ck_assert(!fr_rail_is_stuck(rail));
	unit_assert_quiet();
}
END_TEST

START_TEST(nothing_is_posted_to_a_queue_that_is_held)
{
	struct header *peer = make_endpoint(2, 4);
	struct fr_name name = name_of(2);
	struct unit_op op = unit_op();
	char buf[8] = "";
	uint64_t addr;

	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), 0);
	peer->lock = LOCKED;
	ck_assert_int_eq(
		fr_rail_send(rail, addr, buf, sizeof(buf), NULL, &op.op),
		-EAGAIN);
	ck_assert_int_eq(fr_rail_write(rail, addr, buf, sizeof(buf), NULL, 0, 1,
				       2, true, &op.op),
			 -EAGAIN);
	ck_assert_uint_eq(fake_fi.posts, 0);
	peer->lock = UNLOCKED;
	ck_assert_int_eq(
		fr_rail_send(rail, addr, buf, sizeof(buf), NULL, &op.op), 0);
	ck_assert_int_eq(fr_rail_write(rail, addr, buf, sizeof(buf), NULL, 0, 1,
				       2, true, &op.op),
			 0);
	ck_assert_uint_eq(fake_fi.posts, 2);
	munmap(peer, 16384);
}
END_TEST

/* Nobody knows what lies where in it. */
START_TEST(the_locks_of_another_version_are_left_alone)
{
	struct header *mine = make_endpoint(5, 5);
	struct header *peer = make_endpoint(2, 4);
	struct fr_rail *other = open_rail(5);
	struct fr_name name = name_of(2);
	struct unit_op op = unit_op();
	char buf[8] = "";
	uint64_t addr;

	ck_assert_int_eq(fr_rail_peer_add(other, &name, &addr), 0);
	mine->lock = LOCKED;
	peer->lock = LOCKED;
	ck_assert_int_eq(
		fr_rail_send(other, addr, buf, sizeof(buf), NULL, &op.op), 0);
	fake_fi.reads = 0;
	fr_rail_poll(other);
	ck_assert_uint_eq(fake_fi.reads, 1);
	fr_rail_close(other);
	munmap(mine, 16384);
	munmap(peer, 16384);
}
END_TEST

/* The provider takes a write to @addr for which it waits. */
static void write_to(uint64_t addr, struct unit_op *op, uint64_t status)
{
	static char buf[8];

	ring->place[ring->written++ % RING_SIZE].status = status;
	ck_assert_int_eq(fr_rail_write(rail, addr, buf, sizeof(buf), NULL, 0, 1,
				       2, true, &op->op),
			 0);
}

static uint64_t add_peer(uint64_t set)
{
	struct fr_name name = name_of(set);
	uint64_t addr;

	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), 0);
	return addr;
}

START_TEST(a_write_to_the_dead_is_answered_for_them)
{
	struct header *a = make_endpoint(2, 4), *b = make_endpoint(3, 4);
	uint64_t dead = add_peer(2), healthy = add_peer(3);
	struct unit_op op[4] = {unit_op(), unit_op(), unit_op(), unit_op()};

	ring->read = ring->written = RING_SIZE - 2;
	write_to(dead, &op[0], WAITS);
	write_to(dead, &op[1], WAITS);
	write_to(healthy, &op[2], WAITS);
	write_to(dead, &op[3], WAITS);
	fr_rail_poll(rail);
	ck_assert_uint_eq(ring->place[RING_SIZE - 2].status, WAITS);
	fr_rail_peer_gone(rail, dead);
	own->signal = 0;
	fr_rail_poll(rail);
	ck_assert_uint_eq(own->signal, 1);
	ck_assert_uint_eq(ring->place[RING_SIZE - 2].status, CUT);
	ck_assert_uint_eq(ring->place[RING_SIZE - 1].status, CUT);
	/* What comes behind one that may be slow has time. */
	ck_assert_uint_eq(ring->place[0].status, WAITS);
	ck_assert_uint_eq(ring->place[1].status, WAITS);
	ring->read += 3;
	fr_rail_poll(rail);
	ck_assert_uint_eq(ring->place[1].status, CUT);
	munmap(a, 16384);
	munmap(b, 16384);
	unit_assert_quiet();
}
END_TEST

/* The provider goes on as if they were taken, and says that all went well. */
START_TEST(pieces_for_the_dead_are_taken_for_them)
{
	struct header *a = make_endpoint(2, 4);
	uint64_t dead = add_peer(2);
	struct unit_op op = unit_op();

	write_to(dead, &op, FULL);
	fr_rail_peer_gone(rail, dead);
	for (int i = 0; i < 3; i++) {
		ring->place[0].status = FULL;
		fr_rail_poll(rail);
		ck_assert_uint_eq(ring->place[0].status, EMPTY);
	}
	fr_rail_poll(rail);
	ck_assert_uint_eq(ring->place[0].status, EMPTY);
	fake_fi_complete(&op.op, FI_RMA | FI_WRITE, 0, 0);
	ring->read++;
	fr_rail_poll(rail);
	ck_assert_uint_eq(op.calls, 1);
	ck_assert_int_eq(op.err, -ECONNRESET);
	ck_assert_str_eq(fr_rail_error_text(rail), "the target is no more");
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	munmap(a, 16384);
}
END_TEST

START_TEST(what_was_answered_in_time_stays)
{
	struct header *a = make_endpoint(2, 4);
	uint64_t dead = add_peer(2);
	struct unit_op op = unit_op();

	write_to(dead, &op, 0);
	fr_rail_peer_gone(rail, dead);
	fr_rail_poll(rail);
	ck_assert_uint_eq(ring->place[0].status, 0);
	fake_fi_complete(&op.op, FI_RMA | FI_WRITE, 0, 0);
	fr_rail_poll(rail);
	ck_assert_int_eq(op.err, 0);
	munmap(a, 16384);
}
END_TEST

START_TEST(a_fenced_peer_answers_no_more)
{
	struct header *a = make_endpoint(2, 4);
	struct fr_rail *other = open_rail(2);
	uint64_t addr = add_peer(2);
	struct unit_op op = unit_op();

	write_to(addr, &op, WAITS);
	fr_rail_poll(rail);
	ck_assert_uint_eq(ring->place[0].status, WAITS);
	fr_rail_fence(other);
	fr_rail_poll(rail);
	ck_assert_uint_eq(ring->place[0].status, CUT);
	fr_rail_close(other);
	munmap(a, 16384);
}
END_TEST

/* The provider wants it before it completes a write to them. */
START_TEST(the_lock_of_the_dead_is_taken_from_them)
{
	struct header *a = make_endpoint(2, 4);
	uint64_t dead = add_peer(2);
	struct unit_op op = unit_op();

	write_to(dead, &op, WAITS);
	a->lock = LOCKED;
	fr_rail_peer_gone(rail, dead);
	fr_rail_poll(rail);
	ck_assert_uint_eq(a->lock, LOCKED);
	nap_ms(1100);
	fr_rail_poll(rail);
	ck_assert_uint_eq(a->lock, UNLOCKED);
	munmap(a, 16384);
}
END_TEST

/* A place that nobody noted is nobody's. */
START_TEST(a_ring_of_another_shape_is_left_alone)
{
	static const uint64_t offsets[] = {0, 4, 16384 - 8, 1u << 30};
	struct header *a = make_endpoint(2, 4);

	for (unsigned i = 0; i < 4; i++) {
		struct header *mine = make_endpoint(10 + i, 4);
		struct fr_rail *other;

		mine->ring = offsets[i];
		other = open_rail(10 + i);
		fr_rail_poll(other);
		fr_rail_close(other);
		make_ring(mine);
		ring->size = i == 3 ? 1024 : i;
		ring->mask = ring->size - 1;
		other = open_rail(10 + i);
		fr_rail_poll(other);
		fr_rail_close(other);
		munmap(mine, 16384);
	}
	munmap(a, 16384);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_name_is_entered_once_and_stays)
{
	struct header *peer = make_endpoint(2, 4);
	struct fr_name name = name_of(2);
	struct unit_op op = unit_op();
	uint64_t a, b, c;
	char buf[8] = "";

	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &a), 0);
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &b), 0);
	ck_assert_uint_eq(a, b);
	fr_rail_peer_del(rail, a);
	fr_rail_peer_del(rail, b);
	ck_assert_uint_eq(fake_fi.av_removed, 0);
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &c), 0);
	ck_assert_uint_eq(fake_fi.av_inserts, 1);
	ck_assert_int_eq(fr_rail_send(rail, c, buf, sizeof(buf), NULL, &op.op),
			 0);
	/* The address is the provider's, not ours. */
	ck_assert_uint_ne(fake_fi.post.addr, 0);
	munmap(peer, 16384);
}
END_TEST

START_TEST(there_are_no_more_peers_than_the_provider_has_room_for)
{
	struct fr_name name;
	uint64_t addr;

	for (unsigned i = 0; i < PEERS; i++) {
		munmap(make_endpoint(100 + i, 4), 16384);
		name = name_of(100 + i);
		ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), 0);
	}
	munmap(make_endpoint(99, 4), 16384);
	name = name_of(99);
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), -ENOSPC);
	unit_assert_said(FR_LOG_ERROR, "224 peers are all");
	name = name_of(100);
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), 0);
}
END_TEST

START_TEST(an_endpoint_that_is_not_there_is_lost)
{
	struct fr_name name = name_of(3);
	uint64_t addr;

	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), -ECONNRESET);
	ck_assert_uint_eq(fake_fi.av_inserts, 0);
	unit_assert_said(FR_LOG_ERROR, "no endpoint named fabrail-");
}
END_TEST

START_TEST(a_pid_of_another_namespace_is_refused)
{
	struct fr_name name = name_of(2);
	struct fr_name other = name;
	uint64_t addr;

	munmap(make_endpoint(2, 4), 16384);
	other.bytes[name.len - 4] ^= 1;
	ck_assert_int_eq(fr_rail_peer_add(rail, &other, &addr), -EINVAL);
	unit_assert_said(FR_LOG_ERROR, "FI_SHM_DISABLE_CMA=1");
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), 0);
}
END_TEST

START_TEST(a_fence_is_seen_by_the_peers)
{
	struct header *mine = make_endpoint(2, 4);
	struct fr_rail *other = open_rail(2);
	uint64_t addr;

	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(other, FR_EP_CTRL), &addr),
		0);
	ck_assert(!fr_rail_peer_revoked(rail, addr));
	fr_rail_fence(other);
	ck_assert(fr_rail_peer_revoked(rail, addr));
	fr_rail_close(other);
	ck_assert(fr_rail_peer_revoked(rail, addr));
	munmap(mine, 16384);
	unit_assert_quiet();
}
END_TEST

/* An end without a fence means that all of it was read. */
START_TEST(a_close_is_no_fence)
{
	struct header *mine = make_endpoint(2, 4);
	struct fr_rail *other = open_rail(2);
	uint64_t addr;

	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(other, FR_EP_CTRL), &addr),
		0);
	fr_rail_close(other);
	ck_assert(!fr_rail_peer_revoked(rail, addr));
	munmap(mine, 16384);
}
END_TEST

/* The provider would write to memory that is not mapped any more. */
START_TEST(nothing_is_posted_to_an_endpoint_that_we_closed)
{
	struct header *mine = make_endpoint(2, 4);
	struct fr_rail *other = open_rail(2);
	uint64_t addr, posted;

	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(other, FR_EP_CTRL), &addr),
		0);
	posted = addr;
	ck_assert(fr_shm_may_post(rail->shm, &posted));
	fr_rail_close(other);
	posted = addr;
	ck_assert(!fr_shm_may_post(rail->shm, &posted));
	munmap(mine, 16384);
	unit_assert_quiet();
}
END_TEST

START_TEST(open_leaks_nothing_wherever_memory_ends)
{
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct header *mine = make_endpoint(2, 4);
	size_t live = fr_live_allocs();
	unsigned before = files(false), nth = 0;
	struct fr_rail *other;
	int ret;

	attr.set_id = 2;
	make_ring(mine);
	do {
		ck_assert_uint_eq(fr_live_allocs(), live);
		ck_assert_uint_eq(files(false), before);
		fr_fault_alloc_at(++nth);
		ret = fr_rail_open(&attr, &other);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	ck_assert_uint_eq(nth, 5);
	fr_fault_alloc_at(0);
	fr_rail_close(other);
	ck_assert_uint_eq(files(false), before);
	munmap(mine, 16384);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("shm_ep");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_endpoint_has_the_name_of_its_set);
	tcase_add_test(t, a_queue_that_a_peer_holds_is_not_read);
	tcase_add_test(t, a_queue_is_taken_from_a_holder_that_has_died);
	tcase_add_test(t, nothing_is_posted_to_a_queue_that_is_held);
	tcase_add_test(t, the_locks_of_another_version_are_left_alone);
	tcase_add_test(t, a_write_to_the_dead_is_answered_for_them);
	tcase_add_test(t, pieces_for_the_dead_are_taken_for_them);
	tcase_add_test(t, what_was_answered_in_time_stays);
	tcase_add_test(t, a_fenced_peer_answers_no_more);
	tcase_add_test(t, the_lock_of_the_dead_is_taken_from_them);
	tcase_add_test(t, a_ring_of_another_shape_is_left_alone);
	tcase_add_test(t, a_name_is_entered_once_and_stays);
	tcase_add_test(t,
		       there_are_no_more_peers_than_the_provider_has_room_for);
	tcase_add_test(t, an_endpoint_that_is_not_there_is_lost);
	tcase_add_test(t, a_pid_of_another_namespace_is_refused);
	tcase_add_test(t, a_fence_is_seen_by_the_peers);
	tcase_add_test(t, a_close_is_no_fence);
	tcase_add_test(t, nothing_is_posted_to_an_endpoint_that_we_closed);
	tcase_add_test(t, open_leaks_nothing_wherever_memory_ends);
	return unit_run(t, "fabric/shm_ep");
}
