/*
 * One thread a process while any set is open: does a pass for a set that nobody
 * polled for 100 ms, since the host program's thread sleeps when idle and a
 * peer may need our acknowledgement or connect response. Never beside a caller.
 */
#ifndef FR_NET_KEEPER_H
#define FR_NET_KEEPER_H

/* Counted. get starts the thread with the first count; all signals are blocked
 * in it. Return: 0; -errno, logged. Call with no lock held but core.lock. */
int fr_keeper_get(void);
/* The last one joins the thread: call with no lock held. */
void fr_keeper_put(void);
/* Joins the thread whatever the count, and forgets the count. For unload. */
void fr_keeper_halt(void);

#endif
