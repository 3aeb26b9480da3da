/*
 * What only the loadable module has. Hosts of the older tables close the
 * library without a word, and may load it again: whatever is left must end
 * here, before the code is gone.
 */
#include <stdlib.h>

#include "net/net.h"
#include "plugin/life.h"

/*
 * At the end of a process libraries are left in the order in which they came.
 * A libfabric that was there before us, as someone else uses it or as this is
 * not our first load, would be gone when we close what we have of it; handlers
 * of atexit() run before.
 */
__attribute__((constructor)) static void module_load(void)
{
	if (fr_net_fabric_is_there()) {
		(void)atexit(fr_shell_unload); /* else later, as below */
	}
}

__attribute__((destructor)) static void module_unload(void)
{
	fr_shell_unload();
}
