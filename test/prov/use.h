/* Takes the provider in memory into this process. */
#ifndef FR_TEST_PROV_USE_H
#define FR_TEST_PROV_USE_H

#include "prov/prov.h"

/* Loads it from FR_BUILDDIR, before libfabric itself is loaded. Stays loaded.
 * Return: NULL: not there, said on standard error. */
const struct fr_prov_api *prov_load(const struct fr_prov *prov);

#endif
