#include "nccl/fake_nccl.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define STAGING_BYTES (4u << 20)
#define TAG 7

typedef char handle_bytes[FR_PLUGIN_HANDLE_BYTES];

static int line_open(struct fake_comm *comm, struct fake_line *line)
{
	line->staging = malloc(STAGING_BYTES);
	if (line->staging == NULL) {
		return NCCL_SYSTEM_ERROR;
	}
	return fr_plugin_reg_mr(comm->plugin, line->comm, line->staging,
				STAGING_BYTES, FR_PLUGIN_PTR_HOST,
				&line->mhandle);
}

/* Connects and accepts in turns, as nobody may wait for the one to do the
 * other. */
static int lines_connect(struct fake_comm *comm, handle_bytes *all,
			 void **listen)
{
	bool left = true;

	while (left) {
		left = false;
		for (int i = 0; i < comm->ranks; i++) {
			struct fake_line *send = &comm->send[i];
			struct fake_line *recv = &comm->recv[i];
			int ret = 0;

			if (i == comm->rank) {
				continue;
			}
			if (send->comm == NULL) {
				ret = fr_plugin_connect(
					comm->plugin, comm->ctx, 0,
					all[i * comm->ranks + comm->rank],
					&send->comm);
			}
			if (ret == 0 && recv->comm == NULL) {
				ret = fr_plugin_accept(comm->plugin, listen[i],
						       &recv->comm);
			}
			if (ret != 0) {
				return ret;
			}
			left = left || send->comm == NULL || recv->comm == NULL;
		}
	}
	return NCCL_SUCCESS;
}

static int lines_listen(struct fake_comm *comm, handle_bytes *mine,
			void **listen)
{
	int ret = NCCL_SUCCESS;

	for (int i = 0; i < comm->ranks && ret == NCCL_SUCCESS; i++) {
		if (i != comm->rank) {
			ret = fr_plugin_listen(comm->plugin, comm->ctx, 0,
					       mine[i], &listen[i]);
		}
	}
	return ret;
}

int fake_lines_open(struct fake_comm *comm)
{
	static handle_bytes mine[FAKE_RANKS_MAX];
	static handle_bytes all[FAKE_RANKS_MAX * FAKE_RANKS_MAX];
	void *listen[FAKE_RANKS_MAX] = {NULL};
	int ret = lines_listen(comm, mine, listen);

	if (ret != NCCL_SUCCESS) {
		return ret;
	}
	if (fr_oob_all_gather_wait(comm->oob, mine,
				   sizeof(handle_bytes) * (size_t)comm->ranks,
				   all) != 0) {
		return NCCL_REMOTE_ERROR;
	}
	ret = lines_connect(comm, all, listen);
	for (int i = 0; i < comm->ranks && ret == NCCL_SUCCESS; i++) {
		if (i == comm->rank) {
			continue;
		}
		ret = fr_plugin_close_listen(comm->plugin, listen[i]);
		if (ret == NCCL_SUCCESS) {
			ret = line_open(comm, &comm->send[i]);
		}
		if (ret == NCCL_SUCCESS) {
			ret = line_open(comm, &comm->recv[i]);
		}
	}
	return ret;
}

static int line_dereg(struct fake_comm *comm, struct fake_line *line)
{
	int ret = fr_plugin_dereg_mr(comm->plugin, line->comm, line->mhandle);

	free(line->staging);
	return ret;
}

int fake_lines_close(struct fake_comm *comm)
{
	int ret = NCCL_SUCCESS;

	/* Nobody takes its memory away while another one still sends. */
	if (fr_oob_barrier_wait(comm->oob) != 0) {
		return NCCL_REMOTE_ERROR;
	}
	for (int i = 0; i < comm->ranks && ret == NCCL_SUCCESS; i++) {
		if (i == comm->rank) {
			continue;
		}
		ret = line_dereg(comm, &comm->send[i]);
		if (ret == NCCL_SUCCESS) {
			ret = line_dereg(comm, &comm->recv[i]);
		}
		if (ret == NCCL_SUCCESS) {
			ret = fr_plugin_close_send(comm->plugin,
						   comm->send[i].comm);
		}
		if (ret == NCCL_SUCCESS) {
			ret = fr_plugin_close_recv(comm->plugin,
						   comm->recv[i].comm);
		}
	}
	return ret;
}

/* How far one direction is; a message is cut into pieces of the staging. */
struct flow {
	size_t done, piece;
	void *req;
};

static int send_step(struct fake_comm *comm, int peer,
		     const struct fake_message *message, struct flow *flow)
{
	struct fake_line *line = &comm->send[peer];
	int done = 0, size, ret;

	if (flow->req == NULL) {
		flow->piece = FR_MIN(message->out_bytes - flow->done,
				     (size_t)STAGING_BYTES);
		memcpy(line->staging, message->out + flow->done, flow->piece);
		return fr_plugin_isend(comm->plugin, line->comm, line->staging,
				       flow->piece, TAG, line->mhandle,
				       &flow->req);
	}
	ret = fr_plugin_test(comm->plugin, flow->req, &done, &size);
	if (ret == 0 && done != 0) {
		flow->done += flow->piece;
		flow->req = NULL;
	}
	return ret;
}

static int recv_step(struct fake_comm *comm, int peer,
		     const struct fake_message *message, struct flow *flow)
{
	struct fake_line *line = &comm->recv[peer];
	const int tag = TAG;
	void *data = line->staging;
	int done = 0, size = -1, ret;

	if (flow->req == NULL) {
		flow->piece = FR_MIN(message->in_bytes - flow->done,
				     (size_t)STAGING_BYTES);
		return fr_plugin_irecv(comm->plugin, line->comm, 1, &data,
				       &flow->piece, &tag, &line->mhandle,
				       &flow->req);
	}
	ret = fr_plugin_test(comm->plugin, flow->req, &done, &size);
	if (ret == 0 && done != 0) {
		if ((size_t)size != flow->piece) {
			return FR_PLUGIN_INTERNAL_ERROR;
		}
		memcpy(message->in + flow->done, line->staging, flow->piece);
		flow->done += flow->piece;
		flow->req = NULL;
	}
	return ret;
}

static int exchange_step(struct fake_comm *comm, int peer,
			 const struct fake_message *message, struct flow *out,
			 struct flow *in, bool *left)
{
	int ret = 0;

	if (message->out != NULL && out->done < message->out_bytes) {
		ret = send_step(comm, peer, message, out);
		*left = true;
	}
	if (ret == 0 && message->in != NULL && in->done < message->in_bytes) {
		ret = recv_step(comm, peer, message, in);
		*left = true;
	}
	return ret;
}

int fake_exchange(struct fake_comm *comm, const struct fake_message *messages)
{
	const struct fake_message *own = &messages[comm->rank];
	struct flow out[FAKE_RANKS_MAX] = {0}, in[FAKE_RANKS_MAX] = {0};
	bool left = true;

	if (own->out != NULL && own->in != NULL) {
		memmove(own->in, own->out, own->in_bytes);
	}
	while (left) {
		left = false;
		for (int i = 0; i < comm->ranks; i++) {
			int ret = 0;

			if (i != comm->rank) {
				ret = exchange_step(comm, i, &messages[i],
						    &out[i], &in[i], &left);
			}
			if (ret != 0) {
				return ret;
			}
		}
		sched_yield();
	}
	return NCCL_SUCCESS;
}
