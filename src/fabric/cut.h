/*
 * Ends TCP connections of this process under their owner, by their addresses.
 *
 * A provider that runs over TCP keeps what it was given for as long as TCP
 * tries, a quarter of an hour, and then for as long as TCP waits before its
 * next try. It has no call to take that back. But a connection that is shut
 * down tells it so at once, also when nothing can get through.
 *
 * Threads: any. Reads the list of descriptors: for paths that report an error.
 */
#ifndef FR_FABRIC_CUT_H
#define FR_FABRIC_CUT_H

#include <stdbool.h>

#include "wire/name.h"

enum fr_cut_what {
	/* What their kernel does not acknowledge, sent three times or a second
	 * ago. */
	FR_CUT_STUCK,
	FR_CUT_ALL,
};

/* Shuts down the connections that were made to the port @peer, and, where @own
 * is no NULL, those that came to our port @own from the address of @peer.
 * Return: how many. */
unsigned fr_cut(const struct fr_name *peer, const struct fr_name *own,
		enum fr_cut_what what);

#endif
