/*
 * Test processes that use the built plugin against each other on loopback.
 *
 * pair_run() forks the members of a case. Each has a socket to every other one
 * for handles and words, opens the plugin with an environment of its own, and
 * ends by returning: what then is left of it is a failure (a warning nobody
 * expected, too). The parent waits with a deadline and ends by their pids those
 * that hang. Every helper here that cannot do its work fails the test; none
 * gives up later than the case's deadline.
 *
 * Threads: a member's helpers from any thread of it, its sockets from one.
 */
#ifndef FR_TEST_PAIR_H
#define FR_TEST_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/netplugin.h"

#define PAIR_MAX 16u
#define PAIR_SKIP 77
#define PAIR_REMOTE FR_PLUGIN_REMOTE_ERROR

struct pair_member;

struct pair_case {
	const char *name;
	const char *provider; /* one that pair_provider() gave */
	unsigned rails;
	unsigned members;
	unsigned limit_s; /* on a quiet machine, without sanitizers */
	uint32_t killed;  /* bit i: member i ends by SIGKILL and not else */
	void (*run)(struct pair_member *me);
	/* More for the environment of member i, before the plugin is opened. */
	void (*env)(unsigned i, const void *arg);
	/* In the parent, about every 10 ms while members live. */
	void (*watch)(const struct pair_case *pc, const int *pid);
	const void *arg;
	bool plugin_late; /* the members open and close the plugin themselves */
	bool unloads;	  /* and what they close must leave the process */
	unsigned abi;	  /* of the table they take; 0: the newest */
	unsigned odd_abi; /* of every second member, when it is another */
};

struct pair_member {
	unsigned index;
	unsigned cnt;
	const struct pair_case *pc;
	const void *arg;
	int oob[PAIR_MAX];
	struct fr_plugin *plugin;
	void *ctx;
	unsigned long seed; /* for whatever wants to differ */
};

/* -- the parent -- */

/* Says what will run and how long it may take; skips when there is no plugin.
 * The first argument may name the plugin, where FR_PLUGIN does not. */
void pair_main(int argc, char **argv, const char *what, unsigned budget_s);
/* A provider by the name that this libfabric has for it; NULL: not here. */
const char *pair_provider(const char *name);

/* What tests must know of a provider; the reasons are with the table. */
struct pair_traits {
	const char *name;
	size_t early_max; /* longest message that goes before its receive */
	bool writes_all;  /* however short, where a receive waits: to take that
			     one's memory back is a fence */
	unsigned queue_max; /* posts of all peers to a process that does not
			       call; 0: as many as there are */
};
const struct pair_traits *pair_traits(const char *provider);
/* Once for each provider that is here, those that are only used when they are
 * named included. @nth from 0 on: a test may do with less for the later ones.
 */
void pair_all_providers(void (*run)(const char *provider, unsigned nth));
/* The same without those. */
void pair_each_provider(void (*run)(const char *provider, unsigned nth));
/* Unless the environment's FR_TEST_CASES wants other cases. */
void pair_run(const struct pair_case *pc);
/* Begins it beside others; pair_end() waits for them all. */
void pair_spawn(const struct pair_case *pc);
/* Prints what ran; 0, 1, or PAIR_SKIP when nothing could. */
int pair_end(void);
/* Seconds as stretched for sanitizers. */
unsigned pair_stretch(unsigned v);

/* -- words between members -- */

void pair_put(struct pair_member *me, unsigned to, const void *data,
	      size_t bytes);
void pair_get(struct pair_member *me, unsigned from, void *data, size_t bytes);
/* Something is to be read, or the other one has ended. */
bool pair_told(struct pair_member *me, unsigned from);
void pair_tell(struct pair_member *me, unsigned to);
void pair_hear(struct pair_member *me, unsigned from);
/* Both come here. */
void pair_meet(struct pair_member *me, unsigned with);

/* -- a member's life -- */

/* Where it is, for the message when it hangs or fails. A constant text. */
void pair_at(struct pair_member *me, const char *where);
void pair_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
#define PAIR_FAIL(...) pair_fail(__FILE__, __LINE__, __VA_ARGS__)
#define PAIR_CHECK(cond, ...)                                                  \
	do {                                                                   \
		if (!(cond)) {                                                 \
			PAIR_FAIL(__VA_ARGS__);                                \
		}                                                              \
	} while (0)
/* A call of the plugin that must succeed. */
#define PAIR_OK(call)                                                          \
	do {                                                                   \
		int ret_ = (call);                                             \
		PAIR_CHECK(ret_ == 0, "%s gave %s", #call,                     \
			   fr_plugin_result_text(ret_));                       \
	} while (0)
/* A line for the test's output, whole even when members write at once. */
void pair_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* For who opens the plugin by hand: under a sanitizer it stays loaded to the
 * end. pair_open() sees to that itself, unless the case has unloads. */
void pair_keep(void);
void pair_open(struct pair_member *me);
void pair_close(struct pair_member *me);
void pair_die(void) __attribute__((noreturn)); /* by SIGKILL, now */

/* Warnings that contain @part are expected from now on. */
void pair_expect(const char *part);
/* From the next init on each line comes, however often it was said: what a test
 * wants that looks for the word of each failure. */
void pair_log_all(void);
/* All warnings so far, expected or not. */
unsigned pair_warned(void);
/* Lines so far that contain @part. */
unsigned pair_logged(const char *part);
void pair_logger(int level, unsigned long flags, const char *file, int line,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

uint64_t pair_now_ms(void);
void pair_nap_us(unsigned us);

/* Dice that fall the same way each time; *@state is not 0. */
uint64_t pair_random(uint64_t *state);
unsigned pair_pick(uint64_t *state, unsigned below);

/* -- connections -- */

void *pair_listen(struct pair_member *me, void *handle);
/* Calls until there is a comm. */
void *pair_accept_wait(struct pair_member *me, void *listen);
void *pair_connect_wait(struct pair_member *me, void *handle);
/* One direction each, the handle by socket. */
void *pair_connect(struct pair_member *me, unsigned to);
void *pair_accept(struct pair_member *me, unsigned from);
/* Both directions; both members call it. */
void pair_join(struct pair_member *me, unsigned with, void **send, void **recv);

/* -- memory and messages -- */

struct pair_buf {
	uint8_t *mem;
	size_t bytes;
	void *comm;
	void *mh;
};

void pair_buf_open(struct pair_member *me, void *comm, size_t bytes,
		   struct pair_buf *buf);
void pair_buf_close(struct pair_member *me, struct pair_buf *buf);

void pair_fill(uint8_t *mem, size_t bytes, unsigned long seed);
bool pair_is_filled(const uint8_t *mem, size_t bytes, unsigned long seed);
/* Every byte is @value. */
bool pair_is_all(const uint8_t *mem, size_t bytes, uint8_t value);

/* One call each. */
int pair_isend(struct pair_member *me, const struct pair_buf *buf, size_t bytes,
	       void **req);
int pair_irecv(struct pair_member *me, const struct pair_buf *buf, size_t bytes,
	       void **req);
/* Calls until there is a request. */
void *pair_isend_wait(struct pair_member *me, const struct pair_buf *buf,
		      size_t bytes);
void *pair_irecv_wait(struct pair_member *me, const struct pair_buf *buf,
		      size_t bytes);
/* Tests until done. Return: 0; the plugin's result; -ETIMEDOUT. */
int pair_test_wait(struct pair_member *me, void *req, unsigned ms, int *size);
/* One test of a request that must not fail. Return: whether it is done. */
bool pair_test(struct pair_member *me, void *req, int *sizes);
/* A whole message that must arrive. */
void pair_send(struct pair_member *me, const struct pair_buf *buf,
	       size_t bytes);
void pair_recv(struct pair_member *me, const struct pair_buf *buf,
	       size_t bytes);

/* -- traffic beside the test: a message there, the same back, for ever -- */

struct pair_echo {
	void *send;
	void *recv;
	struct pair_buf out;
	struct pair_buf in;
	void *out_req;
	void *in_req;
	bool out_begun;
	bool in_begun;
	unsigned long rounds;
	uint64_t last_ms; /* when the last round ended */
	uint64_t worst_ms;
	bool last; /* set by the asking side: this round ends it */
	bool ended;
};

void pair_echo_open(struct pair_member *me, unsigned with,
		    struct pair_echo *echo);
/* One step of the side that begins, or of the side that answers; never waits.
 * Return: 0; the plugin's result. Data that is wrong fails the test. */
int pair_echo_ask(struct pair_member *me, struct pair_echo *echo);
int pair_echo_answer(struct pair_member *me, struct pair_echo *echo);
/* The side that begins makes the other one end too; both then close. */
void pair_echo_end(struct pair_member *me, struct pair_echo *echo);
void pair_echo_serve(struct pair_member *me, struct pair_echo *echo);
void pair_echo_close(struct pair_member *me, struct pair_echo *echo);

#endif
