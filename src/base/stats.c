#include "base/stats.h"

#include "base/util.h"

static const char *const stat_names[] = {
	[FR_STAT_TX_BYTES] = "tx_bytes",     [FR_STAT_TX_MSGS] = "tx_msgs",
	[FR_STAT_RX_BYTES] = "rx_bytes",     [FR_STAT_RX_MSGS] = "rx_msgs",
	[FR_STAT_DEFERRED] = "deferred",     [FR_STAT_TX_ERRORS] = "tx_errors",
	[FR_STAT_RX_DROPPED] = "rx_dropped",
};
_Static_assert(FR_ARRAY_LEN(stat_names) == FR_STAT_CNT,
	       "a counter has no name");

const char *fr_stat_name(enum fr_stat stat)
{
	return stat_names[stat];
}
