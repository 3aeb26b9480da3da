/* The table behind struct fr_quirks. Private to src/fabric. */
#ifndef FR_FABRIC_QUIRKS_H
#define FR_FABRIC_QUIRKS_H

#include <stdint.h>

#include "fabric/provider.h"

/* Row @i in the order of probing; NULL past the last. */
const struct fr_quirks *fr_quirks_row(unsigned i);
/* What a user's @user is called in libfabric @version: "net" is "tcp" from 1.18
 * on, so that one setting serves both. Return: a constant, or @user. */
const char *fr_quirks_name(const char *user, uint32_t version);
/* A user's "tcp" or "verbs" means, as in libfabric, that provider's reliable
 * datagrams whoever makes them: "tcp" itself, else "tcp;ofi_rxm". */
bool fr_quirks_matches(const struct fr_quirks *row, const char *user);
/* Why libfabric @version's provider of this row is not used, or NULL. */
const char *fr_quirks_refusal(const struct fr_quirks *row, uint32_t version);
/* Why a provider that has no row is not used. */
const char *fr_quirks_foreign_refusal(const char *user);

#endif
