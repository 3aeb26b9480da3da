#!/usr/bin/env bash
# The layer script accepts the tree as it is meant, and names every offence.
. "$(dirname "$0")/lib.sh"
check=$FR_SRCDIR/scripts/check_layers.sh

good_tree() {
	rm -rf "${scratch:?}"/*
	put src/base/log.h <<<'#include <stdint.h>'
	put src/wire/imm.h <<<'#include "base/log.h"'
	put src/fabric/rail.c <<'END'
#include <rdma/fabric.h>
#include <hwloc.h>
#include "fabric/rail.h"
#include "wire/imm.h"
#include "base/log.h"
END
	put src/net/req.c <<'END'
#include "req.h"
#include "fabric/rail.h"

static void fr_req_set_state(struct fr_req *req, int to)
{
	req->state = to;
}

int fr_req_done(struct fr_req *req)
{
	if (req->state == 3) {
		fr_req_set_state(req, 4);
	}
	return req->state <= 4;
}
END
	put src/net/req.h <<<'struct fr_req;'
	put plugin/net_v9.c <<'END'
#include "nccl/net_v9.h"
#include "net/net.h"
#include "base/log.h"
END
	put src/tools/perf.c <<'END'
#include "nccl/net_v9.h"
#include "fabric/raw.h"
#include "fabric/provider.h"
#include "tools/perf.h"
END
	put test/unit/t_rail.c <<<'#include <rdma/fabric.h>'
}

# refused WHAT FILE LINE [NAMED]: the good tree with one more line in one file.
refused() {
	good_tree
	mkdir -p "$scratch/$(dirname "$2")"
	echo "$3" >>"$scratch/$2"
	run "$check" "$scratch"
	holds "$1" rc_is 1
	holds "$1, by name" says "${4-$2:}"
}

good_tree
run "$check" "$scratch"
holds "a tree that keeps the order passes" rc_is 0
holds "a tree that keeps the order passes in silence" is_silent

refused "base may not look up" src/base/log.h '#include "wire/imm.h"'
refused "wire may not look up" src/wire/imm.h '#include "fabric/rail.h"'
refused "fabric may not look up" src/fabric/rail.c '#include "net/req.h"'
refused "net may not look at the plugin" src/net/req.c '#include "plugin/core.h"'
refused "the plugin may not skip to fabric" plugin/net_v9.c '#include "fabric/rail.h"'
refused "the plugin may not use the tools" plugin/net_v9.c '#include "tools/perf.h"'
refused "tools may not use the plugin" src/tools/perf.c '#include "plugin/core.h"'
refused "tools may not use net" src/tools/perf.c '#include "net/net.h"'
refused "tools may use two headers of fabric only" src/tools/perf.c '#include "fabric/rail.h"'
refused "libfabric stays in fabric" src/net/req.c '#include <rdma/fabric.h>'
refused "libfabric stays out of the plugin" plugin/net_v9.c '#include <rdma/fi_cm.h>'
refused "hwloc stays in fabric" src/net/req.c '#include <hwloc.h>'
refused "the ABI stays out of net" src/net/req.c '#include "nccl/net_v9.h"'
refused "the ABI stays out of net, angled too" src/net/req.c '#include <nccl/net_v9.h>'
refused "a header is named with its folder" src/net/req.c '#include "log.h"'
refused "no path climbs" src/net/req.c '#include "../base/log.h"'
refused "blanks hide nothing" src/base/log.h '  #  include "net/req.h"'
refused "a new folder has to be made known" src/other/x.c \
	'#include "base/log.h"' src/other:
refused "libcheck stays in the tests" src/net/req.c '#include <check.h>'

refused "a state has one writer" src/net/req.c \
	'void fr_req_kick(struct fr_req *req)
{
	req->state = 5;
}'
refused "a state has one writer, through a dot too" src/net/req.c \
	'void fr_req_kick(struct fr_req *req)
{
	req->list.state = 5;
}'

run "$check" "$FR_SRCDIR"
holds "this tree keeps the order" rc_is 0
finish
