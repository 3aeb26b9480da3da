/*
 * The shm provider keeps each endpoint in a file of /dev/shm, and lets us
 * choose the file's name. Ours say whose they are:
 *
 *	fabrail-PID-SET-SPACE-RAIL   an endpoint
 *	fabrail-PID-SET-SPACE-MARK   a page of ours beside it: see shm_priv.h
 *	fabrail-PID-SET-SPACE-k      the knock port of its set, a unix socket
 *	fabrail-PID-SET-SPACE-t      the same, not open yet
 *
 * PID is decimal, SET the set's id, SPACE says in whose PID namespace PID is
 * meant (0: nobody reaches the process's memory by it), RAIL is a digit, MARK a
 * letter from a on. SET is random, so a name never means another process,
 * whatever its PID is.
 *
 * A set's socket is there before its endpoints and goes after them. The kernel
 * answers on it for a process that lives, whatever namespaces it is in; a
 * refused connection says that the process has died and left its files.
 *
 * Threads: any. Blocking: file system calls in memory.
 */
#ifndef FR_FABRIC_SHM_H
#define FR_FABRIC_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/name.h"

#define FR_SHM_PATH_MAX 108u /* of a unix socket */
#define FR_SHM_RAIL '0'	     /* + index, below FR_SHM_RAILS */
#define FR_SHM_MARK 'a'	     /* + index */
#define FR_SHM_RAILS 8
#define FR_SHM_KNOCK 'k'
#define FR_SHM_KNOCK_EARLY 't'

/* Name of a file of set @set_id of this process, with its directory. */
void fr_shm_path(uint64_t set_id, char kind, char path[FR_SHM_PATH_MAX]);
/* The knock socket beside the endpoint @name of a peer. False: not a name that
 * any version of ours could have made. */
bool fr_shm_knock_path(const struct fr_name *name, char path[FR_SHM_PATH_MAX]);

#endif
