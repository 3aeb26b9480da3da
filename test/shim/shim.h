/*
 * A stand-in for libfabric that injects faults. For tests only.
 *
 * libfr_shim.so carries the name libfabric.so.1, so that whoever asks the
 * dynamic linker for that name gets it once it is loaded: by shim_load() of
 * use.h, or by LD_PRELOAD. It loads the real library (from FR_SHIM_REAL, or
 * where the linker would look), exports the entry points that src/fabric uses,
 * and replaces tables of functions in the objects that they open. What is not
 * wrapped goes to the provider as it is.
 *
 * The variable FR_SHIM, or set() below, says what it does: items with ';'
 * between them.
 *
 *   seed=N           for all that is random (1)
 *   fail=KIND:K[:E[:N]]
 *                    the K-th call of KIND (from 1), and the N - 1 behind it
 *                    (1; 0: all of them), does nothing and says errno E (5).
 *                    Of a completion: an error comes in its place.
 *   again=KIND:P[:B] a call of KIND says -FI_EAGAIN with probability P; with B
 *                    it then says so B times and the next one goes through
 *   raise=KIND:K[:SIG]
 *                    the K-th call of KIND, and each behind it, begins with
 *                    signal SIG (15) to its thread; not of a completion
 *   garbage          what a completion of a write says besides its context,
 *                    flags and remote data is noise; of a message it is buffer,
 *                    data and tag (data where no flag says that there is some)
 *   shuffle          each fi_getinfo has its list in another order
 *   keys=N[,N...]    keys for registrations that a peer may write to: the first
 *                    one of the list that the domain does not use yet
 *   spoil=BYTE:AT:N  N is added to the 64 bits at byte AT of each message that
 *                    begins with BYTE and is long enough, in its sender's
 *                    memory, and again when it is sent again
 *   cqdata=N         bytes of remote data that fi_getinfo promises
 *   gpu              fi_getinfo offers memory of a GPU to who asks for it, the
 *                    one of fake/fake_cuda.h; for providers whose peers give
 *                    offsets
 *   log=FILE         lines about objects and faults are appended to FILE
 *   posts            and about posts that were taken and writes that landed
 *
 * KIND is one of these, or several with '+' between them; "@R" behind it, R the
 * rail, leaves it to those of one domain. Domains are numbered as they are
 * opened, from 0; a number is used again when its domain was closed.
 *
 *   getinfo dupinfo fabric domain av cq ep enable getname setopt insert
 *   mrbind mrenable reg
 *   bind                    of an endpoint to a completion queue
 *   send write recv fetch   posts; fetch: a read of a peer's memory
 *   read readerr            of a completion queue
 *   remove                  from an address vector
 *   close                   is done, whatever is said of it
 *   sent written received fetched   completions of posts
 *   landed                  a peer's write with remote data
 *   open                    getinfo to reg
 *   post                    send, write, recv and fetch
 *   any                     open and post
 *
 * Lines of the log, one write each, "PID" in front:
 *
 *   open TYPE ID PARENT RAIL     ID from 1; RAIL -1: none
 *   bind TYPE ID TYPE ID
 *   close TYPE ID RET
 *   post KIND RAIL BYTES DATA    DATA in hex, 0 without
 *   land RAIL DATA
 *   fault KIND RAIL ERRNO
 *
 * Threads: any. The environment is read when the library is loaded.
 */
#ifndef FR_TEST_SHIM_SHIM_H
#define FR_TEST_SHIM_SHIM_H

#include <stdint.h>

struct fr_shim_api {
	/* Forgets what was said before, and all counts. NULL or "": no faults.
	 * Return: 0; -EINVAL, with a line on standard error; nothing changed.
	 */
	int (*set)(const char *text);
	/* Calls of KIND since set(), those that were refused among them; -1:
	 * no such kind. */
	int64_t (*calls)(const char *kind);
	/* Those of them that the shim failed or refused. */
	int64_t (*faults)(const char *kind);
};

#define FR_SHIM_API "fr_shim_api" /* symbol of the struct, for dlsym */
#define FR_SHIM_TEXT "injected by the shim"

#endif
