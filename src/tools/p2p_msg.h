/* Inside of p2p.c, pingpong.c, stream.c: one message. */
#ifndef FR_TOOLS_P2P_MSG_H
#define FR_TOOLS_P2P_MSG_H

#include "tools/p2p.h"

/* Memory of a message on @conn. */
void *fr_p2p_slot(const struct fr_p2p *p2p, const struct fr_conn *conn,
		  uint64_t message);
/* Before a post: the message's number in its first and last 8 bytes, as far as
 * it has them; with @whole all of its bytes. */
void fr_p2p_prepare(const struct fr_p2p *p2p, uint64_t message);
void fr_p2p_clear(const struct fr_p2p *p2p, uint64_t message);
/* After a receive of @size bytes: adds what is wrong to @p2p->wrong. */
void fr_p2p_inspect(struct fr_p2p *p2p, uint64_t message, int size);
/* *@request NULL: call again. Return: 0; -EIO, logged. */
int fr_p2p_post_send(const struct fr_p2p *p2p, uint64_t message,
		     void **request);
int fr_p2p_post_recv(const struct fr_p2p *p2p, uint64_t message,
		     void **request);
int fr_p2p_test(const struct fr_conn *conn, void *request, int *done,
		int *size);

#endif
