/*
 * Prints what the host program is told of each device of a plugin:
 *
 *     device NAME speed MBPS guid HEX pci PATH
 *
 * Usage: show_devices PLUGIN [ABI]. Each device listens once, and what lies
 * behind its handle stays as it is.
 *
 * Asks three times, again after other devices and after the end of the last
 * reference: a text that changes or moves is a failure, and so is a
 * NCCL_TOPO_FILE that init changes. NCCL_DEBUG=INFO shows the plugin's lines on
 * standard error. Exit status: 1 when init fails.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/netplugin.h"
#include "tools/plog.h"

#define MAX_DEVICES 32
#define CANARY 0xa5

struct seen {
	struct fr_plugin_props props;
	char name[64];
	char pci[512];
};

static const char *text_of(const char *text)
{
	return text == NULL ? "none" : text;
}

static void fail(const char *what, int dev)
{
	fprintf(stderr, "show_devices: device %d: %s\n", dev, what);
	exit(3);
}

/* What the plugin gave is still what it was. */
static void check_texts(const struct seen *seen, int dev)
{
	if (seen->props.name == NULL ||
	    strcmp(seen->props.name, seen->name) != 0 ||
	    strcmp(text_of(seen->props.pci_path), seen->pci) != 0) {
		fail("a text has changed", dev);
	}
}

static void look(struct fr_plugin *plugin, int dev, struct seen *seen)
{
	if (fr_plugin_props(plugin, dev, &seen->props) != 0 ||
	    seen->props.name == NULL) {
		fail("no properties", dev);
	}
	(void)snprintf(seen->name, sizeof(seen->name), "%s", seen->props.name);
	(void)snprintf(seen->pci, sizeof(seen->pci), "%s",
		       text_of(seen->props.pci_path));
}

static void look_again(struct fr_plugin *plugin, int dev,
		       const struct seen *seen)
{
	struct fr_plugin_props props;

	if (fr_plugin_props(plugin, dev, &props) != 0) {
		fail("no properties at the second call", dev);
	}
	if (props.guid != seen->props.guid ||
	    props.speed_mbps != seen->props.speed_mbps ||
	    strcmp(props.name, seen->name) != 0 ||
	    strcmp(text_of(props.pci_path), seen->pci) != 0) {
		fail("the second call says something else", dev);
	}
}

static int show(struct fr_plugin *plugin, struct seen *seen)
{
	int cnt = 0;

	if (fr_plugin_devices(plugin, &cnt) != 0 || cnt < 1 ||
	    cnt > MAX_DEVICES) {
		fail("a strange number of devices", cnt);
	}
	for (int i = 0; i < cnt; i++) {
		look(plugin, i, &seen[i]);
	}
	for (int i = 0; i < 2 * cnt; i++) {
		look_again(plugin, i % cnt, &seen[i % cnt]);
	}
	for (int i = 0; i < cnt; i++) {
		check_texts(&seen[i], i);
		printf("device %s speed %d guid %016llx pci %s\n", seen[i].name,
		       seen[i].props.speed_mbps,
		       (unsigned long long)seen[i].props.guid, seen[i].pci);
	}
	return cnt;
}

/* The handle of the oldest table has 64 bytes, of all others 128. */
static void listen_once(struct fr_plugin *plugin, void *ctx, int dev)
{
	const size_t bytes = fr_plugin_abi(plugin) == 4
				     ? FR_PLUGIN_HANDLE_BYTES / 2
				     : FR_PLUGIN_HANDLE_BYTES;
	uint8_t handle[2 * FR_PLUGIN_HANDLE_BYTES];
	void *comm = NULL;

	memset(handle, CANARY, sizeof(handle));
	if (fr_plugin_listen(plugin, ctx, dev, handle, &comm) != 0 ||
	    comm == NULL) {
		fail("does not listen", dev);
	}
	for (size_t i = bytes; i < sizeof(handle); i++) {
		if (handle[i] != CANARY) {
			fail("listen writes behind its handle", dev);
		}
	}
	if (fr_plugin_close_listen(plugin, comm) != 0) {
		fail("the listener does not close", dev);
	}
}

static void check_env(const char *before)
{
	const char *now = getenv("NCCL_TOPO_FILE");

	if ((before == NULL) != (now == NULL) ||
	    (now != NULL && strcmp(now, before) != 0)) {
		fail("init has changed NCCL_TOPO_FILE", 0);
	}
}

int main(int argc, char **argv)
{
	const char *topo = getenv("NCCL_TOPO_FILE");
	char *topo_before = topo == NULL ? NULL : strdup(topo);
	unsigned abi = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct seen seen[MAX_DEVICES];
	struct fr_plugin *plugin;
	int ret, cnt;
	void *ctx;

	fr_plog_init(0, false);
	if (argc < 2 ||
	    fr_plugin_open(argv[1], abi, fr_plog_line, &plugin) != 0) {
		fprintf(stderr, "show_devices: no plugin\n");
		free(topo_before);
		return 2;
	}
	ret = fr_plugin_init(plugin, 1, -1, &ctx);
	if (ret != 0) {
		fprintf(stderr, "show_devices: init: %s\n",
			fr_plugin_result_text(ret));
		fr_plugin_close(plugin);
		free(topo_before);
		return 1;
	}
	check_env(topo_before);
	free(topo_before);
	cnt = show(plugin, seen);
	for (int i = 0; i < cnt; i++) {
		listen_once(plugin, ctx, i);
	}
	if (fr_plugin_finalize(plugin, ctx) != 0) {
		fail("finalize fails", 0);
	}
	for (int i = 0; i < cnt; i++) {
		check_texts(&seen[i], i);
	}
	fr_plugin_close(plugin);
	return 0;
}
