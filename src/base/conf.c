#include "base/conf.h"

#include "base/clock.h"
#include "base/util.h"

#define CONF_DAY_NS (86400ll * (int64_t)FR_NS_PER_S)

static const char *const completion_names[] = {
	[FR_COMPLETION_DELIVERY] = "delivery",
	[FR_COMPLETION_LOCAL] = "local",
	NULL,
};

#define ROW(_name, _kind, _field, ...)                                         \
	{                                                                      \
		.name = (_name), .kind = FR_PARAM_##_kind,                     \
		.offset = offsetof(struct fr_conf, _field), __VA_ARGS__        \
	}

/* clang-format off */
const struct fr_param fr_conf_table[] = {
	ROW("PROVIDER", TEXT, provider, .dflt = "", .unit = "",
	    .help = "Libfabric provider to use, by the name that fi_info "
		    "prints. Empty: the first one that works on this host; "
		    "shm and sockets are used only when named here."),
	ROW("TCP_IF", TEXT, tcp_if, .dflt = "", .unit = "",
	    .help = "Comma-separated list of the network interfaces that may "
		    "become rails, each a prefix or =NAME for one exact name. "
		    "Order, repeats and empty items mean nothing. "
		    "Empty: NCCL_SOCKET_IFNAME where that is set, else all."),
	ROW("EXCLUDE_TCP_IF", TEXT, exclude_tcp_if,
	    .dflt = "=lo,docker,virbr", .unit = "",
	    .help = "Interfaces that never become rails, a list as in TCP_IF; "
		    "a comma alone: none. An interface of both lists goes by "
		    "the longer item that names it, and stays out in a tie."),
	ROW("USE_IPV6_TCP", BOOL, use_ipv6, .dflt = "0", .unit = "",
	    .help = "Prefer the IPv6 addresses of an interface that has both "
		    "families."),
	ROW("MAX_RAILS", U32, max_rails, .dflt = "4", .min = 1,
	    .max = FR_MAX_RAILS, .unit = "count",
	    .help = "Most rails that are grouped into one device."),
	ROW("FORCE_NUM_RAILS", U32, force_rails, .dflt = "0", .min = 0,
	    .max = FR_MAX_RAILS, .unit = "count",
	    .help = "Open exactly this many rails for each device and use all "
		    "of them, going round its interfaces. 0: one rail for each "
		    "interface."),
	ROW("MIN_STRIPE_SIZE", BYTES, min_stripe_bytes, .dflt = "128K",
	    .min = 1, .max = INT64_MAX, .unit = "bytes",
	    .help = "Messages of at least this size are split over the rails "
		    "of their device; shorter ones use one rail."),
	ROW("SCHED_MAX_SMALL_MSG_SIZE", BYTES, small_msg_bytes, .dflt = "64",
	    .min = 0, .max = INT64_MAX, .unit = "bytes",
	    .help = "Messages up to this size take the rails in turn, "
		    "apart from the turn that longer messages take."),
	ROW("EAGER_MAX_SIZE", I64, eager_max_bytes, .dflt = "8192", .min = -1,
	    .max = 64512, .unit = "bytes",
	    .help = "Messages up to this size are sent before the receiver "
		    "has announced its buffer. 0 or -1: none."),
	ROW("CQ_READ_COUNT", U32, cq_read_cnt, .dflt = "16", .min = 1,
	    .max = 256, .unit = "count",
	    .help = "Completions read from a rail with one call."),
	ROW("CQ_SIZE", U32, cq_size, .dflt = "12288", .min = 16,
	    .max = 1 << 24, .unit = "count",
	    .help = "Entries of a rail's completion queue. The provider may "
		    "round it."),
	ROW("YIELD_AFTER", U32, yield_after, .dflt = "32", .min = 0,
	    .max = UINT32_MAX, .unit = "count",
	    .help = "After this many polls in a row that found nothing a "
		    "thread yields its core. 0: never."),
	ROW("KEEPER", BOOL, keeper, .dflt = "1", .unit = "",
	    .help = "Run one thread that answers peers while NCCL does not "
		    "poll. It is idle while NCCL polls."),
	ROW("SEND_COMPLETION", ENUM, completion, .dflt = "delivery",
	    .names = completion_names, .unit = "",
	    .help = "When a send is reported done. delivery: when the loss of "
		    "a rail can no longer lose it; local: when its buffer may "
		    "be reused, which is sooner but not safe against the loss "
		    "of a connection."),
	ROW("MR_CACHE_DISABLE", BOOL, mr_cache_disable, .dflt = "0",
	    .unit = "",
	    .help = "Register memory anew each time, and do not share a "
		    "registration among the uses of the same memory."),
	ROW("ENDPOINT_PER_COMM", BOOL, ep_per_comm, .dflt = "0", .unit = "",
	    .help = "Give each communicator endpoints of its own, and do not "
		    "share those of the thread."),
	ROW("RAIL_WEIGHTS", BOOL, rail_weights, .dflt = "0", .unit = "",
	    .help = "Let stripes follow the measured rates of the rails; else "
		    "all rails have equal ones."),
	ROW("FAILOVER", BOOL, failover, .dflt = "0", .unit = "",
	    .help = "Let messages go on by other rails when one fails; else "
		    "the link ends."),
	ROW("RAIL_TIMEOUT", TIME, rail_timeout_ns, .dflt = "3s",
	    .min = FR_NS_PER_S / 2, .max = 10 * FR_NS_PER_S, .unit = "time",
	    .help = "With failover: give up a rail on which nothing has got "
		    "through for this long while the peer's host answers on "
		    "another one."),
	ROW("PEER_TIMEOUT", TIME, peer_timeout_ns, .dflt = "0", .min = 0,
	    .max = CONF_DAY_NS, .unit = "time",
	    .help = "Fail the requests of a peer from which nothing has come "
		    "for this long although it owes us something. 0: wait for "
		    "ever."),
	ROW("CONNECT_TIMEOUT", TIME, connect_timeout_ns, .dflt = "0",
	    .min = 0, .max = CONF_DAY_NS, .unit = "time",
	    .help = "Fail a connection that is not established after this "
		    "time. 0: wait for ever."),
	ROW("DISABLE_DMABUF", BOOL, disable_dmabuf, .dflt = "0", .unit = "",
	    .help = "Do not register GPU memory as a dma-buf, also where that "
		    "is possible."),
	ROW("GDR_FLUSH_DISABLE", BOOL, disable_flush, .dflt = "0", .unit = "",
	    .help = "Do not read GPU memory back after a receive. Only for a "
		    "GPU that sees what was written before it is told so."),
	ROW("STATS_FILE", TEXT, stats_file, .dflt = "", .unit = "",
	    .help = "File to which the counters of the rails are appended as "
		    "lines of JSON when they are closed. Empty: none."),
	ROW("TEST_FIRST_SEQ", U32, test.first_seq, .dflt = "0", .min = 0,
	    .max = UINT32_MAX, .unit = "count", .for_tests = true,
	    .help = "Number of the first message of each communicator and "
		    "link, the same in all processes."),
	ROW("TEST_MAX_MSG_SIZE", BYTES, test.max_write_bytes, .dflt = "0",
	    .min = 0, .max = INT64_MAX, .unit = "bytes", .for_tests = true,
	    .help = "Longest write that a rail is given, if the provider does "
		    "not want less. 0: as the provider says."),
	ROW("TEST_COMM_IDS", U32, test.comm_ids, .dflt = "262144", .min = 1,
	    .max = FR_MAX_COMM_IDS, .unit = "count", .for_tests = true,
	    .help = "Communicators that may be open on the rails of one "
		    "thread and device."),
	ROW("TEST_MAX_REQUESTS", U32, test.max_reqs, .dflt = "256", .min = 1,
	    .max = FR_MAX_REQS, .unit = "count", .for_tests = true,
	    .help = "Requests in flight on one communicator."),
	ROW("TEST_FAIL_ALLOC", U32, test.fail_alloc, .dflt = "0", .min = 0,
	    .max = UINT32_MAX, .unit = "count", .for_tests = true,
	    .help = "This one of the allocations after init has read its "
		    "parameters fails, counted from 1. 0: none."),
	ROW("TEST_LOG_ALL", BOOL, test.log_all, .dflt = "0", .unit = "",
	    .for_tests = true,
	    .help = "Lines that repeat are never suppressed."),
	{ .name = NULL },
};
/* clang-format on */

const unsigned fr_conf_rows = FR_ARRAY_LEN(fr_conf_table) - 1;

const struct fr_param_foreign fr_conf_foreign[] = {
	{"ABORT_ON_ERROR"},
	{"CM_NUM_RX_BUFFERS"},
	{"CUDA_FLUSH_ENABLE"},
	{"DISABLE_CLOSE_MESSAGE"},
	{"DISABLE_GDR_REQUIRED_CHECK"},
	{"DISABLE_NATIVE_RDMA_CHECK"},
	{"EARLY_COMPLETION"},
	{"ERRORCHECK_MUTEX"},
	{"GDAKI_EFA_HW_COUNTER"},
	{"GIN_CQ_PROCESS_MAX_ITER"},
	{"MR_KEY_SIZE"},
	{"NET_LATENCY"},
	{"NIC_DUP_CONNS"},
	{"NVTX_TRACE_DIMENSION"},
	{"PLATFORM"},
	{"PROGRESS_MODEL"},
	{"PROTOCOL"},
	{"RDMA_MAX_POSTED_BOUNCE_BUFFERS"},
	{"RDMA_MAX_POSTED_CONTROL_BUFFERS"},
	{"RDMA_MAX_POSTED_EAGER_BUFFERS"},
	{"RDMA_MIN_POSTED_BOUNCE_BUFFERS"},
	{"RDMA_MIN_POSTED_CONTROL_BUFFERS"},
	{"RDMA_MIN_POSTED_EAGER_BUFFERS"},
	{"RR_CTRL_MSG"},
	{"SCHED_MAX_SMALL_RR_SIZE"},
	{"SKIP_NICS_WITHOUT_ACCEL_AT_SAME_PCI_LEVEL"},
	{"TUNER_NET_COMP_OVERHEAD"},
	{"TUNER_NET_LATENCY"},
	{"TUNER_NUM_CHANNELS"},
	{"TUNER_TYPE"},
	{"USE_LOW_LATENCY_TC"},
	{NULL},
};
