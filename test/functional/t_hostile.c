/*
 * A stranger attacks a process that has live traffic with a healthy peer: with
 * handles, at its ports, with connect messages, with messages and writes on a
 * connection. The victim does not crash, says little, loses nothing of the
 * healthy peer, and no byte lands outside its receives.
 */
#include <stdlib.h>

#include "base/util.h"
#include "functional/hostile.h"

static const struct step {
	const char *name;
	void (*attack)(struct pair_member *me);
	unsigned rails;
} steps[] = {
	{"handles", hostile_handle_attack, 1},
	{"handles of two rails", hostile_handle_attack, 2},
	{"ports", hostile_port_attack, 2},
	{"connect messages", hostile_conn_attack, 1},
	{"links and writes", hostile_link_attack, 2},
};

/* What the victim, or the attacker, says of the other. */
static void expect(void)
{
	pair_expect("connect: ");
	pair_expect("accept: ");
	pair_expect("is lost");
	pair_expect("dropped a ");
	pair_expect("its receive only");
	pair_expect("endpoint name");
	pair_expect("peer's name");
	pair_expect("the peer closed its receive comm");
	pair_expect("cannot post a message: Invalid argument");
	pair_expect("its peer at :: (forged)");
}

static void run(struct pair_member *me)
{
	const struct step *step = me->arg;

	if (me->index == VICTIM) {
		expect();
		hostile_victim(me);
	} else if (me->index == HEALTHY) {
		hostile_healthy(me);
	} else {
		expect();
		pair_hear(me, VICTIM);
		step->attack(me);
		(void)hostile_ask(me, HOSTILE_END, 0);
	}
}

static void env(unsigned i, const void *arg)
{
	const struct step *step = arg;

	if (i == ATTACKER) {
		setenv("OFI_NCCL_CONNECT_TIMEOUT", "3s", 1);
		if (step->attack == hostile_link_attack) {
			setenv("OFI_NCCL_FORCE_NUM_RAILS", "1", 1);
		}
	}
}

static void run_step(const char *provider, const struct step *step)
{
	struct pair_case pc = {
		.name = step->name,
		.provider = provider,
		.rails = step->rails,
		.members = 3,
		.limit_s = 40,
		.run = run,
		.env = env,
		.arg = step,
		.plugin_late = true,
	};

	if (step->attack == hostile_handle_attack) {
		pair_spawn(&pc); /* it waits for timeouts most of the time */
	} else {
		pair_run(&pc);
	}
}

int main(int argc, char **argv)
{
	const char *net, *rxm, *shm;

	if (argc > 1) {
		setenv("FR_PLUGIN", argv[1], 1);
	}
	pair_main(argc, argv, "t_hostile", 40);
	net = pair_provider("net");
	rxm = pair_provider("tcp;ofi_rxm");
	shm = pair_provider("shm");
	for (unsigned i = 0; net != NULL && i < FR_ARRAY_LEN(steps); i++) {
		run_step(net, &steps[i]);
	}
	for (unsigned i = 0; rxm != NULL && i < FR_ARRAY_LEN(steps); i++) {
		if (steps[i].attack == hostile_conn_attack ||
		    steps[i].attack == hostile_link_attack) {
			run_step(rxm, &steps[i]);
		}
	}
	/* A write with a wrong key never ends there, and it has no ports. */
	if (shm != NULL) {
		run_step(shm, &steps[0]);
	}
	return pair_end();
}
