/*
 * How a test brings the shim into its process: before anything loads libfabric.
 *
 * Threads: one at a time. Blocking: the load takes about 0.1 s.
 */
#ifndef FR_TEST_SHIM_USE_H
#define FR_TEST_SHIM_USE_H

#include "shim/shim.h"

/**
 * shim_load - have the shim stand in for libfabric in this process
 * @text: what it does from the start, as of FR_SHIM; may be NULL
 *
 * Threads: one. Return: its calls; NULL: it is not there, or libfabric was
 * loaded before, said on standard error.
 */
const struct fr_shim_api *shim_load(const char *text);
/* The same for a process that is nothing without it: it ends, with status 1. */
const struct fr_shim_api *shim_must_load(const char *text);

#endif
